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
    if len(arguments) != 2 or arguments[0] not in ("train", "predict"):
        print(USAGE, file=sys.stderr)
        sys.exit(2)
    end_on_term()
    command, directory = arguments[0], Path(arguments[1]).resolve()
    # Libraries create files in the working directory.
    os.chdir(directory)
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
