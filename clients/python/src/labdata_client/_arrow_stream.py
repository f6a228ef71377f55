"""Reader of the platform's Arrow streams, in plain Python.

Rows and curves are made by this reader whichever libraries are installed, so that they are the same
everywhere. It knows the types that the platform sends: texts, 64-bit integers and floats, booleans, dates and
points in time in microseconds.
"""

from __future__ import annotations

import datetime
import struct
from typing import TYPE_CHECKING, Any, Callable

from .errors import LabdataError

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONTINUATION = 0xFFFFFFFF
_SCHEMA, _RECORD_BATCH = 1, 3
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_ORDINAL = _EPOCH.toordinal()
_BITS = [tuple(bool(byte >> bit & 1) for bit in range(8)) for byte in range(256)]

# Kinds of columns by the number of their type in Arrow's format; the names are those of the schema's types.
_KINDS = {2: "integer", 3: "float", 5: "text", 6: "boolean", 8: "date", 10: "datetime"}


class _Table:
    """A table of a FlatBuffer, in which the metadata of Arrow is."""

    def __init__(self, buffer: bytes, position: int) -> None:
        self._buffer = buffer
        self._position = position
        self._vtable = position - _number("<i", buffer, position)
        self._size = _number("<H", buffer, self._vtable)

    @classmethod
    def root(cls, buffer: bytes) -> _Table:
        return cls(buffer, _number("<I", buffer, 0))

    def _field(self, index: int) -> int:
        """Return the position of a field, or 0 where it is left out."""
        entry = 4 + 2 * index
        offset = _number("<H", self._buffer, self._vtable + entry) if entry < self._size else 0
        return self._position + offset if offset else 0

    def number(self, index: int, form: str) -> int:
        position = self._field(index)
        return _number(form, self._buffer, position) if position else 0

    def _target(self, index: int) -> int:
        position = self._field(index)
        return position + _number("<I", self._buffer, position) if position else 0

    def table(self, index: int) -> _Table:
        return _Table(self._buffer, self._target(index))

    def text(self, index: int) -> str:
        start = self._target(index)
        length = _number("<I", self._buffer, start)
        return self._buffer[start + 4 : start + 4 + length].decode()

    def tables(self, index: int) -> list[_Table]:
        start = self._target(index)
        places = range(start + 4, start + 4 + 4 * _number("<I", self._buffer, start), 4)
        return [_Table(self._buffer, place + _number("<I", self._buffer, place)) for place in places]

    def pairs(self, index: int) -> list[tuple[int, int]]:
        """Return a vector of structs of two 64-bit numbers."""
        start = self._target(index)
        length = _number("<I", self._buffer, start)
        numbers = struct.unpack_from(f"<{2 * length}q", self._buffer, start + 4)
        return list(zip(numbers[::2], numbers[1::2]))


def _number(form: str, buffer: bytes, position: int) -> int:
    return struct.unpack_from(form, buffer, position)[0]


def read(stream: bytes) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Return the values by column, as JSON has them, and the types by column."""
    kinds: dict[str, str] = {}
    columns: dict[str, list[Any]] = {}
    try:
        for message, body in _messages(stream):
            kind = message.number(1, "<B")
            if kind == _SCHEMA:
                kinds = {field.text(0): _kind(field) for field in message.table(2).tables(1)}
                columns = {name: [] for name in kinds}
            elif kind == _RECORD_BATCH:
                for name, values in zip(kinds, _batch(message.table(2), list(kinds.values()), body)):
                    columns[name].extend(values)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        message = f"the platform's answer is no whole Arrow stream: {error}"
        raise LabdataError(message) from error
    except (ValueError, OverflowError) as error:
        message = f"a date of the platform's answer is beyond the years 1 to 9999: {error}"
        raise LabdataError(message) from error
    return columns, kinds


def _messages(stream: bytes) -> Iterator[tuple[_Table, bytes]]:
    position = 0
    while position < len(stream):
        size = _number("<I", stream, position)
        position += 4
        if size == _CONTINUATION:
            size = _number("<I", stream, position)
            position += 4
        if size == 0:
            return
        message = _Table.root(stream[position : position + size])
        position += size
        length = message.number(3, "<q")
        yield message, stream[position : position + length]
        position += length


def _kind(field: _Table) -> str:
    number = field.number(2, "<B")
    kind = _KINDS.get(number)
    if kind is None:
        message = f"column {field.text(0)!r} has the Arrow type {number}, unknown to this client: upgrade it"
        raise LabdataError(message)
    return kind


def _batch(batch: _Table, kinds: list[str], body: bytes) -> Iterator[list[Any]]:
    buffers = iter(batch.pairs(2))

    def following() -> bytes:
        start, length = next(buffers)
        return body[start : start + length]

    for kind, (length, nulls) in zip(kinds, batch.pairs(1)):
        validity = following()
        values = _READERS[kind](length, following)
        if nulls:
            present = _booleans(validity, length)
            values = [value if there else None for value, there in zip(values, present)]
        yield values


def _booleans(data: bytes, length: int) -> list[Any]:
    return [bit for byte in data[: (length + 7) // 8] for bit in _BITS[byte]][:length]


def _texts(length: int, following: Callable[[], bytes]) -> list[Any]:
    offsets = struct.unpack_from(f"<{length + 1}i", following()) if length else _skipped(following)
    data = following()
    return [data[start:end].decode() for start, end in zip(offsets, offsets[1:])]


def _skipped(following: Callable[[], bytes]) -> tuple[int, ...]:
    """Skip the offsets of no texts, which may be left out."""
    following()
    return ()


def _moment(micros: int) -> str:
    text = (_EPOCH + datetime.timedelta(microseconds=micros)).isoformat()
    return (text.rstrip("0") if "." in text else text) + "Z"


def _date(days: int) -> str:
    return datetime.date.fromordinal(_EPOCH_ORDINAL + days).isoformat()


def _numbers(form: str, length: int, data: bytes) -> list[Any]:
    return list(struct.unpack_from(f"<{length}{form}", data))


_READERS: dict[str, Callable[[int, Callable[[], bytes]], list[Any]]] = {
    "integer": lambda length, following: _numbers("q", length, following()),
    "float": lambda length, following: _numbers("d", length, following()),
    "boolean": lambda length, following: _booleans(following(), length),
    "text": _texts,
    "datetime": lambda length, following: [_moment(v) for v in _numbers("q", length, following())],
    "date": lambda length, following: [_date(v) for v in _numbers("i", length, following())],
}
