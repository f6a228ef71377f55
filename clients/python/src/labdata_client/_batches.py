"""Cutting a write into requests.

The sizes here decide where to cut, not what is allowed: a row that is too large alone is sent alone, and the
platform answers for it. Only a series with too many values is refused, as it cannot be cut.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union, cast

from . import _frames
from ._arguments import key_text, listed, names
from ._json import decoded, encode, is_composite
from .errors import InvalidArgument, Problem

MAX_ROWS = 10_000
MAX_VALUES = 250_000
MAX_BYTES = 4_500_000
"""Below the 4,718,592 bytes of a body, with room for the envelope."""

Series = Union[Mapping[str, Any], Sequence[Mapping[str, Any]]]
Tables = Union[Mapping[str, Any], Sequence[Mapping[str, Any]]]


@dataclass
class TableWrite:
    """Rows for one table, as the caller gave them."""

    table: str
    rows: _frames.Rows
    options: dict[str, Any]
    json_columns: frozenset[str] = frozenset()
    """Columns whose texts are JSON."""

    @property
    def has_json_texts(self) -> bool:
        """Whether JSON values are texts here, as in frames and in results of queries."""
        return _frames.is_frame(self.rows) or getattr(self.rows, "has_json_texts", False)

    def column_names(self) -> list[str]:
        """Return the names of the columns of a frame or a result."""
        names = (
            _frames.column_names(self.rows) if _frames.is_frame(self.rows) else cast("Any", self.rows).columns
        )
        return [name for name in names if not name.startswith("_")]

    def head(self) -> dict[str, Any]:
        """Every field but the rows."""
        return {"table": self.table, **self.options}


@dataclass
class SeriesWrite:
    """One series of one parent row."""

    table: str
    parent: Any
    columns: dict[str, list[Any]]
    parent_column: str | None = None


class Schema:
    """The organization's tables, as far as labels and frames need them."""

    def __init__(self, entries: Sequence[Mapping[str, Any]]) -> None:
        self._tables = {cast("str", entry["name"]): entry for entry in entries}

    def __contains__(self, table: str) -> bool:
        return table in self._tables

    def _columns(self, table: str) -> list[dict[str, Any]]:
        entry = self._tables.get(table)
        return list(entry["columns"]) if entry is not None else []

    def types(self, table: str) -> dict[str, str]:
        """Return the data types by column."""
        return {column["name"]: column["data_type"] for column in self._columns(table)}

    def references(self, table: str) -> dict[str, str]:
        """Return the referenced tables by column."""
        return {
            column["name"]: column["foreign_key_table_name"]
            for column in self._columns(table)
            if column["is_foreign_key"]
        }


@dataclass
class _Part:
    """Rows of one table write within a request."""

    table: int
    offset: int
    count: int
    body: bytes


@dataclass
class Batch:
    """One request."""

    parts: list[_Part] = field(default_factory=list[_Part])
    first_series: int = 0
    series: list[bytes] = field(default_factory=list[bytes])
    rows: int = 0
    values: int = 0
    size: int = 0
    json_texts: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """The path of the first text of an object or a list, by table and column."""

    def body(self, envelope: Mapping[str, Any]) -> bytes:
        """Return the body of the request."""
        head = encode(envelope)[:-1]
        tables = b",".join(part.body for part in self.parts)
        comma = b"," if len(head) > 1 else b""
        return b'%b%b"tables":[%b],"series":[%b]}' % (head, comma, tables, b",".join(self.series))

    def locate(self, problem: Problem) -> Problem:
        """Return the problem with its place in the whole write."""
        path = problem.path or ""
        if match := re.match(r"tables\[(\d+)\](?:\.rows\[(\d+)\])?", path):
            part = self.parts[int(match[1])]
            row = "" if match[2] is None else f".rows[{int(match[2]) + part.offset}]"
            return Problem(f"tables[{part.table}]{row}{path[match.end() :]}", problem.message, problem.code)
        if match := re.match(r"series\[(\d+)\]", path):
            position = int(match[1]) + self.first_series
            return Problem(f"series[{position}]{path[match.end() :]}", problem.message, problem.code)
        return problem


