"""Values that are no measured numbers.

allotropy writes -0.0 for a cell without a number, such as an overflow, and names the cell's text in an
error document. A measured zero may be written as -0.000 too, so that its sign alone means nothing.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

NEGATIVE_ZERO = re.compile(rb"(?<![\w.])-0*[.,]?0+(?![\w.,]*[1-9])")


EMPTY = "the cell is empty"
NO_NUMBER = "the file has no number here"


class Flaw(NamedTuple):
    """An error document: its text, and the quantity or position that it is about."""

    text: str
    feature: str


def flaws(node: dict) -> list[Flaw]:
    """Returns the error documents of a node."""
    documents = node.get("error aggregate document", {}).get("error document", [])
    return [Flaw(as_text(it.get("error")), as_text(it.get("error feature"))) for it in documents]


def as_text(given: object) -> str:
    """Returns a value as a text; the empty one for a missing value."""
    return "" if given is None else str(given)


def reason_of(given: object) -> str:
    """Returns what a cell has in place of a number, as messages show it."""
    return as_text(given).strip()[:200] or EMPTY


def is_placeholder(value: float) -> bool:
    """Returns true for -0.0."""
    return value == 0 and math.copysign(1.0, value) < 0


def has_negative_zeros(content: bytes) -> bool:
    """Returns true if a number such as -0.00 stands in a text file."""
    # UTF-16 has a zero byte beside every character of numbers.
    return NEGATIVE_ZERO.search(content.replace(b"\0", b"")) is not None


class Judge:
    """Tells measured numbers from placeholders, for one file."""

    def __init__(self, content: bytes) -> None:
        self.zeros_are_written = has_negative_zeros(content)
        # Archives and spreadsheets hold their numbers in another form.
        if content[:2] == b"PK":
            self.zeros_are_written = False

    def value(self, given: object, found: list[Flaw], quantity: str) -> tuple[float | None, str | None]:
        """Returns the number of a single value, or the reason why there is none."""
        number, reason = finite(given)
        if number is None or not is_placeholder(number):
            return number, reason
        named = [flaw for flaw in found if similar(flaw.feature, quantity)] or found
        return self.replaced(named[0].text if named else None)

    def point(self, given: object, position: object, found: list[Flaw]) -> tuple[float | None, str | None]:
        """Returns the number of a point of a curve, or the reason why there is none."""
        number, reason = finite(given)
        if number is None or not is_placeholder(number):
            return number, reason
        for flaw in found:
            if position_of(flaw.feature) == position:
                return self.replaced(flaw.text)
        return self.replaced(None)

    def replaced(self, flaw: str | None) -> tuple[float | None, str | None]:
        """Returns what stands in the file where allotropy wrote -0.0."""
        if flaw is None:
            return (0.0, None) if self.zeros_are_written else (None, NO_NUMBER)
        try:
            # Some readers take a zero for an error.
            return (0.0, None) if float(flaw) == 0 else (None, flaw)
        except ValueError:
            return None, reason_of(flaw)


def finite(given: object) -> tuple[float | None, str | None]:
    """Returns a finite number, or the reason why there is none."""
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return None, reason_of(given)
    number = float(given)
    # pandas reads an empty cell as NaN, and some texts as well.
    reason = NO_NUMBER if math.isnan(number) else str(given)
    return (number, None) if math.isfinite(number) else (None, reason)


def similar(feature: str, quantity: str) -> bool:
    """Returns true if an error document names the quantity."""
    return bool(feature) and feature.lower() in (quantity.lower(), quantity.lower().split(" (")[0])


def position_of(feature: str) -> float | None:
    """Returns the position that an error document names, such as `42030.0s` or `450nm`."""
    match = re.fullmatch(r"([0-9.eE+-]+)\s*[A-Za-z]*", feature)
    try:
        return float(match[1]) if match else None
    except ValueError:
        return None
