"""Training: from `manifest.json` to `result.json` and the artifact, or to `error.json`."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from . import events
from .failure import Exit, Failure, explain
from .processes import kill_descendants, limit_threads, use_private_caches
from .report import Reporter
from .run_directory import Manifest, check_combination, read_manifest, write_json


def run(run_directory: Path) -> Exit:
    """Trains a model. Always leaves either `result.json` or `error.json`."""
    events.open_log(run_directory / "events.jsonl")
    manifest: Manifest | None = None
    reporter: Reporter | None = None
    try:
        manifest = read_manifest(run_directory)
        if manifest.report is not None:
            reporter = Reporter(manifest.report)
            reporter.start()
            events.listen(reporter.add)
        events.begin_phase("preparing")
        check_combination(manifest)
        events.start_heartbeat()
        limit_threads(manifest.cpus)
        use_private_caches(run_directory)
        # Imports numpy and more: takes seconds, and needs the limits above.
        from . import training

        result = training.train(run_directory, manifest)
        write_json(run_directory / "result.json", result)
        events.begin_phase("done")
        if reporter is not None:
            reporter.finish("result", result)
        return Exit.OK
    except BaseException as error:  # The platform learns the reason of any end.
        traceback.print_exc()
        return fail(run_directory, manifest, reporter, error)
    finally:
        kill_descendants()


def fail(
    run_directory: Path,
    manifest: Manifest | None,
    reporter: Reporter | None,
    error: BaseException,
) -> Exit:
    """Writes and reports `error.json`, and returns the exit code."""
    failure = explain(error, manifest.time_limit_seconds if manifest else 0)
    # A result that was not delivered does not count.
    (run_directory / "result.json").unlink(missing_ok=True)
    write_json(run_directory / "error.json", failure.as_json())
    if reporter is not None:
        try:
            reporter.finish("error", failure.as_json())
        except Failure as undelivered:
            print(undelivered.message, file=sys.stderr)
    return failure.exit_code
