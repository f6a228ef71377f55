"""Processes and threads: TERM ends everything at once, and libraries use the granted processors."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path

from .failure import Exit

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)


def limit_threads(cpus: int) -> None:
    """Limits the threads of numeric libraries. Takes effect only before they are imported."""
    for name in THREAD_VARIABLES:
        os.environ[name] = str(cpus)
    # Threads that wait for each other spin 300 times as long by default. Where other processes
    # use the processors too, a fit then takes several times as long.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def use_private_caches(run_directory: Path) -> None:
    """Directs the caches of libraries into the run directory, and denies them a model hub."""
    caches = run_directory / "cache"
    caches.mkdir(exist_ok=True)
    os.environ["MPLCONFIGDIR"] = str(caches / "matplotlib")
    os.environ["MPLBACKEND"] = "Agg"
    os.environ.setdefault("HF_HOME", str(caches / "huggingface"))
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
    os.environ["TORCH_HOME"] = str(caches / "torch")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def end_on_term() -> None:
    """Ends this process and all its descendants when TERM arrives, with status 143.

    A thread waits for the signal: Python runs signal handlers between two bytecodes of the main
    thread, which may spend minutes in one call of a library. Must run before other threads start,
    since they inherit the blocked signal.
    """
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)

    def wait() -> None:
        signal.sigwait(signals)
        kill_descendants()
        os._exit(Exit.CANCELLED)

    threading.Thread(target=wait, name="termination", daemon=True).start()


def kill_descendants() -> None:
    """Kills all descendants of this process, children that they start in the meantime included."""
    for _ in range(10):
        found = descendants(os.getpid())
        if not found:
            return
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def descendants(root: int) -> list[int]:
    """Returns the running descendants of a process; none where /proc does not exist."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] != b"Z":
            children.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, waiting = [], [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found.extend(below)
        waiting.extend(below)
    return found
