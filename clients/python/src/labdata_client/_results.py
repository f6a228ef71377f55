"""Results: lists of dicts that turn into frames and show themselves in notebooks.

Values in dicts are those of JSON whichever libraries are installed (a datetime is a text); frames have
the types of the columns.
"""

from __future__ import annotations

import datetime
import html
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _frames
from ._html import table as html_table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Columns = Mapping[str, Sequence[Any]]


class Record(dict[str, Any]):
    """An answer's object: `file["file_id"]` and `file.file_id` are the same."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def _repr_html_(self) -> str:
        return html_table(("field", "value"), self.items())


class WriteResult(Record):
    """Outcome of a write."""

    @property
    def job_execution_id(self) -> str | None:
        """Execution that the write is recorded under; None after a dry run."""
        return self["job_execution_id"]

    @property
    def tables(self) -> list[dict[str, Any]]:
        """Per table write: `created`, `updated`, `deleted`, `ids`, …."""
        return self["tables"]

    @property
    def series(self) -> list[dict[str, Any]]:
        """Per series: `parent_id`, `points_written`, `points_replaced`."""
        return self["series"]

    @property
    def refs(self) -> dict[str, str]:
        """Primary key of every labeled row, by label."""
        return self["refs"]

    def _repr_html_(self) -> str:
        names = ("table", "created", "updated", "deleted")
        rows = [[entry.get(name) for name in names] for entry in self.tables]
        return html_table(names, rows, caption=f"{len(self.series)} series")


class Preview(Record):
    """Table of a file, as an import would read it."""

    def _repr_html_(self) -> str:
        headers = [column["header"] for column in self["columns"]]
        types = [" ".join(filter(None, (column["data_type"], column["unit"]))) for column in self["columns"]]
        reading = {name: value for name, value in self["reading"].items() if value not in (None, "", [])}
        count = self["row_count"]
        caption = f"the first {self['rows_read']} rows were read" if count is None else f"{count} rows"
        parts = [html_table(headers, [types, *self["rows"]], caption=caption)]
        if self["doubts"]:
            rows = [
                (doubt["path"], doubt["message"], " or ".join(map(str, doubt["options"])))
                for doubt in self["doubts"]
            ]
            parts.insert(0, html_table(("doubt", "message", "options"), rows))
        parts.append(html_table(("option", "value"), reading.items()))
        return "".join(parts)


_INTEGERS = frozenset({"int8", "int16", "int32", "int64"})


class _Frames:
    """Conversion to frames, from an Arrow stream where there is one, else from the columns."""

    _stream: bytes | None
    _types: Mapping[str, str]

    def _columns(self) -> Columns:
        raise NotImplementedError

    def to_arrow(self) -> pa.Table:
        """Return a pyarrow table."""
        if self._stream is not None:
            return _read_arrow(self._stream)
        return _arrow_table(self._columns(), self._types)

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas frame."""
        pandas = _frames.library("pandas", "pandas")
        table: Any = self.to_arrow()
        frame = table.to_pandas()
        # pandas has no null among NumPy's integers, and would make them floats, which change large ones.
        for position, column in enumerate(table.columns):
            if column.null_count and str(column.type) in _INTEGERS:
                types = {column.type: pandas.Int64Dtype()}
                frame.isetitem(position, column.to_pandas(types_mapper=types.get))
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Return a polars frame; needs no pyarrow."""
        if self._stream is not None:
            return _read_polars(self._stream)
        return _polars_frame(self._columns(), self._types)


class Rows(list[dict[str, Any]], _Frames):
    """Rows of a table or of a query."""

    def __init__(
        self,
        rows: Iterable[dict[str, Any]] = (),
        *,
        columns: Sequence[str] | None = None,
        types: Mapping[str, str] | None = None,
        stream: bytes | None = None,
    ) -> None:
        super().__init__(rows)
        self._names = columns
        self._types = types or {}
        self._stream = stream

    @classmethod
    def from_arrow(cls, stream: bytes) -> Rows:
        """Rows of an Arrow stream."""
        columns = _read_columns(stream)
        rows = [dict(zip(columns, row)) for row in zip(*columns.values())]
        return cls(rows, columns=list(columns), stream=stream)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, also where there is no row."""
        if self._names is not None:
            return list(self._names)
        return list(dict.fromkeys(name for row in self for name in row))

    def _columns(self) -> Columns:
        return {name: [row.get(name) for row in self] for name in self.columns}

    def _repr_html_(self) -> str:
        names = self.columns
        rows = ([row.get(name) for name in names] for row in self)
        return html_table(names, rows, caption=f"{len(self)} rows")


class Report(str):
    """A page of HTML, which notebooks show."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        page = html.escape(self, quote=True)
        return f'<iframe srcdoc="{page}" sandbox="" style="width: 100%; height: 40em; border: 0"></iframe>'


class Curve(Record):
    """The points of one row in one raw table."""

    @property
    def parent(self) -> Any:
        """Primary key of the row."""
        return self["parent"]

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The values, column by column."""
        return self["columns"]

    @property
    def points(self) -> int:
        """Number of points."""
        return self["points"]


