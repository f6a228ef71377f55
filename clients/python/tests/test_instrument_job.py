"""The script of the built-in job that reads files of instruments, on what readers may find in many files."""

import hashlib
import runpy
from pathlib import Path

import pytest
from conftest import KEY

SCRIPT = Path(__file__).parents[3] / "crates/application/src/instruments/read_instrument_file.py"
FILES = 500


def reading(number):
    """Return the reading of a small export: two values and a curve of three points."""
    content = hashlib.sha256(f"export {number}".encode()).hexdigest()
    rows = [
        {
            "key": f"{content}/{position}",
            "kind": "absorbance",
            "well": well,
            "value": None if well == "A2" else number / 1000,
            "unit": "OD",
            "metadata": {"plate": "no such plate"},
        }
        for position, well in enumerate(("A1", "A2", "A3"))
    ]
    curves = [{"measurement": 1, "x": [0.0, 30.0, 60.0], "y": [0.1, None, number / 1000]}]
    return {"measurements": rows, "curves": curves}


@pytest.fixture
def script(server, lab, monkeypatch):
    """The script's functions, under an execution of its own."""
    with lab.execution("Read files off the platform") as run:
        monkeypatch.setenv("LABDATA_BASE_URL", server.url)
        monkeypatch.setenv("LABDATA_API_KEY", KEY)
        monkeypatch.setenv("LABDATA_JOB_EXECUTION_ID", run.id)
        yield runpy.run_path(str(SCRIPT))


def stored(lab):
    """Return each of these measurements by key, and the number of their points."""
    # Other tests read files too; the keys of readers hold no stroke.
    ours = "m.key LIKE '%/%'"
    rows = lab.query(
        "SELECT m.key, m.id, m.value, m.updated_at, m.created_by_execution_id "
        f"FROM instrument_measurement m WHERE {ours} ORDER BY m.key"
    )
    points = (
        "SELECT count(*) AS points FROM instrument_curve c "
        f"JOIN instrument_measurement m ON m.id = c.instrument_measurement_id WHERE {ours}"
    )
    return list(rows), lab.query(points)[0]["points"]


def test_reading_500_files_twice_changes_nothing_the_second_time(lab, script):
    write = script["write"]
    assert [write(reading(number)) for number in range(FILES)] == [3] * FILES
    measurements, points = stored(lab)
    assert (len(measurements), points) == (3 * FILES, 3 * FILES)
    assert [write(reading(number)) for number in range(FILES)] == [0] * FILES
    assert stored(lab) == (measurements, points)


def test_a_file_that_was_written_in_part_is_completed(script):
    write = script["write"]
    whole = reading(FILES)
    part = {"measurements": whole["measurements"][:1], "curves": []}
    assert (write(part), write(whole), write(whole)) == (1, 2, 0)
