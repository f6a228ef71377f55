"""JSON as the platform takes it, including NumPy scalars, timestamps and missing values."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, cast

from .errors import InvalidArgument

_MISSING_TYPES = frozenset({"NAType", "NaTType"})


def encode(value: Any) -> bytes:
    """Encode `value`; NaN becomes null, an infinite number is an error that names its place."""
    try:
        return _dumps(value)
    except InvalidArgument:
        raise
    except ValueError:
        pass
    except TypeError as error:
        raise InvalidArgument(str(error)) from error
    try:
        return _dumps(_without_nan(value, ()))
    except UnicodeEncodeError as error:
        message = f"a text has half of a character, which JSON cannot hold: {error}"
        raise InvalidArgument(message) from error


def _dumps(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain)
    return text.encode()


def decoded(text: str, path: str) -> Any:
    """Return the value of a JSON text; a number that a float cannot hold is an error, not another number."""
    try:
        return json.loads(text, parse_float=_exact, parse_constant=_refused)
    except ValueError as error:
        message = f"{path}: a JSON column of a frame holds JSON texts, and {text!r:.100} is none: {error}"
        raise InvalidArgument(message) from error


def is_composite(text: str) -> bool:
    """Tell whether a text is the JSON of an object or of a list."""
    if text[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _exact(text: str) -> float:
    number = float(text)
    if decimal.Decimal(repr(number)) != decimal.Decimal(text):
        message = f"{text} has more digits than a float"
        raise ValueError(message)
    return number


def _refused(constant: str) -> Any:
    message = f"JSON has no {constant}"
    raise ValueError(message)


def _plain(value: Any) -> Any:  # noqa: PLR0911 - one line per type
    if type(value).__name__ in _MISSING_TYPES:
        return None
    if isinstance(value, datetime.datetime):
        return _datetime(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, decimal.Decimal):
        return _decimal(value)
    if isinstance(value, (Mapping, set, frozenset, Iterator)):
        if isinstance(value, Mapping):
            return dict(cast("Mapping[str, Any]", value))
        return list(cast("Iterator[Any]", value))
    for name in ("tolist", "to_list", "to_pylist", "as_py", "item"):
        convert = getattr(value, name, None)
        if callable(convert):
            return convert()
    message = f"{type(value).__name__} has no form in JSON: {value!r:.100}"
    raise InvalidArgument(message)


def _datetime(value: datetime.datetime) -> str:
    if getattr(value, "nanosecond", 0):
        message = (
            f"{value.isoformat()} has nanoseconds, and the platform stores microseconds: round the column"
            " first, as pandas does with dt.round('us')"
        )
        raise InvalidArgument(message)
    return value.isoformat(timespec="microseconds")


def _decimal(value: decimal.Decimal) -> Any:
    """Return a number with the same digits, else a text, which a float column refuses."""
    if not value.is_finite():
        return float(value)
    if value == value.to_integral_value():
        return int(value)
    number = float(value)
    return number if decimal.Decimal(repr(number)) == value else str(value)


def _without_nan(value: Any, place: tuple[Any, ...]) -> Any:
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isinf(value):
            message = f"{_path(place)}: JSON has no {value!r}"
            raise InvalidArgument(message)
        return value
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {key: _without_nan(inner, (*place, key)) for key, inner in items}
    if isinstance(value, (list, tuple)):
        return [_without_nan(inner, (*place, i)) for i, inner in enumerate(cast("list[Any]", value))]
    if value is None or isinstance(value, (str, int)):
        return value
    plain = _plain(value)
    return _without_nan(plain, place) if plain is not value else plain


def _path(place: tuple[Any, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
