"""Checks of a dataset, each with a message to act on."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from labdata_trainer import dataset
from labdata_trainer.failure import Exit, Failure
from labdata_trainer.run_directory import check_combination, parse_manifest
from tests.support import manifest, wine_table


def checked(columns: dict[str, Any], **changes: Any) -> dataset.Dataset:
    """Writes, reads and checks a dataset."""
    order = parse_manifest(manifest(**changes))
    check_combination(order)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "data.parquet"
        pq.write_table(pa.table(columns), path)
        return dataset.check(dataset.read(path, order), order)


NUMBERS = [float(it) for it in range(20)]
CLASSES = ["a", "b"] * 10


class Rejections(unittest.TestCase):
    """Datasets that no model can be trained on."""

    def rejected(self, code: str, columns: dict[str, Any], **changes: Any) -> str:
        with self.assertRaises(Failure) as raised:
            checked(columns, **changes)
        self.assertEqual(raised.exception.code, code)
        self.exit_code = raised.exception.exit_code
        return raised.exception.message

    def test_a_class_with_too_few_rows_is_named_with_its_count(self) -> None:
        target = ["red"] * 10 + ["rosé"] * 2 + ["white"] * 8
        message = self.rejected("too_few_rows_of_class", {"x": NUMBERS, "target": target})
        self.assertIn('The class "rosé" of "target" has only 2 rows', message)
        self.assertIn("at least 5", message)
        self.assertEqual(self.exit_code, Exit.BAD_DATA)

    def test_several_classes_with_too_few_rows_are_listed(self) -> None:
        message = self.rejected(
            "too_few_rows_of_class", {"x": NUMBERS, "target": [*map(str, NUMBERS)]}
        )
        self.assertIn("20 classes", message)
        self.assertIn('"0.0" (1)', message)
        self.assertIn("and 15 more", message)

    def test_one_row_is_singular(self) -> None:
        message = self.rejected(
            "too_few_rows_of_class", {"x": NUMBERS, "target": ["a"] * 19 + ["b"]}
        )
        self.assertIn("has only 1 row;", message)

    def test_a_constant_target_is_rejected_with_its_value(self) -> None:
        message = self.rejected("constant_target", {"x": NUMBERS, "target": [3.5] * 20})
        self.assertIn('"3.5"', message)

    def test_a_missing_target_is_rejected_with_the_columns_there_are(self) -> None:
        message = self.rejected("target_missing", {"x": NUMBERS, "yield": NUMBERS})
        self.assertIn('"target"', message)
        self.assertIn("x, yield", message)

    def test_an_empty_target_is_rejected(self) -> None:
        self.rejected("target_empty", {"x": NUMBERS, "target": pa.nulls(20, pa.float64())})

    def test_too_few_rows_are_rejected_with_their_number(self) -> None:
        columns = {"x": NUMBERS, "target": pa.array([1.0, 2.0] + [None] * 18)}
        self.assertIn("has 2 usable rows", self.rejected("too_few_rows", columns))

    def test_features_without_any_value_are_rejected(self) -> None:
        columns = {"x": pa.nulls(20, pa.float64()), "y": pa.nulls(20), "target": CLASSES}
        self.assertIn('"x", "y"', self.rejected("features_empty", columns))

    def test_constant_features_are_rejected(self) -> None:
        self.rejected("features_constant", {"x": [1.0] * 20, "target": CLASSES})

    def test_a_missing_feature_is_named(self) -> None:
        columns = {"x": NUMBERS, "target": CLASSES}
        message = self.rejected("feature_missing", columns, feature_columns=["x", "pH"])
        self.assertIn('"pH"', message)

    def test_a_feature_of_another_type_is_named(self) -> None:
        columns = {"x": [[1.0]] * 20, "target": CLASSES}
        message = self.rejected("feature_type_not_supported", columns, feature_columns=["x"])
        self.assertIn('"x"', message)

    def test_regression_needs_numbers(self) -> None:
        columns = {"x": NUMBERS, "target": CLASSES}
        message = self.rejected("target_not_numeric", columns, problem_type="regression")
        self.assertIn('"a"', message)

    def test_binary_needs_two_values(self) -> None:
        columns = {"x": NUMBERS, "target": NUMBERS}
        message = self.rejected("target_not_binary", columns, problem_type="binary")
        self.assertIn("20 different values", message)

    def test_a_date_cannot_be_predicted(self) -> None:
        dates = pa.array(range(20), pa.date32())
        self.rejected("target_type_not_supported", {"x": NUMBERS, "target": dates})
        self.assertEqual(self.exit_code, Exit.UNSUPPORTED)

    def test_combinations_that_do_not_fit_are_unsupported(self) -> None:
        columns = {"x": NUMBERS, "target": CLASSES}
        for code, changes in (
            ("problem_type_not_supported", {"problem_type": "semantic_segmentation"}),
            ("problem_type_not_supported", {"task_type": "segmentation", "problem_type": "binary"}),
            ("image_columns_not_supported", {"image_columns": ["x"]}),
            (
                "image_columns_not_supported",
                {"task_type": "segmentation", "problem_type": "semantic_segmentation"},
            ),
            ("target_is_feature", {"feature_columns": ["x", "target"]}),
            ("unknown_quality_preset", {"quality_preset": "extreme_quality"}),
            ("unknown_task_type", {"task_type": "audio"}),
        ):
            with self.subTest(code=code, changes=changes):
                self.rejected(code, columns, **changes)
                self.assertEqual(self.exit_code, Exit.UNSUPPORTED)

    def test_a_file_of_another_format_is_rejected(self) -> None:
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"x,target\n1,2\n")
            file.flush()
            with self.assertRaises(Failure) as raised:
                dataset.read(Path(file.name), parse_manifest(manifest()))
        self.assertEqual(raised.exception.code, "dataset_unreadable")


class Conversion(unittest.TestCase):
    """Datasets that a model can be trained on."""

    def test_classes_keep_their_type(self) -> None:
        for target in ([True, False], [1, 7], ["x", "y"], [0.5, 1.5]):
            found = checked({"x": NUMBERS, "target": target * 10}).classes
            self.assertEqual(found, sorted(target))
            self.assertEqual([type(it) for it in found], [type(target[0])] * 2)

    def test_rows_without_a_target_are_left_out(self) -> None:
        target = pa.array([None, float("nan"), float("inf"), *NUMBERS[3:]])
        found = checked({"x": NUMBERS, "target": target}, problem_type="regression")
        self.assertEqual(len(found.frame), 17)

    def test_features_are_described(self) -> None:
        found = checked(
            {
                "number": pa.array([None, *NUMBERS[1:]]),
                "count": list(range(20)),
                "flag": [True, False] * 10,
                "site": pa.array(["B", "A"] * 10).dictionary_encode(),
                "day": pa.array(range(20), pa.date32()),
                "at": pa.array(range(20), pa.timestamp("us", tz="UTC")),
                "nested": [[1]] * 20,
                "empty": pa.nulls(20, pa.string()),
                "target": NUMBERS,
            },
            problem_type="regression",
        )
        self.assertEqual(
            [(it.name, it.data_type, it.nullable, it.levels) for it in found.features],
            [
                ("number", "float", True, None),
                ("count", "integer", False, None),
                ("flag", "boolean", False, None),
                ("site", "string", False, ["A", "B"]),
                ("day", "date", False, None),
                ("at", "datetime", False, None),
            ],
        )

    def test_only_named_features_are_read(self) -> None:
        columns = {"x": NUMBERS, "leak": NUMBERS, "target": NUMBERS}
        found = checked(columns, feature_columns=["x"], problem_type="regression")
        self.assertEqual(list(found.frame), ["x", "target"])


class Split(unittest.TestCase):
    """Held-out rows."""

    def setUp(self) -> None:
        table = wine_table()
        self.dataset = checked({name: table[name] for name in table.column_names})

    def test_the_seed_alone_decides_the_split(self) -> None:
        first, again, other = (dataset.split(self.dataset, seed)[1] for seed in (7, 7, 8))
        self.assertTrue(first.equals(again))
        self.assertFalse(first.equals(other))

    def test_a_fifth_is_held_out_with_all_classes(self) -> None:
        train, test = dataset.split(self.dataset, 1)
        self.assertEqual((len(train), len(test)), (142, 36))
        self.assertEqual(set(test["target"]), {"barolo", "grignolino", "barbera"})
        self.assertEqual(len(train.merge(test)), 0)

    def test_each_small_class_is_held_out_once(self) -> None:
        found = checked({"x": NUMBERS, "target": ["a", "b", "c", "d"] * 5})
        _, test = dataset.split(found, 3)
        self.assertEqual(sorted(test["target"]), ["a", "b", "c", "d"])


if __name__ == "__main__":
    unittest.main()
