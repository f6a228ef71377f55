"""Growth curves of a plate, from the reader's file to a trained model. `labdata demo` runs this script.

On another empty platform, with the client installed (`pip install ./clients/python`):

    export LABDATA_BASE_URL=http://127.0.0.1:8080 LABDATA_API_KEY=ldk_…
    python docs/demo/growth_curves.py docs/demo/simulated_growth_curves.txt
"""

import sys
import tempfile
import time
from pathlib import Path

import parse_growth_curves
from growth_report import Growth, report

import labdata_client as labdata

PLATE = "Plate 1, parsed in the lab"
MODEL = "Optical density over time"

SAMPLE = {
    "name": "sample",
    "data_type": "string",
    "references": "sample",
    "is_nullable": False,
    "description": "The sample that was measured.",
}
# Referenced tables come first.
TABLES = {
    "sample": {
        "description": "A culture in a well of a plate.",
        "columns": [
            {
                "name": "name",
                "data_type": "string",
                "is_nullable": False,
                "is_unique": True,
                "description": "Plate and well.",
            },
            {
                "name": "well",
                "data_type": "string",
                "is_nullable": False,
                "description": "The well, such as A1.",
            },
            {"name": "plate", "data_type": "string", "references": "carrier", "description": "The plate."},
        ],
        "unique_together": [["plate", "well"]],
    },
    "growth_result": {
        "description": "Figures of a sample's growth curve.",
        "columns": [
            SAMPLE,
            {"name": "start_od", "data_type": "float"},
            {"name": "max_od", "data_type": "float"},
            {"name": "max_od_per_h", "data_type": "float"},
        ],
    },
    "growth_curve": {
        "description": "Optical density at 600 nm over time.",
        "semantic_category": "raw",
        "columns": [
            SAMPLE,
            {
                "name": "order",
                "data_type": "integer",
                "is_nullable": False,
                "description": "The number of the read, from 0.",
            },
            {
                "name": "time_h",
                "data_type": "float",
                "is_nullable": False,
                "description": "Hours since the start.",
            },
            {"name": "od600", "data_type": "float", "description": "Null where the reader gave none."},
        ],
    },
}


class StepFailed(Exception):
    """The platform's response is not the expected one."""


def check(condition, message):
    """Raise `StepFailed` unless the condition holds."""
    if not condition:
        raise StepFailed(message)


class Steps:
    """Prints one line per step, with the time that it took."""

    def __init__(self):
        self.count, self.began = 0, time.perf_counter()

    def done(self, step, result):
        """Print that a step succeeded, and start the clock of the next one."""
        self.count += 1
        milliseconds = (time.perf_counter() - self.began) * 1000
        print(f"{self.count:>3}. {step:<34} {milliseconds:>8.1f} ms   {result}", flush=True)
        self.began = time.perf_counter()


def main(path):
    """Run all steps."""
    with labdata.connect(progress=False) as lab:
        steps = Steps()
        define(lab, steps)
        export = import_plate(lab, path, steps)
        revert_a_mistake(lab, export, steps)
        parse_on_upload(lab, path, export, steps)
        read_without_code(lab, path, export, steps)
        train_and_predict(lab, export, steps)
    print(f"\n{report(export)}\n", flush=True)


def define(lab, steps):
    """Create the instrument and the tables; defining a table again changes nothing."""
    instrument = {"name": "Plate reader", "instrument_type": "plate_reader"}
    created = lab.request("POST", "/instruments", json=instrument, creates=True)
    steps.done("create an instrument", created["id"])
    for name, definition in TABLES.items():
        table = lab.define_table(name, **definition)
        steps.done(f"define the table {name}", f"{len(table.columns)} columns")


