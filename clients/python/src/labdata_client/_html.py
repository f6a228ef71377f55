"""HTML for notebooks: small tables, everything escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_ROWS = 50
MAX_CHARACTERS = 200


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, caption: str = "") -> str:
    """Return a table with at most `MAX_ROWS` rows and a line that counts the rest."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body: list[str] = []
    left_out = 0
    for number, row in enumerate(rows):
        if number >= MAX_ROWS:
            left_out += 1
            continue
        body.append("<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>")
    note = f"<tr><td colspan={len(columns)}>… {left_out} more rows</td></tr>" if left_out else ""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{''.join(body)}{note}</tbody></table>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = str(value)
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS] + "…"
    return escape(text)
