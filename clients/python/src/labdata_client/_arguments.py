"""Arguments of another shape than wanted: taken where there is one meaning, refused in words elsewhere."""

from __future__ import annotations

import datetime
import numbers
import operator
import os
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from . import _frames
from .errors import InvalidArgument, local_files


def names(given: Any, argument: str) -> list[Any]:
    """Return a list of names or keys; a text is one of them."""
    return [given] if isinstance(given, str) else listed(given, argument)


def listed(given: Any, argument: str, wanted: str = "a list") -> list[Any]:
    """Return a list of values in their order; a text, a mapping or a frame is none."""
    if isinstance(given, (str, bytes, Mapping)) or _frames.is_frame(given) or not isinstance(given, Iterable):
        raise _refusal(given, argument, wanted)
    try:
        return list(cast("Iterable[Any]", given))
    except TypeError as error:
        # An array of NumPy without dimensions.
        raise _refusal(given, argument, wanted) from error


def mapping(given: Any, argument: str) -> dict[str, Any]:
    """Return a mapping, or an empty one for None."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise _refusal(given, argument, "a mapping of names to values")
    return dict(cast("Mapping[str, Any]", given))


def count(given: Any, argument: str) -> int | None:
    """Return a whole number, or None."""
    if given is None:
        return None
    try:
        return operator.index(given)
    except TypeError as error:
        raise _refusal(given, argument, "a whole number") from error


def seconds(given: Any, argument: str) -> float:
    """Return a duration in seconds."""
    number = float(cast("Any", given)) if isinstance(given, numbers.Real) else -1.0
    if isinstance(given, bool) or not number >= 0:
        raise _refusal(given, argument, "a number of seconds")
    return number


def key_text(given: Any, argument: str) -> str:
    """Return an id, a key or a name as text; keys of rows may be integers."""
    if isinstance(given, bool):
        raise _refusal(given, argument, "a name or an id")
    if isinstance(given, (str, uuid.UUID)):
        return str(given)
    try:
        return str(operator.index(given))
    except TypeError as error:
        raise _refusal(given, argument, "a name or an id") from error


def path_part(given: Any, argument: str) -> str:
    """Return an id, a key or a name as a part of a path."""
    text = key_text(given, argument)
    try:
        return quote(text, safe="")
    except UnicodeEncodeError as error:
        raise _refusal(given, argument, "a text of whole characters") from error


def moment(given: Any, argument: str) -> str:
    """Return a point in time as text."""
    if isinstance(given, str):
        return given
    if not isinstance(given, datetime.datetime):
        raise _refusal(given, argument, "a datetime or its text")
    return given.isoformat()


def local_path(given: Any) -> Path:
    """Return a path of this machine; one with a slash at its end is a directory, which is made."""
    try:
        text = os.fsdecode(given)
    except TypeError as error:
        raise _refusal(given, "to", "a path") from error
    path = Path(text)
    if text.endswith(("/", os.sep)):
        with local_files():
            path.mkdir(parents=True, exist_ok=True)
    return path


def _refusal(given: Any, argument: str, wanted: str) -> InvalidArgument:
    return InvalidArgument(f"{argument} is {wanted}, not {type(given).__name__}: {given!r:.100}")