def import_plate(lab, path, steps):
    """Upload the reader's file, parse it here, write it in one transaction and compare what is read back."""
    with lab.execution("Import growth curves", timeout_minutes=60, revert_on_error=True) as run:
        steps.done("open an execution", run.id)
        file = run.upload(path, instrument="Plate reader", content_type="text/plain")
        content = path.read_bytes()
        steps.done("upload the instrument file", f"{path.name}, {len(content)} bytes")
        with tempfile.TemporaryDirectory() as folder:
            stored = lab.download(file.file_id, folder).read_bytes()
        check(stored == content, "the downloaded bytes differ from the uploaded ones")
        steps.done("download it by its signed URL", "the bytes are the same")
        export = parse(path.name, stored)
        wells, points = len(export.wells), len(export.wells) * len(export.hours)
        steps.done("parse it", f"{wells} wells, {len(export.hours)} reads")

        write(run, export, dry_run=True)
        steps.done("try the write (dry_run)", "no problems, nothing written")
        write(run, export, dry_run=False)
        steps.done("write it in one transaction", f"{1 + 2 * wells} rows, {points} points")
        pages = check_points(lab, export, PLATE, run.id)
        steps.done("read the curves back", f"{points} points on {pages} pages, all equal")
        check_results(lab, export)
        steps.done("read the results back", f"{wells} rows, all equal")
    check(run.status == "completed", f"the execution was not closed: {run}")
    steps.done("close the execution", run.status)
    return export


def parse(name, content):
    """Parse an export; errors name the file."""
    try:
        return parse_growth_curves.parse(content)
    except parse_growth_curves.NotAnExport as error:
        raise StepFailed(f"{name}: {error}") from error


def write(run, export, *, dry_run):
    """Write the plate, its samples, their results and their curves; `@A1` refers to the row of A1."""
    growth = {well: Growth.of(export.hours, values) for well, values in export.wells.items()}
    written = run.write(
        {
            "carrier": [{"_ref": "plate", "name": PLATE, "carrier_type": "plate", "metadata": export.header}],
            "sample": [
                {"_ref": well, "name": f"{PLATE} {well}", "well": well, "plate": "@plate"}
                for well in export.wells
            ],
            "growth_result": [{"sample": f"@{well}", **growth[well]._asdict()} for well in export.wells],
        },
        series={
            "growth_curve": {
                f"@{well}": {"time_h": export.hours, "od600": values} for well, values in export.wells.items()
            }
        },
        dry_run=dry_run,
    )
    rows = sum(table["created"] for table in written.tables)
    points = sum(series["points_written"] for series in written.series)
    check(rows == 1 + 2 * len(export.wells), f"{rows} rows were created")
    check(points == len(export.wells) * len(export.hours), f"{points} points were written")
    check((written.job_execution_id is None) == dry_run, f"dry_run is {dry_run}: {written}")


def check_points(lab, export, plate, execution):
    """Compare every point of a plate with the file's, and return the number of pages read."""
    samples = lab.read("sample", plate__name=plate)
    check(
        all(sample["created_by_execution_id"] == execution for sample in samples),
        f"there are samples of {plate} that {execution} did not write",
    )
    ids = {sample["well"]: sample["id"] for sample in samples}
    check(len(samples) == len(ids) and set(ids) == set(export.wells), f"{len(samples)} samples: {ids}")
    # The client's `read` follows the pages by itself; here they are counted.
    body = {"target_name": "growth_curve", "target_type": "table", "limit": 1000}
    body["filters"] = {"sample__in": list(ids.values())}
    pages = list(lab.transport.pages("POST", "/tools/read", json=body))
    points = {(point["sample"], point["order"]): point for page in pages for point in page}
    check(len(points) == sum(map(len, pages)) == len(ids) * len(export.hours), f"{len(points)} points")
    for well, values in export.wells.items():
        for order, (hours, value) in enumerate(zip(export.hours, values)):
            point = points[ids[well], order]
            same = point["time_h"] == hours and point["od600"] == value
            check(same, f"{well} reads back {point} for {hours} h, {value}")
    return len(pages)