class Packer:
    """Cuts a write into batches, in order; rows are read when their batch is made."""

    def __init__(self, tables: Sequence[TableWrite], series: Iterator[SeriesWrite]) -> None:
        self._tables = tables
        self._series = series
        self._refs: Mapping[str, str] = {}
        self._schema: Schema | None = None
        self._table = 0
        self._offset = 0
        self._begun = False
        self._rows: Iterator[dict[str, Any]] = iter(())
        self._row_size = 0.0
        self._texts_seen: set[tuple[str, str]] = set()
        self._next_series = 0
        self._waiting: SeriesWrite | None = None
        self._advance()

    @property
    def exhausted(self) -> bool:
        """Whether no batch follows."""
        return self._table >= len(self._tables) and self._waiting is None

    def next_batch(self, refs: Mapping[str, str], schema: Schema | None) -> Batch:
        """Make the next batch; `refs` are labels of earlier ones, `schema` has the columns for them."""
        self._refs, self._schema = refs, schema
        batch = Batch(first_series=self._next_series)
        while self._table < len(self._tables):
            if not self._add_rows(batch):
                return batch
        while self._waiting is not None:
            if not self._add_series(batch, self._waiting):
                return batch
            self._waiting = next(self._series, None)
            self._next_series += 1
        return batch

    def _advance(self) -> None:
        """Go to the next table that has something to send."""
        if self._table < len(self._tables):
            self._rows = _decoded_rows(self._tables[self._table], self._table)
            self._offset = 0
            self._begun = False
            self._row_size = 0.0
        elif self._waiting is None:
            self._waiting = next(self._series, None)

    def _add_rows(self, batch: Batch) -> bool:
        """Add rows of the current table; False where the batch is full."""
        write = self._tables[self._table]
        head = encode(write.head())[:-1] + b',"rows":'
        room = MAX_BYTES - batch.size - len(head)
        most = MAX_ROWS - batch.rows
        if self._row_size:
            most = min(most, int(room / self._row_size))
        chunk = list(itertools.islice(self._rows, max(most, 0)))
        if most <= 0:
            first = next(self._rows, None)
            if first is not None:
                self._rows = itertools.chain([first], self._rows)
                if batch.parts:
                    return False
                chunk = [next(self._rows)]
        body = encode([self._resolved(write.table, row) for row in chunk])
        while len(body) > room and chunk:
            fitting = min(int(len(chunk) * room / len(body) * 0.97), len(chunk) - 1)
            if fitting < 1:
                if batch.parts:
                    self._rows = itertools.chain(chunk, self._rows)
                    return False
                if len(chunk) == 1:
                    break
                fitting = 1
            self._rows = itertools.chain(chunk[fitting:], self._rows)
            chunk = chunk[:fitting]
            body = encode([self._resolved(write.table, row) for row in chunk])
        self._note_texts(batch, write, chunk)
        if chunk or not self._begun:
            batch.parts.append(_Part(self._table, self._offset, len(chunk), head + body + b"}"))
            batch.rows += len(chunk)
            batch.size += len(head) + len(body) + 2
            self._offset += len(chunk)
            self._begun = True
            if chunk:
                self._row_size = len(body) / len(chunk)
        following = next(self._rows, None)
        if following is None:
            self._table += 1
            self._advance()
            return True
        self._rows = itertools.chain([following], self._rows)
        return False

    def _note_texts(self, batch: Batch, write: TableWrite, chunk: Sequence[Mapping[str, Any]]) -> None:
        for number, row in enumerate(chunk, self._offset):
            for column, value in row.items():
                if isinstance(value, str) and value[:1] in ("{", "[") and column not in write.json_columns:
                    place = (write.table, column)
                    if place not in self._texts_seen and is_composite(value):
                        self._texts_seen.add(place)
                        batch.json_texts[place] = f"tables[{self._table}].rows[{number}].{column}"

    def _add_series(self, batch: Batch, series: SeriesWrite) -> bool:
        parent = self._reference(series.parent)
        fields: dict[str, Any] = {"table": series.table, "parent": parent, "columns": series.columns}
        if series.parent_column is not None:
            fields["parent_column"] = series.parent_column
        count = sum(len(values) for values in series.columns.values())
        if count > MAX_VALUES:
            message = (
                f"series[{self._next_series}] has {count:,} values, and a series has at most {MAX_VALUES:,}."
                " A second write replaces the first: write fewer points, or each part to a row of its own,"
                " and upload the whole as a file"
            )
            raise InvalidArgument(message)
        occupied = bool(batch.parts or batch.series)
        if occupied and batch.values + count > MAX_VALUES:
            return False
        body = encode(fields)
        if occupied and batch.size + len(body) > MAX_BYTES:
            return False
        batch.series.append(body)
        batch.values += count
        batch.size += len(body) + 1
        return True

    def _resolved(self, table: str, row: dict[str, Any]) -> dict[str, Any]:
        """Replace labels of earlier batches by the keys of their rows."""
        if not self._refs or self._schema is None:
            return row
        label = row.get("_ref")
        if label in self._refs:
            message = f"tables[{self._table}]: two rows have the label {label!r}"
            raise InvalidArgument(message)
        replaced: dict[str, Any] | None = None
        for column in self._schema.references(table):
            value = row.get(column)
            key = self._reference(value)
            if key is not value:
                replaced = replaced or dict(row)
                replaced[column] = key
        return replaced or row

    def _reference(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith("@"):
            return self._refs.get(value[1:], value)
        return value


def _decoded_rows(write: TableWrite, index: int) -> Iterator[dict[str, Any]]:
    rows = _frames.rows(write.rows)
    if not write.json_columns:
        return rows

    def decode(number: int, row: dict[str, Any]) -> dict[str, Any]:
        for column in write.json_columns & row.keys():
            if isinstance(row[column], str):
                row[column] = decoded(row[column], f"tables[{index}].rows[{number}].{column}")
        return row

    return itertools.starmap(decode, enumerate(rows))


def table_writes(tables: Tables, options: Mapping[str, Any]) -> list[TableWrite]:
    """Read the `tables` argument: `{table: rows}`, or a list of table writes as the API has them."""
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(tables, Mapping):
        return [_table_write(name, rows, given) for name, rows in tables.items()]
    writes: list[TableWrite] = []
    for number, entry in enumerate(listed(tables, "tables", "{table: rows}, or a list of writes")):
        _require(entry, f"tables[{number}]", "table", "rows")
        own = {name: value for name, value in entry.items() if name not in {"table", "rows"}}
        writes.append(_table_write(entry["table"], entry["rows"], {**given, **own}))
    return writes


def _table_write(table: Any, rows: Any, options: dict[str, Any]) -> TableWrite:
    if options.get("key") is not None:
        options = {**options, "key": names(options["key"], "key")}
    return TableWrite(key_text(table, "table"), rows, options)


def _require(entry: Any, path: str, *fields: str) -> None:
    missing = [name for name in fields if not isinstance(entry, Mapping) or name not in entry]
    if missing:
        wanted = " and ".join(map(repr, fields))
        message = f"{path} is a mapping with {wanted}; it has no {missing[0]!r}: {entry!r:.100}"
        raise InvalidArgument(message)


def checked_series(series: Any) -> Series:
    """Return the `series` argument, a mapping or a list of series writes with all their fields."""
    if isinstance(series, Mapping):
        return cast("Series", series)
    entries = listed(series, "series", "{table: {parent: {column: values}}}, or a list of writes")
    for number, entry in enumerate(entries):
        _require(entry, f"series[{number}]", "table", "parent", "columns")
    return entries


def needs_schema(series: Series) -> bool:
    """Whether a series is a frame, whose parent's column only the schema tells."""
    if isinstance(series, Mapping):
        return any(_is_points(value) for value in series.values())
    return False


def _is_points(value: Any) -> bool:
    return _frames.is_frame(value) or not isinstance(value, Mapping)


def series_writes(
    series: Series, parent_column: str | Mapping[str, str] | None, schema: Schema | None
) -> Iterator[SeriesWrite]:
    """Read the `series` argument.

    It is `{table: {parent: {column: values}}}`, `{table: frame}` with the parent's column in the frame,
    or a list of series writes as the API has them.
    """
    if not isinstance(series, Mapping):
        for entry in series:
            table, points = key_text(entry["table"], "table"), _frames.columns(entry["columns"])
            yield SeriesWrite(table, entry["parent"], points, entry.get("parent_column"))
        return
    for table, value in series.items():
        named = parent_column.get(table) if isinstance(parent_column, Mapping) else parent_column
        named = None if named is None else key_text(named, "parent_column")
        if _is_points(value):
            yield from _split(table, value, named, schema)
        else:
            for parent, points in cast("Mapping[Any, Any]", value).items():
                yield SeriesWrite(table, parent, _frames.columns(points), named)


def _split(table: str, points: Any, named: str | None, schema: Schema | None) -> Iterator[SeriesWrite]:
    """Split a frame into one series per parent, in order of first appearance."""
    columns = _frames.columns(points)
    references = schema.references(table) if schema is not None else {}
    candidates = [named] if named else [name for name in references if name in columns]
    if len(candidates) != 1 or candidates[0] not in columns:
        known = ", ".join(references) or "none"
        message = (
            f"series {table!r}: name the column of the parent row with parent_column; the table's references"
            f" are {known}, the frame's columns {', '.join(columns)}"
        )
        raise InvalidArgument(message)
    parents = columns.pop(candidates[0])
    positions: dict[Any, list[int]] = {}
    for position, parent in enumerate(parents):
        positions.setdefault(parent, []).append(position)
    for parent, chosen in positions.items():
        start, end = chosen[0], chosen[-1] + 1
        if end - start == len(chosen):
            own = {name: values[start:end] for name, values in columns.items()}
        else:
            own = {name: [values[i] for i in chosen] for name, values in columns.items()}
        yield SeriesWrite(table, parent, own, named)
