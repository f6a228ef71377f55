"""Requests and answers as Arrow IPC streams: JSON takes longer than many models for 10,000 rows."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pyarrow as pa

from . import columns, frames
from .columns import Feature, Problem
from .model import Prediction
from .numbers import plain
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


def is_arrow(body: bytes) -> bool:
    """Returns true for the body of a frame that is an Arrow IPC stream."""
    return body.startswith(MARKER)


def decode(body: bytes) -> tuple[Any, pa.Table]:
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
    problems, converted = [], {}
    for feature in features:
        values = table.column(feature.name)
        kind = columns.data_type(values.type)
        is_empty = values.null_count == len(values)
        if not is_empty and kind not in ACCEPTED.get(feature.data_type, ()):
            expected = columns.EXPECTED[feature.data_type][1]
            text = f"expected {expected}, not values of type {values.type}"
            problems.append(Problem(None, feature.name, text))
        elif is_empty:
            converted[feature.name] = columns.parse(feature, [None] * len(values))[0]
        else:
            converted[feature.name] = columns.series(values, feature.data_type)
    if problems:
        raise RequestError(problems)
    return Request(identifier, pd.DataFrame(converted, copy=False), is_arrow=True)


def encode(identifier: Any, predicted: Prediction, start: int, end: int) -> bytes:
    """Returns the answer's stream: `prediction`, then `probability.<n>` for the class number n."""
    values = [plain(value) for value in predicted.values[start:end]]
    data = {"prediction": pa.array(values)}
    if predicted.probabilities is not None:
        for number, column in enumerate(predicted.probabilities[start:end].T):
            floats = column.astype("float64")
            data[f"probability.{number}"] = pa.array(floats, from_pandas=True)
    table = pa.table(data).replace_schema_metadata({"id": json.dumps(identifier)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