def check_results(lab, export):
    """Compare the figures of every well."""
    for well, values in export.wells.items():
        rows = lab.read("growth_result", sample__well=well)
        growth = Growth.of(export.hours, values)._asdict()
        same = [{name: row[name] for name in growth} for row in rows] == [growth]
        check(same, f"{well} reads back {rows} for {growth}")


def revert_a_mistake(lab, export, steps):
    """Undo everything that one execution wrote, with one request."""
    run = lab.execution("A script with a mistake", timeout_minutes=60).open()
    run.write(
        {"sample": [{"_ref": "wrong", "name": "mistake", "well": "Z99"}]},
        series={"growth_curve": {"@wrong": {"time_h": [0, 1, 2], "od600": [9, 9, 9]}}},
    )
    steps.done("write something wrong", "1 row, 3 points")
    reverted = run.revert()
    counts = reverted.deleted_count, reverted.raws_deleted_count
    check(counts == (1, 3), f"not one row and 3 points: {reverted}")
    run.close("failed")
    left = len(lab.read("sample"))
    check(left == len(export.wells), f"{left} samples are left of {len(export.wells)}")
    steps.done("revert that execution", "1 row and 3 points gone, the rest untouched")


def parse_on_upload(lab, path, export, steps):
    """Let a job on the platform parse each file that is uploaded for an instrument."""
    name = "Plate reader with a job"
    instrument = {"name": name, "instrument_type": "plate_reader"}
    instrument = lab.request("POST", "/instruments", json=instrument, creates=True)
    job = {
        "name": "Parse growth curves",
        "description": "Parses what the plate reader exports.",
        "code": Path(parse_growth_curves.__file__).read_text("utf-8"),
        "trigger_enabled": True,
        "trigger_category": "file_uploaded",
        "trigger_instrument_id": instrument["id"],
    }
    job = lab.request("POST", "/jobs", json=job, creates=True)
    steps.done("give an instrument a job", "it runs for each upload")
    file = lab.upload(path, instrument=name, content_type="text/plain")
    steps.done("upload the file to that instrument", "nothing else is asked for")

    ended = triggered_run(lab, job["id"], file.file_id, timeout=60)
    error = ended["error_message"] or ""
    if error.startswith(("preparing failed", "the script cannot be run")):
        print(f"     No job can run on this machine, so this part of the story is left out:\n     {error}")
        return
    check(ended["status"] == "completed", f"the script failed: {error}")
    execution = ended["job_execution_id"]
    log = lab.transport.request("GET", f"/job-executions/{execution}/logs").text
    steps.done("the job parses it on the platform", log.splitlines()[-1])
    check_points(lab, export, path.stem, execution)
    points = len(export.wells) * len(export.hours)
    steps.done("read back what it wrote", f"{points} points of its execution, all equal")


def read_without_code(lab, path, export, steps):
    """Let the platform read the file: no parser, no table. Needs the packages of the readers."""
    name = "Plate reader that is read"
    instrument = {"name": name, "reader": "auto", "timezone": "UTC"}
    lab.request("POST", "/instruments", json=instrument, creates=True)
    steps.done("give an instrument a reader", "auto: no code")
    file = lab.upload(path, instrument=name, content_type="text/plain")
    job = lab.request("GET", "/jobs", params={"name": "Read instrument file"})[0]
    try:
        ended = triggered_run(lab, job["id"], file.file_id, timeout=60)
    except StepFailed:
        print("     The file is not read now: the readers' packages are not here within a minute.")
        return
    if ended["status"] != "completed":
        error = (ended["error_message"] or "").splitlines()
        print(f"     The file is not read on this machine: {error[-1] if error else ended['status']}")
        return
    rows = lab.read("instrument_measurement", file_id=file.file_id)
    wells = {row["id"]: row["well"] for row in rows if row["x_name"] is not None}
    check(sorted(wells.values()) == sorted(export.wells), f"{len(wells)} curves: {wells}")
    points = {well: {} for well in export.wells}
    for point in lab.read("instrument_curve", instrument_measurement__in=list(wells)):
        points[wells[point["instrument_measurement"]]][point["order"]] = (point["x"], point["y"])
    for well, values in export.wells.items():
        curve = [points[well][order] for order in range(len(values))]
        same = [y for _, y in curve] == values
        same = same and all(round(hours * 3600) == x for hours, (x, _) in zip(export.hours, curve))
        check(same, f"{well} reads back {curve}")
    count = sum(map(len, points.values()))
    steps.done("upload a file; the platform reads it", f"{len(wells)} curves, {count} points, all equal")


