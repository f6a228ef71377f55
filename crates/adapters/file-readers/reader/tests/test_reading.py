"""What becomes of files that are damaged, or that are no exports; keys; times; the table of readers."""

from __future__ import annotations

import json
import random
import time
import unittest
from pathlib import Path

import generate
from labdata_reader.invalid import Flaw, Judge, flaws, has_negative_zeros
from labdata_reader.reading import READERS, read
from labdata_reader.rows import Rows
from labdata_reader.times import Times

from .files import DEMO, real_file, reading_of

REAL = (
    ("gen5_kinetic_growth_curve.txt", "AGILENT_GEN5"),
    ("softmax_absorbance.txt", "MOLDEV_SOFTMAX_PRO"),
    ("nanodrop_8000.txt", "THERMO_FISHER_NANODROP_8000"),
    ("quantstudio_qpcr.txt", "APPBIO_QUANTSTUDIO"),
    ("envision_fluorescence.csv", "PERKIN_ELMER_ENVISION"),
    ("luminex_xponent.csv", "LUMINEX_XPONENT"),
    ("vicell_xr.xlsx", "BECKMAN_VI_CELL_XR"),
)


def damaged(content: bytes, count: int) -> list[bytes]:
    """Returns truncated and bit-flipped copies, the same at each call."""
    chance = random.Random(20261126)
    copies = []
    for number in range(count):
        if number % 2:
            copies.append(content[: chance.randrange(len(content))])
        else:
            flipped = bytearray(content)
            for _ in range(chance.choice((1, 1, 8))):
                flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
            copies.append(bytes(flipped))
    return copies


class Damaged(unittest.TestCase):
    def check(self, file: Path, reader: str, count: int) -> None:
        slowest = 0.0
        for content in damaged(file.read_bytes(), count):
            begun = time.monotonic()
            result = read(content, file.name, reader, None, None)
            slowest = max(slowest, time.monotonic() - begun)
            if result["reader"] is None:
                self.assertEqual([it["reader"] for it in result["refusals"]], [reader])
                self.assertTrue(result["refusals"][0]["reason"])
            else:
                self.assertGreater(len(result["measurements"]), 0)
                for curve in result["curves"]:
                    self.assertEqual(len(curve["x"]), len(curve["y"]))
            json.dumps(result, allow_nan=False)
        self.assertLess(slowest, 20, f"{file.name}: a damaged copy took {slowest:.1f} s")

    def test_damaged_copies_of_the_demo_end_clearly(self) -> None:
        self.check(DEMO, "AGILENT_GEN5", 60)

    def test_damaged_copies_of_real_files_end_clearly(self) -> None:
        for name, reader in REAL:
            with self.subTest(name):
                self.check(real_file(name), reader, 20)


class Choice(unittest.TestCase):
    def test_a_file_that_no_reader_takes_names_all_that_were_tried(self) -> None:
        result = read(b"Dear diary,\nnothing was measured today.\n", "notes.txt", "auto", None, None)
        self.assertEqual((result["reader"], result["candidates"]), (None, []))
        tried = {it["reader"] for it in result["refusals"]}
        self.assertEqual(tried, {name for name, reader in READERS.items() if "txt" in reader["extensions"]})
        self.assertTrue(all(it["reason"] for it in result["refusals"]))

    def test_a_kind_that_no_reader_knows_is_not_tried(self) -> None:
        result = read(b"x", "movie.mp4", "auto", None, None)
        self.assertEqual(result, {"reader": None, "candidates": [], "refusals": []})

    def test_the_preferred_reader_is_tried_first_and_the_others_if_it_refuses(self) -> None:
        self.assertEqual(reading_of(DEMO, preferred="AGILENT_GEN5")["candidates"], ["AGILENT_GEN5"])
        other = reading_of(DEMO, preferred="MOLDEV_SOFTMAX_PRO")
        self.assertEqual(other["reader"], "AGILENT_GEN5")
        unfit = reading_of(DEMO, preferred="LUMINEX_XPONENT")
        self.assertNotIn("LUMINEX_XPONENT", [it["reader"] for it in unfit["refusals"]])

    def test_keys_come_from_the_content_and_the_position(self) -> None:
        content = DEMO.read_bytes()
        one = read(content, "one.txt", "auto", None, None)["measurements"]
        two = read(content, "two.txt", "AGILENT_GEN5", None, "Europe/Berlin")["measurements"]
        keys = [row["key"] for row in one]
        self.assertEqual(keys, [row["key"] for row in two])
        self.assertEqual(len(set(keys)), len(keys))
        other = read(content + b"\n", "one.txt", "auto", None, None)["measurements"]
        self.assertFalse(set(keys) & {row["key"] for row in other})


