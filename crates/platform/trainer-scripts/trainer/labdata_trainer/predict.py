"""Warm predictor: loads an artifact once, then answers requests from standard input."""

from __future__ import annotations

import json
import shutil
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import frames, transfer
from .failure import Exit, explain_loading
from .processes import kill_descendants, limit_threads, use_private_caches

if TYPE_CHECKING:
    from .server import Predictor


def run(run_directory: Path) -> Exit:
    """Answers requests until standard input ends."""
    output = frames.claim_stdout()
    frames.widen(sys.stdin.fileno(), output.fileno())
    try:
        predictor = start(run_directory)
    except BaseException as error:  # The platform learns the reason of any end.
        traceback.print_exc()
        failure = explain_loading(error)
        frames.write_frame(output, frames.encode({"type": "failed", **failure.as_json()}))
        return failure.exit_code
    frames.write_frame(output, frames.encode(predictor.ready()))
    try:
        return predictor.serve(sys.stdin.buffer, output)
    except BrokenPipeError:
        return Exit.OK
    finally:
        kill_descendants()


def start(run_directory: Path) -> Predictor:
    """Unpacks the artifact and loads its model."""
    order: dict[str, Any] = {}
    if (run_directory / "manifest.json").exists():
        order = json.loads((run_directory / "manifest.json").read_text())
    limit_threads(max(1, int(order.get("cpus") or 1)))
    use_private_caches(run_directory)
    # Imports numpy and more: takes seconds, and needs the limits above.
    from . import artifact
    from .server import Predictor

    packed = transfer.fetch(
        str(order.get("artifact") or artifact.NAME), run_directory / artifact.NAME, "The artifact"
    )
    unpacked = run_directory / "unpacked"
    if unpacked.exists():
        shutil.rmtree(unpacked)
    manifest = artifact.unpack(packed, unpacked, order.get("sha256"))
    return Predictor(manifest, load(manifest, unpacked / "predictor"), run_directory)


def load(manifest: dict[str, Any], directory: Path) -> Any:
    """Loads the model. Runs pickles, so only the sandbox may come here."""
    if manifest["task_type"] == "tabular":
        from . import tabular_model

        return tabular_model.load(directory)
    from . import multimodal_model

    return multimodal_model.load(directory, manifest["problem_type"])
