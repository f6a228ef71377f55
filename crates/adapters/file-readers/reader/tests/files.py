"""Files of instruments for the tests."""

from __future__ import annotations

import unittest
from pathlib import Path
from typing import Any

from labdata_reader.reading import read

HERE = Path(__file__).resolve()
DEMO = HERE.parents[5] / "docs/demo/simulated_growth_curves.txt"


def real_file(name: str) -> Path:
    """Returns a real export; they are not part of the repository, so that a test is skipped without them."""
    for directory in HERE.parents:
        file = directory / "shared/data" / name
        if file.is_file():
            return file
    raise unittest.SkipTest(f"shared/data/{name} is not here: real exports are no part of the repository")


def reading_of(file: Path, reader: str = "auto", zone: str | None = None, preferred: str | None = None) -> dict[str, Any]:
    """Returns what readers find in a file."""
    return read(file.read_bytes(), file.name, reader, preferred, zone)


def curves_of(reading: dict[str, Any]) -> list[tuple[dict[str, Any], list[float], list[float | None]]]:
    """Returns the measurements of curves with positions and values."""
    rows = reading["measurements"]
    return [(rows[curve["measurement"]], curve["x"], curve["y"]) for curve in reading["curves"]]


def values_of(reading: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Returns the measurements of a kind that are no curves."""
    return [row for row in reading["measurements"] if row["kind"] == kind and row["x_name"] is None]
