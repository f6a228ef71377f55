"""Progress of a training: one JSON object per line of `events.jsonl`."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from .numbers import finite

HEARTBEAT_SECONDS = 5.0

_file: int | None = None
_listener: Callable[[dict[str, object]], None] | None = None
_phase = "preparing"
_started = time.monotonic()


def open_log(path: Path) -> None:
    """Creates the event log. Events before this call are dropped."""
    global _file
    _file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)


def listen(listener: Callable[[dict[str, object]], None]) -> None:
    """Passes all later events to a listener, too."""
    global _listener
    _listener = listener


def emit(kind: str, **fields: object) -> None:
    """Appends one event. A single write, so concurrent events stay whole lines."""
    if _file is None:
        return
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    event = {"at": at, "type": kind, **fields}
    os.write(_file, json.dumps(finite(event), allow_nan=False).encode() + b"\n")
    if _listener is not None:
        _listener(event)


def begin_phase(name: str) -> None:
    """Emits the begin of a phase."""
    global _phase
    _phase = name
    emit("phase", phase=name)


def warn(code: str, message: str) -> None:
    """Emits a warning for the person who asked for the model."""
    emit("warning", code=code, message=message)


def start_heartbeat() -> None:
    """Emits a heartbeat every [`HEARTBEAT_SECONDS`] until the process ends."""

    def beat() -> None:
        while True:
            time.sleep(HEARTBEAT_SECONDS)
            elapsed = round(time.monotonic() - _started, 1)
            emit("heartbeat", phase=_phase, elapsed_seconds=elapsed, memory_bytes=resident_bytes())

    threading.Thread(target=beat, name="heartbeat", daemon=True).start()


def resident_bytes() -> int | None:
    """Returns the memory in use by this process, in bytes; none where /proc does not exist."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
