"""Command line of the trainer: `train RUN_DIRECTORY` or `predict RUN_DIRECTORY`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from .failure import Exit
from .processes import end_on_term

USAGE = "usage: tabular.py|multimodal.py train|predict RUN_DIRECTORY"


def main(arguments: list[str]) -> NoReturn:
    """Runs a command and ends the process with its exit code."""
    arguments = arguments or arguments_of_environment()
    if len(arguments) != 2 or arguments[0] not in ("train", "predict"):
        print(USAGE, file=sys.stderr)
        sys.exit(2)
    end_on_term()
    command, directory = arguments[0], Path(arguments[1]).resolve()
    # Libraries create files in the working directory.
    os.chdir(directory)
    # Contains secrets, which descendants need not inherit.
    manifest = os.environ.pop("LABDATA_TRAINER_MANIFEST", None)
    if manifest is not None:
        (directory / "manifest.json").write_text(manifest, encoding="utf-8")
    status: int = Exit.INTERNAL
    if command == "train":
        from . import train

        status = train.run(directory)
    else:
        from . import predict

        status = predict.run(directory)
    sys.stdout.flush()
    sys.stderr.flush()
    # Without waiting for threads of libraries.
    os._exit(status)


def arguments_of_environment() -> list[str]:
    """Returns the arguments for a backend that passes none, from environment variables."""
    command = os.environ.get("LABDATA_TRAINER_COMMAND")
    directory = os.environ.get("LABDATA_TRAINER_DIRECTORY", ".")
    return [command, directory] if command else []
