"""Values of requests as columns, and values of numpy as JSON."""

from __future__ import annotations

import datetime
import unittest
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from labdata_trainer import columns
from labdata_trainer.columns import Feature
from labdata_trainer.numbers import finite, label_text


def parse(data_type: str, values: list[Any]) -> tuple[pd.Series | None, list[columns.Problem]]:
    """Parses values of a feature named x."""
    return columns.parse(Feature("x", data_type, True), values)


class Parsing(unittest.TestCase):
    """Columns of requests."""

    def test_a_request_gives_the_types_of_the_training(self) -> None:
        day = datetime.date(2026, 3, 1)
        at = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
        for data_type, arrow, values in (
            ("float", pa.array([1.5, None]), [1.5, None]),
            ("integer", pa.array([3, None]), [3, None]),
            ("boolean", pa.array([True, None]), [True, None]),
            ("string", pa.array(["a", None]), ["a", None]),
            ("date", pa.array([day, None]), ["2026-03-01", None]),
            ("datetime", pa.array([at, None]), ["2026-03-01T13:00:00+01:00", None]),
        ):
            with self.subTest(data_type):
                trained = columns.series(pa.chunked_array([arrow]), data_type)
                parsed, problems = parse(data_type, values)
                self.assertEqual(problems, [])
                pd.testing.assert_series_equal(parsed, trained)

    def test_mistyped_values_are_named_by_row_and_column(self) -> None:
        for data_type, value, expected in (
            ("float", "4.2", 'expected a number, not the text "4.2"'),
            ("integer", True, "expected a number, not true"),
            ("float", [1], "expected a number, not a list"),
            ("boolean", 1, "expected true or false, not the number 1"),
            ("string", 7.5, "expected a text, not the number 7.5"),
            ("date", "1.3.2026", "expected a date such as"),
            ("datetime", {}, "expected a point in time such as"),
            ("image", None, "expected the id of an image file, not null"),
            ("float", 10**400, "the number is too large"),
            ("float", float("inf"), "the number is too large"),
        ):
            with self.subTest(data_type=data_type, value=str(value)[:20]):
                good = {"string": "a", "boolean": True, "image": "f"}.get(data_type)
                good = good or (1 if data_type in columns.NUMERIC else "2026-01-01")
                _, problems = parse(data_type, [good, value])
                self.assertEqual([(it.row, it.column) for it in problems], [(1, "x")])
                self.assertIn(expected, problems[0].message)

    def test_infinite_numbers_of_a_dataset_count_as_missing(self) -> None:
        series = columns.series(pa.chunked_array([[1.0, float("inf"), float("-inf")]]), "float")
        self.assertEqual(series.isna().tolist(), [False, True, True])

    def test_many_different_texts_are_no_levels(self) -> None:
        values = pa.chunked_array([[str(it) for it in range(51)]])
        self.assertIsNone(columns.describe("x", values, "string").levels)


class Json(unittest.TestCase):
    """Values as JSON."""

    def test_numbers_that_json_lacks_become_null(self) -> None:
        values = [float("nan"), np.float64("inf"), np.float32("nan"), pd.NaT, 1.5, np.int64(3)]
        self.assertEqual(finite({"x": values}), {"x": [None, None, None, None, 1.5, 3]})

    def test_labels_have_the_text_of_json(self) -> None:
        labels = [True, np.bool_(False), np.int64(3), 1.5, "b"]
        self.assertEqual([*map(label_text, labels)], ["true", "false", "3", "1.5", "b"])


if __name__ == "__main__":
    unittest.main()
