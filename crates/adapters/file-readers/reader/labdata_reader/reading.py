"""Finds the reader of a file, and reads it."""

from __future__ import annotations

import importlib
import io
import json
import signal
import traceback
from pathlib import PurePosixPath
from typing import Any

from .exports import complete
from .registry import READERS
from .rows import Rows
from .times import Times

# Seconds for one reader. A damaged file can keep a reader busy for a long time.
TIME_LIMIT = 20

# Characters of a refusal.
REASON = 300


class Refusal(Exception):
    """A reader does not take the file."""


class TooSlow(BaseException):
    """A reader takes too long; no reader catches it."""


def candidates(file_name: str) -> list[str]:
    """Returns the readers of a file's kind, which its extension tells."""
    extension = PurePosixPath(file_name.replace("\\", "/")).suffix[1:].lower()
    return [name for name, reader in READERS.items() if extension in reader["extensions"]]


def read(content: bytes, file_name: str, wanted: str, preferred: str | None, zone: str | None) -> dict[str, Any]:
    """Reads a file with the wanted reader, or, for `auto`, with the only one that takes it.

    `preferred` is the reader of the instrument's files before: it is tried first, and its success ends the
    search.
    """
    refusals: list[dict[str, str]] = []
    if wanted != "auto":
        names = [wanted]
    else:
        names = candidates(file_name)
        if preferred in names:
            result = attempt(content, file_name, preferred, zone, refusals)
            if result is not None:
                return {**result, "candidates": [preferred], "refusals": []}
            names = [name for name in names if name != preferred]
    found = []
    for name in names:
        result = attempt(content, file_name, name, zone, refusals)
        if result is not None:
            found.append(result)
    fitting = [result["reader"] for result in found]
    chosen = found[0] if len(found) == 1 else {"reader": None}
    return {**chosen, "candidates": fitting, "refusals": refusals}


def attempt(
    content: bytes, file_name: str, name: str, zone: str | None, refusals: list[dict[str, str]]
) -> dict[str, Any] | None:
    """Reads a file with one reader; notes the refusal if it does not take it."""
    try:
        return read_with(content, file_name, name, zone)
    except Refusal as refusal:
        reason = str(refusal)
    except TooSlow:
        reason = f"it took more than {TIME_LIMIT} s"
    except MemoryError:
        reason = "it needs more memory than there is"
    except BaseException as error:  # Readers raise errors of all kinds, SystemExit of C libraries included.
        reason = described(error)
    finally:
        signal.alarm(0)
    refusals.append({"reader": name, "reason": reason[:REASON]})
    return None


def read_with(content: bytes, file_name: str, name: str, zone: str | None) -> dict[str, Any]:
    """Reads a file with one reader."""
    from allotropy.allotrope.allotrope import serialize_and_validate_allotrope
    from allotropy.named_file_contents import NamedFileContents

    module, class_name = READERS[name]["parser"].split(":")
    parser_class = getattr(importlib.import_module(module), class_name)
    signal.signal(signal.SIGALRM, too_slow)
    signal.alarm(TIME_LIMIT)
    times = Times(zone)
    parser = parser_class(times)
    model = parser.to_allotrope(NamedFileContents(io.BytesIO(content), file_name))
    document = serialize_and_validate_allotrope(model)
    rows = Rows(name, content, times)
    rows.take(document)
    complete(rows, content)
    if not any(row["value"] is not None or row["x_name"] for row in rows.measurements):
        raise Refusal("it finds no measurement in the file")
    return {
        "reader": name,
        "measurements": rows.measurements,
        "curves": rows.curves,
        "doubts": times.doubts() + rows.doubts,
        "document": json.loads(json.dumps(document), parse_constant=str),
    }


def too_slow(_signal: int, _frame: object) -> None:
    """Ends a reader that takes too long."""
    raise TooSlow


def described(error: BaseException) -> str:
    """Returns an error as one line that a person can read."""
    message = " ".join(str(error).split())
    if type(error).__module__.startswith("allotropy") and message:
        return message
    place = traceback.extract_tb(error.__traceback__)
    inside = next((it.name for it in reversed(place) if "allotropy" in it.filename), "it")
    return f"{type(error).__name__} in {inside}: {message}" if message else f"{type(error).__name__} in {inside}"
