"""Options of the reading of a file, as the fields of a form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ._arguments import names
from ._json import encode
from .errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OPTIONS = frozenset(
    {
        "format",
        "encoding",
        "delimiter",
        "quote",
        "decimal",
        "thousands",
        "sheet",
        "header_row",
        "last_row",
        "null_values",
        "timezone",
        "date_format",
        "text_numbers",
        "error_cells",
        "invalid_bytes",
        "duplicate_headers",
    }
)

# What the `reading` of a result counts besides the options.
COUNTS = frozenset(
    {
        "lines_above",
        "units_row",
        "lines_below",
        "blank_lines",
        "short_rows",
        "null_text_numbers",
        "null_error_cells",
    }
)


def options_of(reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of options; a list is a repeated field, and what is None is left out.

    A `reading` of a result can be passed as it is. Another name is refused: the platform would ignore it,
    and read the file in another way than was meant.
    """
    unknown = sorted(set(reading) - OPTIONS - COUNTS)
    if unknown:
        message = f"no option of the reading of a file: {', '.join(unknown)}"
        raise InvalidArgument(message)
    return {name: _field(value) for name, value in reading.items() if name in OPTIONS and value is not None}


def import_fields(
    *,
    key: str | Sequence[str] | None,
    columns: Mapping[str, str | None] | None,
    lookups: Mapping[str, str] | None,
    linked: Sequence[Mapping[str, Any]] | None,
    dry_run: bool,
    **texts: str | None,
) -> dict[str, Any]:
    """Return the fields of an import besides the options of its reading; what is None is left out."""
    fields: dict[str, Any] = dict(texts)
    if key is not None:
        fields["key"] = names(key, "key")
    for name, value in (("columns", columns), ("lookups", lookups), ("linked", linked)):
        if value is not None:
            fields[name] = encode(value).decode()
    if dry_run:
        fields["dry_run"] = "true"
    return {name: value for name, value in fields.items() if value is not None}


def _field(value: Any) -> str | list[str]:
    if not isinstance(value, (list, tuple)):
        return str(value)
    items = cast("Sequence[Any]", value)
    return [str(item) for item in items]
