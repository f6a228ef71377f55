"""Frames of pandas, polars and Arrow from columns of values, as JSON has them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from . import _frames
from .errors import InvalidArgument

Columns = Mapping[str, Sequence[Any]]

_INTEGERS = frozenset({"int8", "int16", "int32", "int64"})


def pandas_frame(columns: Columns, types: Mapping[str, str]) -> Any:
    """Return a pandas frame; integers with nulls are `Int64`."""
    pandas = _frames.library("pandas", "pandas")
    table: Any = arrow_table(columns, types)
    frame = table.to_pandas()
    # pandas has no null among NumPy's integers, and would make them floats, which change large ones.
    for position, column in enumerate(table.columns):
        if column.null_count and str(column.type) in _INTEGERS:
            extension = {column.type: pandas.Int64Dtype()}
            frame.isetitem(position, column.to_pandas(types_mapper=extension.get))
    return frame


def arrow_table(columns: Columns, types: Mapping[str, str]) -> Any:
    """Return a pyarrow table."""
    pa = _frames.library("pyarrow", "arrow")
    errors = (ValueError, TypeError, OverflowError, pa.ArrowException)
    plain = {"integer": pa.int64(), "float": pa.float64(), "boolean": pa.bool_()}
    texts = {"datetime": pa.timestamp("us", "UTC"), "date": pa.date32()}

    def array(values: list[Any], kind: str | None) -> Any:
        if kind in texts:
            return pa.array(values, pa.string()).cast(texts[kind])
        return pa.array(values) if kind is None else pa.array(values, plain.get(kind, pa.string()))

    return pa.table(
        {name: _built(array, errors, name, values, types.get(name)) for name, values in columns.items()}
    )


def polars_frame(columns: Columns, types: Mapping[str, str]) -> Any:
    """Return a polars frame."""
    pl = _frames.library("polars", "polars")
    errors = (ValueError, TypeError, OverflowError, pl.exceptions.PolarsError)
    plain = {"integer": pl.Int64, "float": pl.Float64, "boolean": pl.Boolean}

    def series(values: list[Any], kind: str | None) -> Any:
        if kind is None and {type(value) for value in values} - {type(None)} == {int, float}:
            kind = "float"
        dtype = None if kind is None else plain.get(kind, pl.String)
        column = pl.Series(values, dtype=dtype)
        if kind == "datetime":
            return column.str.to_datetime("%+", time_unit="us", time_zone="UTC")
        return column.str.to_date("%Y-%m-%d") if kind == "date" else column

    return pl.DataFrame(
        {name: _built(series, errors, name, values, types.get(name)) for name, values in columns.items()}
    )


def _built(
    make: Callable[[list[Any], str | None], Any],
    errors: tuple[type[Exception], ...],
    name: str,
    values: Sequence[Any],
    kind: str | None,
) -> Any:
    """Make a column of its type, or, where values were changed to others, of the type that these have."""
    try:
        return make(_cells(values, kind), kind)
    except errors as error:
        failure = error
    try:
        return make(_cells(values, None), None)
    except errors:
        message = f"column {name!r} has values of several types, and a column of a frame has one: {failure}"
        raise InvalidArgument(message) from failure


def _cells(values: Sequence[Any], kind: str | None) -> list[Any]:
    """Return objects and lists as texts, and so each value of a JSON column, so that it can be read back."""
    # Most columns have nothing to change, which the few types of their values tell.
    found: set[Any] = {type(value) for value in values}
    if kind == "json":
        return [None if value is None else _text(value) for value in values]
    if (
        kind == "integer"
        and _has(found, float)
        and not all(float(value or 0).is_integer() for value in values)
    ):
        # pyarrow would cut them off without a word.
        message = "a fraction is no integer"
        raise ValueError(message)
    if kind in ("datetime", "date") and _has(found, datetime.date):
        return [value.isoformat() if isinstance(value, datetime.date) else value for value in values]
    if _has(found, dict, list):
        return [_text(value) if isinstance(value, (dict, list)) else value for value in values]
    return list(values)


def _has(found: set[Any], *kinds: type) -> bool:
    return any(issubclass(kind, kinds) for kind in found)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
