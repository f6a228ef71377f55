"""JSON values from the values of numpy and pandas. NaN and infinities become null."""

from __future__ import annotations

import datetime
import math
from typing import Any


def finite(value: Any) -> Any:
    """Returns the value as JSON represents it, recursively."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return plain(value)


def plain(value: Any) -> Any:
    """Returns a scalar of Python for a scalar of Python, numpy or pandas."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if hasattr(value, "item") and not isinstance(value, (int, float)):
        value = value.item()
    if isinstance(value, float):
        # Also turns a numpy float64, which is a float, into Python's.
        return float(value) if math.isfinite(value) else None
    if isinstance(value, (datetime.datetime, datetime.date)):
        return None if value != value else value.isoformat()
    return value


def label_text(label: Any) -> str:
    """Returns a class label as a key of a JSON object."""
    label = plain(label)
    if isinstance(label, bool):
        return "true" if label else "false"
    return str(label)


def quoted(value: Any, limit: int = 60) -> str:
    """Returns a value for a message: in quotes, and shortened."""
    text = label_text(value)
    return f'"{text if len(text) <= limit else text[: limit - 1] + "…"}"'


def listed(items: list[str], limit: int = 5) -> str:
    """Returns the items for a message: the first few, and the number of the rest."""
    rest = len(items) - limit
    shown = ", ".join(items[:limit])
    return shown if rest <= 0 else f"{shown} and {rest} more"
