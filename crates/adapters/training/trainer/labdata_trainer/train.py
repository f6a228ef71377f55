"""Training: from `manifest.json` to `result.json` and the artifact, or to `error.json`."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from . import events, transfer
from .failure import Exit, Failure, explain
from .processes import kill_descendants, limit_threads, use_private_caches
from .run_directory import Manifest, read_manifest, write_json


def run(run_directory: Path) -> Exit:
    """Trains a model. Always leaves either `result.json` or `error.json`."""
    events.open_log(run_directory / "events.jsonl")
    manifest: Manifest | None = None
    try:
        events.begin_phase("preparing")
        manifest = read_manifest(run_directory)
        events.start_heartbeat()
        limit_threads(manifest.cpus)
        use_private_caches(run_directory)
        # Imports numpy and more: takes seconds, and needs the limits above.
        from . import training

        write_json(run_directory / "result.json", training.train(run_directory, manifest))
        transfer.send(run_directory, manifest, "result", "result.json")
        events.begin_phase("done")
        return Exit.OK
    except BaseException as error:  # The platform learns the reason of any end.
        traceback.print_exc()
        return fail(run_directory, manifest, error)
    finally:
        kill_descendants()


def fail(run_directory: Path, manifest: Manifest | None, error: BaseException) -> Exit:
    """Writes `error.json`, and returns the exit code."""
    failure = explain(error, manifest.time_limit_seconds if manifest else 0)
    # A result that was not delivered does not count.
    (run_directory / "result.json").unlink(missing_ok=True)
    write_json(run_directory / "error.json", failure.as_json())
    if manifest is not None:
        try:
            transfer.send(run_directory, manifest, "error", "error.json")
        except Failure as undelivered:
            print(undelivered.message, file=sys.stderr)
    return failure.exit_code