class Curves(list[Curve], _Frames):
    """Curves of many rows. As a frame: one row per point, the parent's key first."""

    def __init__(
        self,
        *,
        parent_name: str,
        curves: Sequence[Mapping[str, Any]] | None = None,
        stream: bytes | None = None,
        parents: Sequence[Any] | None = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        self._parent_name = parent_name
        self._stream = stream
        self._parents = parents
        self._types = types or {}
        if stream is not None:
            super().__init__(self._split(stream))
        else:
            super().__init__(self._with_points([Curve(curve) for curve in curves or ()]))

    def _with_points(self, curves: list[Curve]) -> list[Curve]:
        """Leave out empty curves of rows that the caller did not name."""
        if self._parents is None:
            return [curve for curve in curves if curve.points]
        return curves

    def _split(self, stream: bytes) -> list[Curve]:
        found = _read_columns(stream)
        names = list(found)
        keys = found[names[0]]
        bounds = [i for i in range(len(keys)) if i == 0 or keys[i] != keys[i - 1]] + [len(keys)]
        curves = {
            keys[start]: Curve(
                parent=keys[start],
                columns={name: found[name][start:end] for name in names[1:]},
                points=end - start,
            )
            for start, end in zip(bounds, bounds[1:])
            if end > start
        }
        if self._parents is None:
            return list(curves.values())
        empty: dict[str, list[Any]] = {name: [] for name in names[1:]}
        return [
            curves.get(parent) or Curve(parent=parent, columns=dict(empty), points=0)
            for parent in self._parents
        ]

    def _columns(self) -> Columns:
        columns: dict[str, list[Any]] = {self._parent_name: []}
        for curve in self:
            columns[self._parent_name].extend([curve.parent] * curve.points)
            for name, values in curve.columns.items():
                columns.setdefault(name, []).extend(values)
        return columns

    def _repr_html_(self) -> str:
        rows = [(curve.parent, curve.points, ", ".join(curve.columns)) for curve in self]
        return html_table((self._parent_name, "points", "columns"), rows, caption=f"{len(self)} curves")


class Predictions(Rows):
    """One dict per row: `prediction`, and `probabilities` by class (None unless the model classifies)."""

    def __init__(
        self,
        rows: Iterable[dict[str, Any]],
        *,
        model_id: str,
        model_name: str,
        annotations: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(rows, columns=("prediction", "probabilities"))
        self.model_id = model_id
        self.model_name = model_name
        self.annotations = annotations
        """Masks of images, for `annotate`; None unless the model segments images."""

    @property
    def predictions(self) -> list[Any]:
        """The predictions alone."""
        return [row["prediction"] for row in self]

    @property
    def probabilities(self) -> list[dict[str, float]] | None:
        """Per row, the probability of each class."""
        if not self or self[0]["probabilities"] is None:
            return None
        return [row["probabilities"] for row in self]

    def _columns(self) -> Columns:
        columns: dict[str, list[Any]] = {"prediction": self.predictions}
        probabilities = self.probabilities or []
        for name in dict.fromkeys(name for row in probabilities for name in row):
            columns[f"probability_{name}"] = [row.get(name) for row in probabilities]
        return columns


# --- Arrow ------------------------------------------------------------------------------------------------


def _read_arrow(stream: bytes) -> Any:
    return _frames.library("pyarrow", "arrow").ipc.open_stream(stream).read_all()


def _read_polars(stream: bytes) -> Any:
    return _frames.library("polars", "polars").read_ipc_stream(io.BytesIO(stream))


def _read_columns(stream: bytes) -> dict[str, list[Any]]:
    try:
        found = _frames.columns(_read_arrow(stream))
    except ModuleNotFoundError:
        found = _frames.columns(_read_polars(stream))
    return {name: _json_values(values) for name, values in found.items()}


def _json_values(values: list[Any]) -> list[Any]:
    """Datetimes and dates as JSON has them."""
    if any(isinstance(value, datetime.date) for value in values):
        return [_json_date(value) for value in values]
    return values


def _json_date(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        fraction = f".{value.microsecond:06}".rstrip("0") if value.microsecond else ""
        return value.strftime("%Y-%m-%dT%H:%M:%S") + fraction + "Z"
    return value.isoformat() if isinstance(value, datetime.date) else value


def as_text(value: Any) -> Any:
    """Return objects and lists as the text that Arrow columns hold; other values unchanged."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value


def _arrow_table(columns: Columns, types: Mapping[str, str]) -> Any:
    pa = _frames.library("pyarrow", "arrow")
    plain = {"integer": pa.int64(), "float": pa.float64(), "boolean": pa.bool_()}
    texts = {"datetime": pa.timestamp("us", "UTC"), "date": pa.date32()}
    arrays: dict[str, Any] = {}
    for name, values in columns.items():
        kind = types.get(name)
        flat = [as_text(value) for value in values]
        if kind in texts:
            arrays[name] = pa.array(flat, pa.string()).cast(texts[kind])
        elif kind is not None:
            arrays[name] = pa.array(flat, plain.get(kind, pa.string()))
        else:
            arrays[name] = pa.array(flat)
    return pa.table(arrays)


def _polars_frame(columns: Columns, types: Mapping[str, str]) -> Any:
    pl = _frames.library("polars", "polars")
    plain = {"integer": pl.Int64, "float": pl.Float64, "boolean": pl.Boolean}
    series: list[Any] = []
    for name, values in columns.items():
        kind = types.get(name)
        dtype = None if kind is None else plain.get(kind, pl.String)
        column = pl.Series(name, [as_text(value) for value in values], dtype=dtype)
        if kind == "datetime":
            column = column.str.to_datetime("%+", time_unit="us", time_zone="UTC")
        elif kind == "date":
            column = column.str.to_date("%Y-%m-%d")
        series.append(column)
    return pl.DataFrame(series)
