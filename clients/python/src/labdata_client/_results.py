"""Results: lists of dicts that turn into frames and show themselves in notebooks.

Values in dicts are those of JSON whichever libraries are installed (a datetime is a text); frames have
the types of the columns.
"""

from __future__ import annotations

import html
import itertools
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, overload

from . import _arrow_stream
from ._columns import Columns, arrow_table, pandas_frame, polars_frame
from ._html import table as html_table
from .errors import InvalidArgument

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Item = TypeVar("Item")
Results = TypeVar("Results", bound="_Results[Any]")


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


class _Results(list[Item]):
    """A list that turns into frames, of the values and types that it has at that moment."""

    _types: Mapping[str, str]

    def _columns(self) -> Columns:
        raise NotImplementedError

    def _with(self: Results, items: Iterable[Any]) -> Results:
        """Return other items with the names and types of this result."""
        result = type(self).__new__(type(self))
        result.extend(items)
        result.__dict__.update(self.__dict__)
        return result

    @overload
    def __getitem__(self, index: SupportsIndex) -> Item: ...

    @overload
    def __getitem__(self: Results, index: slice) -> Results: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        found = super().__getitem__(index)
        return self._with(found) if isinstance(index, slice) else found  # pyright: ignore[reportArgumentType]

    def copy(self: Results) -> Results:
        """Return the same items in another list."""
        return self._with(self)

    def to_arrow(self) -> pa.Table:
        """Return a pyarrow table."""
        return arrow_table(self._columns(), self._types)

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas frame."""
        return pandas_frame(self._columns(), self._types)

    def to_polars(self) -> pl.DataFrame:
        """Return a polars frame; needs no pyarrow."""
        return polars_frame(self._columns(), self._types)


class Rows(_Results[dict[str, Any]]):
    """Rows of a table or of a query."""

    def __init__(
        self,
        rows: Iterable[dict[str, Any]] = (),
        *,
        columns: Sequence[str] | None = None,
        types: Mapping[str, str] | None = None,
        has_json_texts: bool = False,
    ) -> None:
        super().__init__(rows)
        self._names = columns
        self._types = types or {}
        self.has_json_texts = has_json_texts
        """Whether JSON values are texts, as those of a query are."""

    @classmethod
    def from_arrow(cls, stream: bytes) -> Rows:
        """Rows of an Arrow stream."""
        columns, types = _arrow_stream.read(stream)
        rows = [dict(zip(columns, row)) for row in zip(*columns.values())]
        return cls(rows, columns=list(columns), types=types, has_json_texts=True)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, also where there is no row."""
        found = dict.fromkeys(itertools.chain.from_iterable(self))
        if self._names is None or not found:
            return list(found or self._names or ())
        return list(dict.fromkeys([*(name for name in self._names if name in found), *found]))

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


class Curves(_Results[Curve]):
    """Curves of many rows. As a frame: one row per point, the parent's key first."""

    def __init__(self, parent_name: str, curves: Iterable[Curve], types: Mapping[str, str]) -> None:
        super().__init__(curves)
        self._parent_name = parent_name
        self._types = types

    @classmethod
    def from_arrow(
        cls, stream: bytes, *, parent_name: str, parents: Sequence[Any] | None, key_type: str | None
    ) -> Curves:
        """Curves of an Arrow stream, in the order of `parents`, empty where one of them has no points.

        Without `parents`, rows without points are left out. `key_type` is the type of their keys.
        """
        found, types = _arrow_stream.read(stream)
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
        types[parent_name] = types.pop(names[0])
        if parents is None:
            return cls(parent_name, curves.values(), types)
        ordered: list[Curve] = []
        for given in parents:
            key = _key(given, types[parent_name] if types[parent_name] == "integer" else key_type)
            empty: dict[str, list[Any]] = {name: [] for name in names[1:]}
            ordered.append(curves.get(key) or Curve(parent=key, columns=empty, points=0))
        return cls(parent_name, ordered, types)

    def _columns(self) -> Columns:
        names = dict.fromkeys(name for name in self._types if name != self._parent_name)
        names.update(dict.fromkeys(name for curve in self for name in curve.columns))
        columns: dict[str, list[Any]] = {self._parent_name: [], **{name: [] for name in names}}
        for curve in self:
            counts = {len(values) for values in curve.columns.values()}
            if len(counts) > 1 or (counts and curve.columns.keys() != names.keys()):
                message = f"the columns of the curve of {curve.parent!r} do not have the same length"
                raise InvalidArgument(message)
            columns[self._parent_name].extend([curve.parent] * max(counts, default=0))
            for name, values in curve.columns.items():
                columns[name].extend(values)
        return columns

    def _repr_html_(self) -> str:
        rows = [(curve.parent, curve.points, ", ".join(curve.columns)) for curve in self]
        return html_table((self._parent_name, "points", "columns"), rows, caption=f"{len(self)} curves")


def _key(given: Any, key_type: str | None) -> Any:
    """Return a key as the platform has it: callers may have it as text, as `write` returns it, or as UUID."""
    text = str(given)
    if key_type == "integer":
        return int(text)
    return str(uuid.UUID(text)) if key_type == "uuid" else text


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
