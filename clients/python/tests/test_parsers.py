"""Each script of docs/parsers on its file, as in a run on the platform."""

import ast
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import KEY

PARSERS = Path(__file__).parents[3] / "docs/parsers"
SCRIPTS = sorted(PARSERS.glob("*.py"))
EXAMPLES = {path.stem: path for path in (PARSERS / "examples").iterdir()}


@pytest.fixture
def run(lab, server, tmp_path):
    """Run a script on a file as the platform does, and return what the execution changed."""

    def start(script, path, parameters="{}"):
        readers = [found["name"] for found in lab.instruments()]
        if "Parsers" not in readers:
            lab.request("POST", "/instruments", json={"name": "Parsers"}, creates=True)
        with lab.execution(f"Parser {script.stem}") as execution:
            file = execution.upload(path)
            environment = {
                **os.environ,
                "LABDATA_BASE_URL": server.url,
                "LABDATA_API_KEY": KEY,
                "LABDATA_JOB_EXECUTION_ID": execution.id,
                "LABDATA_FILE_ID": file.file_id,
                "LABDATA_PARAMETERS": parameters,
            }
            command = [sys.executable, str(script)]
            done = subprocess.run(
                command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            return {entry["table"]: entry for entry in execution.changes()["tables"]}

    return start


def test_every_script_has_a_file_and_a_line_in_the_page():
    assert SCRIPTS
    page = (PARSERS / "README.md").read_text()
    for script in SCRIPTS:
        assert script.stem in EXAMPLES
        assert f"[{script.name}]({script.name})" in page
        # As old as the client's oldest Python.
        ast.parse(script.read_text(), feature_version=(3, 9))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_makes_its_tables_and_can_run_again(run, lab, script):
    first = run(script, EXAMPLES[script.stem])
    created = {table: entry["created"] for table, entry in first.items()}
    assert sum(created.values()) > 0
    again = run(script, EXAMPLES[script.stem])
    assert all(entry["created"] == 0 for entry in again.values())
    rows = {table: len(lab.read(table)) for table, count in created.items() if count}
    assert rows == {table: count for table, count in created.items() if count}


def test_a_kinetic_read(run, lab):
    run(PARSERS / "gen5_kinetic.py", EXAMPLES["gen5_kinetic"])
    wells = {row["well"]: row for row in lab.read("kinetic_well", plate="Simulated plate")}
    assert len(wells) == 6
    assert wells["A1"]["wavelength"] == 600
    curve = lab.series("kinetic_curve", [wells["A1"]["id"]])[0].columns
    # Past midnight the hours go on; an overflow is no number.
    assert curve["hours"][-1] == pytest.approx(25 + 30 / 3600)
    assert curve["absorbance"][-1] is None
    assert curve["absorbance"][8] == pytest.approx(0.78)


def test_an_endpoint_plate(run, lab):
    run(PARSERS / "plate_endpoint.py", EXAMPLES["plate_endpoint"])
    rows = {(row["plate"], row["well"]): row for row in lab.read("endpoint_reading")}
    assert len(rows) == 2 * 8 * 6
    assert rows["P-001", "A1"]["signal"] == 4004.25
    assert rows["plate 2", "A1"]["signal"] == 4005.25
    overflow = rows["P-001", "H6"]
    assert (overflow["signal"], overflow["note"]) == (None, "OVER")


def test_a_chromatogram(run, lab):
    run(PARSERS / "chromatogram.py", EXAMPLES["chromatogram"], '{"timezone": "Europe/Berlin"}')
    injection = lab.read("chromatogram")[0]
    # Summer time began that night.
    assert injection["injected_at"] == "2026-03-29T12:05:07Z"
    peaks = lab.read("chromatogram_peak", order_by="number")
    assert [peak["compound"] for peak in peaks] == ["caffeine", None, "theobromine"]
    assert peaks[1]["area"] == 8021.75
    trace = lab.series("chromatogram_trace", [injection["id"]])[0]
    assert trace.points == 201
    assert trace.columns["minutes"][-1] == 10.0


def test_a_qpcr(run, lab):
    run(PARSERS / "qpcr.py", EXAMPLES["qpcr"])
    wells = {row["well"]: row for row in lab.read("qpcr_well")}
    assert {well: row["ct"] for well, row in wells.items()} == {"A1": 24.125, "A2": 27.5, "A3": None}
    curves = lab.series("qpcr_amplification", [wells["A1"]["id"], wells["A3"]["id"]])
    assert [curve.points for curve in curves] == [40, 40]
    # The software groups thousands.
    assert math.isclose(max(curves[0].columns["delta_rn"]), 2500, rel_tol=0.01)
