"""Feature columns: their types, and their values as pandas series.

Numbers and booleans become float64, texts objects, dates naive UTC timestamps. Training and
predicting share this, so a model meets the types that it was trained on.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute, types

from .numbers import label_text, plain

MAX_LEVELS = 50
LARGEST = sys.float_info.max
NUMERIC = ("integer", "float")
TEMPORAL = ("date", "datetime")


@dataclass(frozen=True)
class Feature:
    """Column that a model reads. `levels` lists the values of a text column with few of them."""

    name: str
    data_type: str
    nullable: bool
    levels: list[str] | None = None

    def as_json(self) -> dict[str, Any]:
        """Returns the feature as `result.json` has it."""
        return asdict(self)


@dataclass(frozen=True)
class Problem:
    """Value that cannot be read. `row` counts from 0; none if the column as a whole is wrong."""

    row: int | None
    column: str
    message: str

    def as_json(self) -> dict[str, Any]:
        """Returns the problem as the protocol has it."""
        return {"kind": "column" if self.row is None else "value", **asdict(self)}


def data_type(arrow: pa.DataType) -> str | None:
    """Returns the platform's name of an Arrow type; none for types that a model cannot read."""
    if types.is_dictionary(arrow):
        return data_type(arrow.value_type)
    for name, checks in (
        ("boolean", (types.is_boolean,)),
        ("integer", (types.is_integer,)),
        ("float", (types.is_floating, types.is_decimal)),
        ("string", (types.is_string, types.is_large_string, types.is_null)),
        ("date", (types.is_date,)),
        ("datetime", (types.is_timestamp,)),
    ):
        if any(check(arrow) for check in checks):
            return name
    return None


def series(values: pa.ChunkedArray, kind: str) -> pd.Series:
    """Converts a column of a dataset."""
    if types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if kind in (*NUMERIC, "boolean"):
        return pd.Series(numbers(values))
    if kind in TEMPORAL:
        moments = values.cast(pa.timestamp("us"), safe=False)
        return moments.to_pandas().astype("datetime64[ns]")
    return values.cast(pa.string()).to_pandas().astype(object)


def numbers(values: pa.ChunkedArray) -> np.ndarray:
    """Converts a column of numbers or booleans. Null and infinities become NaN."""
    found = values.cast(pa.float64()).to_numpy()
    is_infinite = np.isinf(found)
    return np.where(is_infinite, np.nan, found) if is_infinite.any() else found


def labels(values: pa.ChunkedArray, kind: str) -> pd.Series:
    """Converts the target of a classification, which has no nulls. Labels keep their type."""
    if types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if kind == "integer":
        return values.cast(pa.int64()).to_pandas()
    if kind == "float":
        return values.cast(pa.float64()).to_pandas()
    return values.to_pandas()


def describe(name: str, values: pa.ChunkedArray, kind: str) -> Feature:
    """Returns the feature that a column of a dataset is."""
    levels = None
    if kind == "string":
        distinct = compute.unique(values.drop_null().cast(pa.string()))
        if 0 < len(distinct) <= MAX_LEVELS:
            levels = sorted(distinct.to_pylist())
    return Feature(name, kind, values.null_count > 0, levels)


def parse(feature: Feature, values: list[Any]) -> tuple[pd.Series | None, list[Problem]]:
    """Converts a column of a request, or returns its problems."""
    allowed, expected = EXPECTED[feature.data_type]
    if not set(map(type, values)) <= allowed:
        return None, [
            Problem(row, feature.name, f"expected {expected}, not {shown(value)}")
            for row, value in enumerate(values)
            if type(value) not in allowed
        ]
    if feature.data_type in TEMPORAL:
        return parse_moments(feature, values, expected)
    if feature.data_type in ("string", "image"):
        return pd.Series(values, dtype=object), []
    try:
        # None becomes NaN. JSON's 1e999 becomes infinite.
        found = np.array(values, dtype="float64")
    except OverflowError:
        found = None
    if found is not None and not np.isinf(found).any():
        return pd.Series(found), []
    large = [row for row, value in enumerate(values) if value and abs(value) > LARGEST]
    return None, [Problem(row, feature.name, "the number is too large") for row in large]


def parse_moments(
    feature: Feature, values: list[Any], expected: str
) -> tuple[pd.Series | None, list[Problem]]:
    """Converts dates and points in time."""
    moments = pd.to_datetime(
        pd.Series(values, dtype=object), format="ISO8601", utc=True, errors="coerce"
    )
    problems = [
        Problem(row, feature.name, f"expected {expected}, not {shown(value)}")
        for row, (value, is_missing) in enumerate(zip(values, moments.isna(), strict=True))
        if is_missing and value is not None
    ]
    return moments.dt.tz_localize(None).astype("datetime64[ns]"), problems


def shown(value: Any) -> str:
    """Returns a value of a request for a message."""
    if isinstance(value, str):
        return f'the text "{value[:60]}"'
    if value is None:
        return "null"
    if isinstance(value, bool):
        return label_text(value)
    if isinstance(value, (int, float)):
        return f"the number {str(plain(value))[:60]}"
    return "a list" if isinstance(value, list) else "an object"


EXPECTED: dict[str, tuple[set[type], str]] = {
    "integer": ({int, float, type(None)}, "a number"),
    "float": ({int, float, type(None)}, "a number"),
    "boolean": ({bool, type(None)}, "true or false"),
    "string": ({str, type(None)}, "a text"),
    "date": ({str, type(None)}, "a date such as 2026-03-01"),
    "datetime": ({str, type(None)}, "a point in time such as 2026-03-01T12:00:00Z"),
    "image": ({str}, "the id of an image file"),
}
