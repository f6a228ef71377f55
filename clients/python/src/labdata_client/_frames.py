"""Frames of pandas, polars and Arrow, read without importing any of these libraries.

A library is imported only where a result is turned into its frames.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Union, cast

from .errors import InvalidArgument, MissingLibrary

Row = Mapping[str, Any]
Frame = Any
"""A pandas, polars or pyarrow table; none of them is a dependency, so no type can be named."""
Rows = Union[Iterable[Row], Frame]

CHUNK_ROWS = 10_000


def is_frame(value: Any) -> bool:
    """Tell a frame from rows."""
    return _library(value) is not None


def _library(value: Any) -> str | None:
    module = type(value).__module__.partition(".")[0]
    name = type(value).__name__
    if (module, name) in {("pandas", "DataFrame"), ("polars", "DataFrame"), ("polars", "LazyFrame")}:
        return module
    if (module, name) in {("pyarrow", "Table"), ("pyarrow", "RecordBatch")}:
        return module
    # Subclasses, such as those of geopandas.
    for base in type(value).__mro__[1:]:
        if (base.__module__.partition(".")[0], base.__name__) == ("pandas", "DataFrame"):
            return "pandas"
    return None


def column_names(frame: Frame) -> list[str]:
    """Return the names of a frame's columns and of its index."""
    if _library(frame) == "pyarrow":
        return list(frame.schema.names)
    if type(frame).__name__ == "LazyFrame":
        return list(frame.collect_schema().names())
    index = frame.index.names if _library(frame) == "pandas" else ()
    return [str(name) for name in (*index, *frame.columns) if name is not None]


def rows(value: Rows) -> Iterator[dict[str, Any]]:
    """Iterate over the rows of a frame, or over given rows."""
    if is_frame(value):
        return _frame_rows(value)
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        message = f"rows are a frame or an iterable of mappings, not {type(value).__name__}"
        raise InvalidArgument(message)
    if isinstance(value, Mapping):
        message = "rows are a list of mappings, not one mapping"
        raise InvalidArgument(message)
    return map(_row, cast("Iterable[Row]", value))


def _row(row: Any) -> dict[str, Any]:
    if not isinstance(row, Mapping):
        message = f"a row is a mapping of columns to values, not {type(row).__name__}: {row!r:.100}"
        raise InvalidArgument(message)
    return dict(cast("Row", row))


def count(value: Rows) -> int | None:
    """Return the number of rows where it is known without reading them."""
    length = getattr(value, "height", None) if _library(value) == "polars" else None
    if isinstance(length, int):
        return length
    try:
        return len(cast("Sequence[Any]", value))
    except TypeError:
        return None


def _frame_rows(frame: Frame) -> Iterator[dict[str, Any]]:
    frame = _plain(frame)
    total = cast("int", frame.num_rows if _library(frame) == "pyarrow" else len(frame))
    for start in range(0, total, CHUNK_ROWS):
        names, columns = _chunk(frame, start, min(CHUNK_ROWS, total - start))
        for values in zip(*columns):
            yield dict(zip(names, values))


def _plain(frame: Frame) -> Frame:
    """Return a frame whose columns all have names of their own."""
    if type(frame).__name__ == "LazyFrame":
        frame = frame.collect()
    named = _with_named_index(frame) if _library(frame) == "pandas" else frame
    names = [str(name) for name in (named.schema.names if _library(named) == "pyarrow" else named.columns)]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        listed = ", ".join(map(repr, repeated))
        message = f"the frame has several columns of one name: {listed}; rename or drop them"
        raise InvalidArgument(message)
    return named


def _chunk(frame: Frame, start: int, length: int) -> tuple[list[str], list[list[Any]]]:
    if _library(frame) == "pandas":
        chunk = frame.iloc[start : start + length]
        return [str(name) for name in chunk.columns], [
            _pandas_values(chunk.iloc[:, i]) for i in range(chunk.shape[1])
        ]
    chunk = frame.slice(start, length)
    if _library(frame) == "polars":
        return list(chunk.columns), [_polars_values(column) for column in chunk.get_columns()]
    return list(chunk.schema.names), [column.to_pylist() for column in chunk.columns]


def _with_named_index(frame: Frame) -> Frame:
    """Turn a named index into columns; an unnamed one only counts rows."""
    names = [name for name in frame.index.names if name is not None]
    if not names:
        return frame
    # An index and a column of one name are found by the caller.
    return frame.reset_index(level=names, allow_duplicates=True)


def _polars_values(column: Any) -> list[Any]:
    # `to_list` would cut them off without a word.
    if type(column.dtype).__name__ == "Datetime" and column.dtype.time_unit == "ns":
        rest = column.dt.nanosecond() % 1000
        if (rest != 0).any():
            message = (
                f"column {column.name!r} has nanoseconds, and the platform stores microseconds: round it"
                " first, with dt.round('1us')"
            )
            raise InvalidArgument(message)
    return cast("list[Any]", column.to_list())


def _pandas_values(series: Any) -> list[Any]:
    values = cast("list[Any]", series.tolist())
    missing = cast("list[bool]", series.isna().tolist())
    if any(missing):
        return [None if absent else value for value, absent in zip(values, missing)]
    return values


def columns(value: Any) -> dict[str, list[Any]]:
    """Return a frame, rows, or a mapping of columns, column by column."""
    if is_frame(value):
        frame = _plain(value)
        total = cast("int", frame.num_rows if _library(frame) == "pyarrow" else len(frame))
        return dict(zip(*_chunk(frame, 0, total)))
    if isinstance(value, Mapping):
        given = cast("Mapping[str, Any]", value)
        return {name: values(column) for name, column in given.items()}
    found = list(rows(value))
    names = dict.fromkeys(itertools.chain.from_iterable(found))
    return {name: [row.get(name) for row in found] for name in names}


def values(column: Any) -> list[Any]:
    """Return the values of a list, an array, or a column of a frame."""
    if isinstance(column, list):
        return cast("list[Any]", column)
    library = type(column).__module__.partition(".")[0]
    if library == "pandas" and hasattr(column, "isna") and not is_frame(column):
        return _pandas_values(column)
    if library == "polars" and type(column).__name__ == "Series":
        return _polars_values(column)
    for name in ("to_pylist", "to_list", "tolist"):
        convert = getattr(column, name, None)
        if callable(convert):
            return cast("list[Any]", convert())
    if isinstance(column, (str, bytes)) or is_frame(column) or not isinstance(column, Iterable):
        message = f"a column is a list or an array of values, not {type(column).__name__}: {column!r:.100}"
        raise InvalidArgument(message)
    return list(cast("Iterable[Any]", column))


def library(name: str, extra: str) -> Any:
    """Import an optional library, or say how to install it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        message = f"this needs {name}: pip install 'labdata-client[{extra}]'"
        raise MissingLibrary(message, name=name) from None
