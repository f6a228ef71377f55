"""Inside a run on the platform: a real run hands its environment to the test and waits for it to finish."""

import json
import textwrap
import time
import uuid

import pytest
from conftest import KEY

import labdata_client as labdata

SCRIPT = """
    import json, os, time, urllib.request

    def call(path, body):
        request = urllib.request.Request(
            os.environ["LABDATA_BASE_URL"] + path,
            data=json.dumps(body).encode(),
            headers={
                "Authorization": "Bearer " + os.environ["LABDATA_API_KEY"],
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    table = json.loads(os.environ["LABDATA_PARAMETERS"])["table"]
    environment = {name: value for name, value in os.environ.items() if name.startswith("LABDATA_")}
    call("/api/v1/data/write", {"tables": [
        {"table": table, "rows": [{"name": "environment", "strain": json.dumps(environment)}]}
    ]})
    read = {"target_name": table, "target_type": "table", "filters": {"name": "done"}}
    for _ in range(600):
        if call("/api/v1/tools/read", read):
            break
        time.sleep(0.2)
"""


def wait_for(look, seconds=180):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.2)
    pytest.fail("it did not happen")


@pytest.fixture
def run(lab, tables, monkeypatch):
    body = {"name": f"Job {uuid.uuid4()}", "code": textwrap.dedent(SCRIPT)}
    job = lab.request("POST", "/jobs", json=body, creates=True)
    parameters = {"parameters": {"table": tables.sample}}
    started = lab.request("POST", f"/jobs/{job['id']}/run", json=parameters, creates=True)
    execution = started["job_execution_id"]

    def environment():
        found = lab.read(tables.sample, name="environment")
        record = lab.get_execution(execution)
        assert record.status in ("queued", "running"), record
        return found

    for name, value in json.loads(wait_for(environment)[0]["strain"]).items():
        monkeypatch.setenv(name, value)
    yield execution
    with labdata.connect(lab.transport.base_url, KEY) as outside:
        outside.write({tables.sample: [{"name": "done"}]})
        wait_for(lambda: lab.get_execution(execution).status == "completed")


def test_the_execution_is_the_run(lab, server, tables, run):
    with labdata.connect() as inside:
        assert inside.platform_run.job_execution_id == run
        assert inside.platform_run.parameters == {"table": tables.sample}
        assert inside.platform_run.file_id is None
        with inside.execution() as execution:
            assert execution.id == run
            written = execution.write({tables.sample: [{"name": "A"}]})
            file = execution.upload(b"a", name="a.txt")
        # The platform ends the run, not its script.
        assert execution.status == "running"
        outside_of_a_block = inside.write({tables.sample: [{"name": f"S{i}"} for i in range(10_001)]})
        assert written.job_execution_id == outside_of_a_block.job_execution_id == run
    assert [f["job_execution_id"] for f in lab.files("a.txt") if f["file_id"] == file.file_id] == [run]
    # A script that names another key does not act for the run.
    with labdata.connect(server.url, KEY) as other:
        assert other.platform_run is None


def test_an_exception_reverts_the_run(lab, tables, run):
    def script():
        with labdata.connect() as inside, inside.execution(revert_on_error=True) as execution:
            execution.write({tables.sample: [{"name": "A"}]})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        script()
    assert lab.read(tables.sample, name="A") == []
    assert lab.get_execution(run).status == "running"