def triggered_run(lab, job, file, timeout):
    """Wait for the end of the run that the upload of a file triggered."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        runs = lab.request("GET", "/job-executions", params={"job_id": job})
        for run in runs:
            if run["trigger_file_id"] == file and run["completed_at"] is not None:
                return run
        time.sleep(0.02)
    raise StepFailed(f"the upload's job has not ended after {timeout} s: {runs}")


def train_and_predict(lab, export, steps):
    """Train a model on the curves, and predict a value that was measured; needs packages for training."""
    dataset = {
        "name": MODEL,
        "query": "SELECT sample.well, growth_curve.time_h, growth_curve.od600 FROM growth_curve "
        "JOIN sample ON sample.id = growth_curve.sample_id JOIN carrier ON carrier.id = sample.plate_id "
        f"WHERE carrier.name = '{PLATE}' AND growth_curve.od600 IS NOT NULL",
    }
    dataset = lab.request("POST", "/datasets", json=dataset, creates=True)
    steps.done("make a dataset of the curves", f"{dataset['row_count']} rows")
    model = {
        "name": MODEL,
        "dataset_id": dataset["id"],
        "target_column": "od600",
        "quality_preset": "medium_quality",
    }
    try:
        # Without retries: 503 says here that this machine trains no models.
        with labdata.connect(retry_seconds=0) as once:
            model = once.request("POST", "/ml-models", json=model, creates=True)
        trained = wait_for_training(lab, model["id"])
        steps.done("train a model on it", f"R² {trained['evaluation_metrics']['r2']:.3f}")
        # The value in the middle of the first curve that has one there.
        middle = len(export.hours) // 2
        measured = {
            well: values[middle] for well, values in export.wells.items() if values[middle] is not None
        }
        if not measured:
            return
        well, od600 = next(iter(measured.items()))
        row = {"well": well, "time_h": export.hours[middle]}
        # Until the model's process has started, predictions return 503.
        with labdata.connect(retry_seconds=60) as patient:
            predicted = patient.predict(model_id=model["id"], data=[row]).predictions[0]
        result = f"{well} at {row['time_h']:.2f} h: {predicted:.3f}, measured {od600:.3f}"
        steps.done("predict a value", result)
    except labdata.Busy as error:
        print(f"     No model is trained on this machine now: {error.detail}")
    except NotTrained as reason:
        print(f"     No model is trained on this machine now: {reason}")


class NotTrained(Exception):
    """Reason why there is no model."""


def wait_for_training(lab, model):
    """Wait for the end of the training; cancel it if it takes too long."""
    began = time.monotonic()
    while True:
        record = lab.request("GET", f"/ml-models/{model}")
        if record["status"] == "ready":
            return record
        if record["status"] not in ("pending", "training"):
            raise NotTrained(record["error_message"] or "the training failed")
        # The trainer reports progress once it is installed; the demo does not wait long for that.
        timeout = 60 if record["progress"] is None else 240
        if time.monotonic() - began > timeout:
            lab.request("POST", f"/ml-models/{model}/cancel-training")
            raise NotTrained(f"it would take longer than {timeout} s")
        time.sleep(0.2)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except (labdata.LabdataError, StepFailed) as error:
        sys.exit(str(error))
