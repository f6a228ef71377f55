"""Requests and answers as Arrow IPC streams: JSON takes longer than many models for 10,000 rows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from . import columns, frames
from .columns import Feature, Problem
from .model import Prediction
from .prediction_request import Request, RequestError, check_rows, missing_columns, request_id

# First bytes of an Arrow IPC stream. JSON cannot begin with them.
MARKER = b"\xff\xff\xff\xff"
# Types of columns that a feature accepts.
ACCEPTED = {
    "integer": ("integer", "float"),
    "float": ("integer", "float"),
    "boolean": ("boolean",),
    "string": ("string",),
    "date": ("date", "datetime"),
    "datetime": ("date", "datetime"),
}


def is_arrow(body: bytearray) -> bool:
    """Returns true for the body of a frame that is an Arrow IPC stream."""
    return body.startswith(MARKER)


def decode(body: bytearray) -> tuple[Any, pa.Table]:
    """Returns the id and the columns of a request. The schema's metadata holds the id, as JSON."""
    try:
        table = pa.ipc.open_stream(body).read_all()
        table.validate(full=True)
        identifier = json.loads((table.schema.metadata or {}).get(b"id", b"null"))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise frames.FrameError(f"a frame is no Arrow stream: {error}") from error
    return request_id({"id": identifier}), table


def parse(identifier: Any, table: pa.Table, features: list[Feature]) -> Request:
    """Converts a table into a request with a frame of all features."""
    missing = missing_columns(set(table.column_names), features)
    if missing:
        raise RequestError(missing)
    check_rows(table.num_rows, features)
    problems = [
        Problem(None, feature.name, text)
        for feature in features
        if (text := wrong_type(table.column(feature.name), feature)) is not None
    ]
    if problems:
        raise RequestError(problems)
    return Request(identifier, frame_of(table, features), is_arrow=True)


def wrong_type(values: pa.ChunkedArray, feature: Feature) -> str | None:
    """Returns the problem of a column whose type the feature does not accept."""
    if is_empty(values) or columns.data_type(values.type) in ACCEPTED.get(feature.data_type, ()):
        return None
    return f"expected {columns.EXPECTED[feature.data_type][1]}, not values of type {values.type}"


def is_empty(values: pa.ChunkedArray) -> bool:
    """Returns true for a column of nulls, whose type means nothing."""
    return values.null_count == len(values)


def frame_of(table: pa.Table, features: list[Feature]) -> pd.DataFrame:
    """Converts the columns. All numbers are one block of memory, which models read fastest."""
    numeric, others = [], {}
    for feature in features:
        if feature.data_type in (*columns.NUMERIC, "boolean"):
            numeric.append(feature.name)
            continue
        values = table.column(feature.name)
        if is_empty(values):
            others[feature.name] = columns.parse(feature, [None] * len(values))[0]
        else:
            others[feature.name] = columns.series(values, feature.data_type)
    block = np.empty((len(numeric), table.num_rows))
    for row, name in zip(block, numeric, strict=True):
        values = table.column(name)
        row[:] = np.nan if is_empty(values) else columns.numbers(values)
    frame = pd.DataFrame(block.T, columns=numeric, copy=False)
    if not others:
        return frame
    frame = pd.concat([frame, pd.DataFrame(others, copy=False)], axis=1)
    return frame[[it.name for it in features]]


def encode(identifier: Any, predicted: Prediction, start: int, end: int) -> pa.Buffer:
    """Returns the answer's stream: `prediction`, then `probability.<n>` for the class number n."""
    if predicted.codes is None:
        data = {"prediction": as_arrow(predicted.values[start:end])}
    else:
        # Faster than the texts of all rows.
        data = {"prediction": as_arrow(predicted.classes).take(pa.array(predicted.codes[start:end]))}
    if predicted.probabilities is not None:
        for number, column in enumerate(predicted.probabilities[start:end].T):
            data[f"probability.{number}"] = as_arrow(column.astype("float64"))
    table = pa.table(data).replace_schema_metadata({"id": json.dumps(identifier)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def as_arrow(values: np.ndarray) -> pa.Array:
    """Converts predictions. NaN and infinities become null."""
    if values.dtype.kind == "f":
        return pa.array(values.astype("float64", copy=False), mask=~np.isfinite(values))
    if values.dtype.kind in "iu":
        return pa.array(values.astype("int64", copy=False))
    return pa.array(values)