class Zeros(unittest.TestCase):
    def test_negative_zeros_of_a_text_are_found(self) -> None:
        for text in (b"a\t-0.000\t1", b"-0", b"-0,00;1", "x\t-0.0\n".encode("utf-16")):
            self.assertTrue(has_negative_zeros(text), text)
        for text in (b"a\t-0.001\t1", b"1-0.5", b"10-0", b"-0.0.1", b"0.000", b""):
            self.assertFalse(has_negative_zeros(text), text)


class Missing(unittest.TestCase):
    def test_a_cell_without_a_value_is_called_empty(self) -> None:
        judge = Judge(b"")
        for given in (None, "", "  "):
            self.assertEqual(judge.value(given, [], "absorbance"), (None, "the cell is empty"))
            self.assertEqual(judge.point(given, 0.0, []), (None, "the cell is empty"))
        self.assertEqual(judge.point("OVRFLW", 0.0, []), (None, "OVRFLW"))
        self.assertEqual(judge.point(float("nan"), 0.0, []), (None, "the file has no number here"))
        self.assertEqual(judge.point(-0.0, 0.0, [Flaw("", "0.0s")]), (None, "the cell is empty"))
        document = {"error aggregate document": {"error document": [{"error": None, "error feature": None}]}}
        self.assertEqual(flaws(document), [Flaw("", "")])

    def test_a_blank_cell_of_a_curve_is_a_point_without_a_value(self) -> None:
        rows = Rows("AGILENT_GEN5", b"", Times("UTC"))
        cube = {
            "cube-structure": {
                "dimensions": [{"concept": "elapsed time", "unit": "s"}],
                "measures": [{"concept": "absorbance", "unit": "mAU"}],
            },
            "data": {"dimensions": [[0.0, 600.0, 1200.0]], "measures": [[0.1, None, 0.3]]},
        }
        measurement = {"absorbance data cube": cube, "sample document": {"location identifier": "A1"}}
        group = {"measurement aggregate document": {"measurement document": [measurement]}}
        rows.take({"plate reader aggregate document": {"plate reader document": [group]}})
        self.assertEqual(rows.curves[0]["y"], [0.1, None, 0.3])
        metadata = rows.measurements[0]["metadata"]
        self.assertEqual(metadata["reason"], "the cell is empty")
        self.assertEqual(metadata["invalid_points"], [{"x": 600.0, "reason": "the cell is empty"}])


class Clocks(unittest.TestCase):
    def test_times_without_a_zone_are_those_of_the_instrument(self) -> None:
        times = Times("Europe/Berlin")
        self.assertEqual(times.parse("2026-07-01 12:00"), "2026-07-01T12:00:00+02:00")
        self.assertEqual(times.parse("2026-07-01T12:00:00Z"), "2026-07-01T12:00:00+00:00")
        self.assertEqual((times.doubts(), times.unclear), ([], {}))
        unknown = Times(None)
        unknown.parse("2026-07-01T12:00:00Z")
        self.assertEqual(unknown.doubts(), [])
        unknown.parse("2026-07-01 12:00")
        self.assertIn("taken as UTC", unknown.doubts()[0])

    def test_times_that_a_clock_change_leaves_out_or_repeats_are_no_times(self) -> None:
        times = Times("Europe/Berlin")
        left_out = times.parse("2026-03-29 02:30")
        twice = times.parse("2026-10-25 02:30")
        self.assertEqual(set(times.unclear), {left_out, twice})
        text = DEMO.read_text("utf-8").replace("03/01/2026", "10/25/2026").replace("09:00:00 AM", "02:30:00 AM")
        reading = read(text.encode(), "demo.txt", "auto", None, "Europe/Berlin")
        self.assertEqual({row["measured_at"] for row in reading["measurements"]}, {None})
        self.assertIn("twice", reading["measurements"][0]["metadata"]["measured_at_reason"])


class Table(unittest.TestCase):
    def test_the_table_is_that_of_the_installed_package(self) -> None:
        self.assertEqual(generate.TABLE.read_text("utf-8"), generate.text(generate.table()))


if __name__ == "__main__":
    unittest.main()
