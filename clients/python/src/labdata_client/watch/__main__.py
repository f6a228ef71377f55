"""The command `labdata-watch`."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import logging
import math
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._sync._lab import Lab
from ..errors import Busy, ConnectionFailed, LabdataError
from . import service
from .heartbeat import REQUEST_SECONDS, Heart
from .state import State, default_path
from .watcher import Watcher, log

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_PAUSE_SECONDS = 0.5
"""Between two looks at the folder, however often its files change."""

RETRY_SECONDS = 20.0
"""Of one request; the watcher itself tries again after a pause."""

EXIT_FAILED = 1
EXIT_MISUSED = 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="labdata-watch",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Upload each new file of a folder to an instrument, once it is complete.",
        epilog="""Address and key (scope write suffices) come from LABDATA_BASE_URL and LABDATA_API_KEY.

exit status: 0  every file is uploaded, or the program was asked to stop
             1  --once: a file or a folder could not be read or uploaded, or the platform was away
             2  wrong arguments, folder, address, key or instrument

labdata-watch install DIR --instrument NAME: run as a service of systemd; also uninstall, status.""",
    )
    add_options(parser)
    parser.add_argument("--once", action="store_true", help="upload the files of now, then exit")
    return parser


def _seconds(text: str) -> float:
    """Read a duration."""
    seconds = float(text)
    if not 0 <= seconds < math.inf:
        message = f"{text} is no duration: write 0 or more seconds"
        raise argparse.ArgumentTypeError(message)
    return seconds


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of watching, which a service has too."""
    parser.add_argument("directory", type=Path, metavar="DIR", help="the folder, with its subfolders")
    parser.add_argument("--instrument", required=True, metavar="NAME", help="name or id of the instrument")
    parser.add_argument(
        "--pattern",
        action="append",
        default=[],
        metavar="GLOB",
        help="only files such as '*.txt'; may be repeated",
    )
    parser.add_argument(
        "--settle",
        type=_seconds,
        default=5.0,
        metavar="SECONDS",
        help="how long size and time of a file stay the same before it is uploaded (default: 5)",
    )
    parser.add_argument(
        "--poll",
        type=_seconds,
        default=10.0,
        metavar="SECONDS",
        help="how often the folder is read, as network shares announce no changes (default: 10)",
    )
    parser.add_argument("--state", type=Path, metavar="FILE", help="file that remembers what was uploaded")
    parser.add_argument("--base-url", metavar="URL", help="instead of LABDATA_BASE_URL")
    parser.add_argument(
        "--api-key-file", type=Path, metavar="FILE", help="file with the key, instead of LABDATA_API_KEY"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Watch a folder until SIGTERM or Ctrl-C."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] in service.COMMANDS:
        return service.main(given, add_options)
    options = _parser().parse_args(given)
    logging.basicConfig(
        format="%(asctime)s %(levelname)s %(message)s", datefmt="%Y-%m-%d %H:%M:%S", level=logging.WARNING
    )
    log.setLevel(logging.INFO)
    stop = threading.Event()
    wake = threading.Event()

    def end(*_: Any) -> None:
        stop.set()
        wake.set()
        # A second signal does not wait for the upload under way.
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    try:
        return _watch(options, stop, wake)
    except (ConnectionFailed, Busy) as error:
        print(f"labdata-watch: the platform is away: {error}", file=sys.stderr)
        return EXIT_FAILED
    except (LabdataError, OSError, ValueError) as error:
        print(f"labdata-watch: {error}", file=sys.stderr)
        return EXIT_MISUSED


def _watch(options: argparse.Namespace, stop: threading.Event, wake: threading.Event) -> int:
    directory: Path = options.directory.resolve()
    if not directory.is_dir():
        print(f"labdata-watch: {directory} is not a folder", file=sys.stderr)
        return EXIT_MISUSED
    api_key = options.api_key_file.read_text().strip() if options.api_key_file is not None else None
    with Lab(options.base_url, api_key, progress=False, retry_seconds=RETRY_SECONDS) as lab:
        instrument = _instrument(lab, options, stop, wake)
        if instrument is None:
            return 0
        state = State(options.state or default_path(lab.transport.base_url, instrument, directory))
        watcher = Watcher(
            lab,
            directory,
            instrument,
            state,
            settle_seconds=options.settle,
            patterns=options.pattern,
            once=options.once,
            left_out=[] if options.api_key_file is None else [options.api_key_file],
        )
        listener = _announce(directory, stop, wake)
        # Connections of its own: an upload must neither wait for a heartbeat nor hold one up.
        own = Lab(options.base_url, api_key, progress=False, retry_seconds=0.0, timeout=REQUEST_SECONDS)
        heart = Heart(own, instrument, watcher)
        try:
            log.info("watching %s for %s", directory, options.instrument)
            if not options.once:
                heart.start()
            return _loop(watcher, options, stop, wake)
        finally:
            heart.stop()
            # A thread that waits for the system must not outlive the interpreter.
            stop.set()
            if listener is not None:
                listener.join()


def _loop(watcher: Watcher, options: argparse.Namespace, stop: threading.Event, wake: threading.Event) -> int:
    while not stop.is_set():
        wake.clear()
        watcher.step(time.monotonic())
        if options.once and watcher.is_settled:
            return EXIT_FAILED if watcher.failures else 0
        pause = options.poll if watcher.is_idle else min(options.poll, options.settle)
        wake.wait(max(pause, 0.0))
        stop.wait(MIN_PAUSE_SECONDS)
    return EXIT_FAILED if options.once else 0


def _instrument(
    lab: Lab, options: argparse.Namespace, stop: threading.Event, wake: threading.Event
) -> str | None:
    """Return the instrument's id, once the platform answers: a computer may start before its network."""
    is_away = False
    while not stop.is_set():
        try:
            return lab.instrument_id(options.instrument)
        except (ConnectionFailed, Busy) as error:
            if options.once:
                raise
            if not is_away:
                log.warning("the platform is away, trying again: %s", error)
            is_away = True
            wake.wait(options.poll)
    return None


def _announce(directory: Path, stop: threading.Event, wake: threading.Event) -> threading.Thread | None:
    """Wake the loop when the system announces a change; the folder is polled in any case."""
    if importlib.util.find_spec("watchfiles") is None:
        return None
    watchfiles: Any = importlib.import_module("watchfiles")

    def listen() -> None:
        try:
            for _ in watchfiles.watch(directory, stop_event=stop, raise_interrupt=False):
                wake.set()
        except (OSError, RuntimeError) as error:
            log.warning("changes are not announced, so the folder is polled: %s", error)

    logging.getLogger("watchfiles").setLevel(logging.ERROR)
    listener = threading.Thread(target=listen, daemon=True, name="changes")
    listener.start()
    return listener


if __name__ == "__main__":
    sys.exit(main())
