"""What happens when the platform is busy, away, or killed."""

import io
import signal
import socket
import threading
import time

import pytest
from conftest import KEY, define_tables

import labdata_client as labdata


@pytest.fixture
def _bytes_through_proxy(shaky, proxy, server, monkeypatch):
    """Signed URLs would lead past the proxy."""
    put = shaky.transport.client.put
    monkeypatch.setattr(
        shaky.transport.client,
        "put",
        lambda url, **options: put(url.replace(server.url, proxy.url), **options),
    )


def keys_of(proxy, path):
    return [headers.get("Idempotency-Key") for _, seen, headers in proxy.seen if seen == path]


@pytest.mark.parametrize(
    "plan",
    [
        ["lost before"],
        ["lost after"],
        ["lost after", "lost after"],
        [(503, {}), "lost before"],
        [(429, {"Retry-After": "1"})],
        [(500, {}, "outcome_unknown")],
        [(503, {"Retry-After": "0"}, "timed_out")],
    ],
)
def test_a_write_has_one_effect(lab, tables, shaky, proxy, plan):
    proxy.plan = list(plan)
    result = shaky.write({tables.sample: [{"name": "A"}]})
    assert result.tables[0]["created"] == 1
    assert len(lab.read(tables.sample)) == 1
    keys = keys_of(proxy, "/api/v1/data/write")
    assert len(keys) == len(plan) + 1
    assert len(set(keys)) == 1
    assert keys[0]


def test_retry_after_is_honored(shaky, proxy):
    proxy.plan = [(429, {"Retry-After": "2"})]
    started = time.monotonic()
    shaky.tables()
    assert time.monotonic() - started >= 2


def test_a_pause_longer_than_the_patience_is_an_error_at_once(shaky, proxy):
    proxy.plan = [(429, {"Retry-After": "3600"})]
    with pytest.raises(labdata.Busy, match="429: refused by the test"):
        shaky.request("POST", "/notifications", json={"title": "x", "dedupe_key": "x"}, creates=True)
    assert len(proxy.seen) == 1


def test_other_errors_are_not_retried(shaky, proxy):
    proxy.plan = [(500, {})]
    with pytest.raises(labdata.ApiError, match="500"):
        shaky.tables()
    assert len(proxy.seen) == 1


@pytest.mark.parametrize("step", ["lost before", "lost after"])
def test_a_request_that_may_have_had_its_effect_is_not_sent_again(shaky, proxy, step):
    """As `POST /agent/runs`, which has no `Idempotency-Key`, and costs money each time."""
    proxy.plan = [step]
    with pytest.raises(labdata.ConnectionFailed, match=r"POST .*/agent/runs"):
        shaky.request("POST", "/agent/runs", json={"prompt": "x"})
    assert len(proxy.seen) == 1


@pytest.mark.parametrize("code", ["outcome_unknown", "timed_out"])
def test_an_unknown_outcome_without_a_key_is_an_error_at_once(shaky, proxy, code):
    proxy.plan = [(503, {"Retry-After": "0"}, code)]
    with pytest.raises(labdata.ApiError, match="503"):
        shaky.request("POST", "/agent/runs", json={"prompt": "x"})
    assert len(proxy.seen) == 1


@pytest.mark.parametrize("step", ["lost before", "lost after"])
def test_a_request_that_only_reads_is_sent_again(shaky, proxy, step):
    proxy.plan = [step]
    assert shaky.query("select 1 as one") == [{"one": 1}]
    assert len(proxy.seen) == 2


@pytest.mark.parametrize("step", ["lost before", "lost after", (503, {"Retry-After": "0"})])
def test_small_uploads_have_one_effect(lab, shaky, proxy, step):
    with lab.execution("Upload") as run:
        proxy.plan = [step]
        file = shaky.upload(b"content", name="small.txt", job_execution_id=run.id)
    found = [f for f in lab.files("small.txt") if f["job_execution_id"] == run.id]
    assert [f["file_id"] for f in found] == [file.file_id]


@pytest.mark.parametrize("position", range(3), ids=["url", "bytes", "confirmation"])
@pytest.mark.parametrize("step", ["lost before", "lost after", (503, {"Retry-After": "0"})])
@pytest.mark.usefixtures("_bytes_through_proxy")
def test_large_uploads_have_one_effect(lab, shaky, proxy, position, step):
    content = bytes(range(256)) * 20_000
    with lab.execution("Upload") as run:
        proxy.plan = [None] * position + [step]
        file = shaky.upload(io.BytesIO(content), name="large.bin", job_execution_id=run.id)
    found = [f for f in lab.files("large.bin") if f["job_execution_id"] == run.id]
    assert [f["file_id"] for f in found] == [file.file_id]
    assert file.size_kilobytes == 5_000


@pytest.mark.usefixtures("_bytes_through_proxy")
def test_the_key_is_not_sent_to_signed_urls(shaky, proxy):
    with shaky.execution("Upload") as run:
        run.upload(bytes(5_000_000), name="large.bin")
    puts = [headers for method, _, headers in proxy.seen if method == "PUT"]
    assert len(puts) == 1
    assert "authorization" not in {name.lower() for name in puts[0]}


def test_a_wrong_address_is_noticed_soon():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with (
        labdata.connect(url, KEY, retry_seconds=3600) as lab,
        pytest.raises(labdata.ConnectionFailed, match=url),
    ):
        lab.tables()


def test_a_killed_server_loses_nothing_and_doubles_nothing(own_server):
    with labdata.connect(own_server.url, KEY) as lab:
        tables = define_tables(lab)
        total = 100_000
        taken, killed = threading.Event(), threading.Event()

        def rows():
            for number in range(total):
                if number == 35_000:
                    taken.set()
                if number == 65_000:
                    killed.wait()
                yield {
                    "_ref": f"s{number}",
                    "name": f"S{number:06}",
                    "parent": f"@s{number - 1}" if number else None,
                }

        def kill_and_start():
            taken.wait()
            own_server.stop(signal.SIGKILL)
            killed.set()
            own_server.start()

        killer = threading.Thread(target=kill_and_start)
        killer.start()
        try:
            with lab.execution("Large import") as run:
                result = run.write({tables.sample: rows()})
        finally:
            killer.join()
        assert result.tables[0]["created"] == len(set(result.tables[0]["ids"])) == total
        assert lab.get_execution(run.id).status == "completed"
        counts = "count(*) as n, count(distinct name) as names, count(parent_id) as parents"
        sql = f"select {counts} from {tables.sample}"
        assert lab.query(sql) == [{"n": total, "names": total, "parents": total - 1}]
        child, parent = lab.read(tables.sample, name__in=["S050000", "S049999"])[:2]
        by_name = {row["name"]: row for row in (child, parent)}
        assert by_name["S050000"]["parent"] == by_name["S049999"]["id"]
