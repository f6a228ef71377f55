"""Heartbeats of `labdata-watch`, against a real platform; the story of an outage is in `test_outages.py`."""

import os
import threading
import uuid

import pytest
from conftest import KEY
from proxy import Proxy

import labdata_client as labdata
from labdata_client.watch.heartbeat import APP_VERSION, Heart
from labdata_client.watch.state import State
from labdata_client.watch.watcher import Watcher


@pytest.fixture
def instrument(lab):
    return lab.request("POST", "/instruments", json={"name": f"Reader {uuid.uuid4()}"}, creates=True)["id"]


@pytest.fixture
def watcher(lab, instrument, tmp_path):
    (tmp_path / "folder").mkdir()
    return Watcher(lab, tmp_path / "folder", instrument, State(tmp_path / "state"))


def device(lab, instrument):
    return lab.request("GET", f"/instruments/{instrument}/device")


def test_a_device_that_never_reported_has_no_status(lab, instrument):
    status = lab.device_status(instrument)
    assert status["current_status"] is None
    assert status["statuses"] == []
    assert status["instrument"]["id"] == instrument


def test_a_heartbeat_makes_a_device_online(lab, instrument):
    lab.heartbeat(instrument, app_version="1", is_watching=True, queued_files=2, detail={"failing": 0})
    lab.heartbeat(instrument, status="error", app_version="1", is_watching=True)
    status = lab.device_status(instrument)
    assert status["current_status"]["value"] == "error"
    assert [period["status"] for period in status["statuses"]] == ["online", "error"]
    assert status["statuses"][0]["app_version"] == "1"
    assert status["notes"] == []
    with pytest.raises(labdata.BadRequest):
        lab.device_status(instrument, start_time="2027-01-01T00:00:00Z", end_time="2026-01-01T00:00:00Z")


def test_a_watcher_reports_what_waits_and_why(lab, instrument, watcher, monkeypatch):
    heart = Heart(lab, instrument, watcher)
    root = watcher._root
    watcher.step(0)
    heart.beat()
    found = device(lab, instrument)
    assert (found["status"], found["is_watching"], found["queued_files"]) == ("online", True, 0)
    assert found["app_version"] == APP_VERSION

    (root / "program.txt").write_bytes(b"\x7fELF" + bytes(1_000))
    (root / "locked.txt").write_text("a")
    (root / "plate.txt").write_text("b")
    real_open = open

    def locked(path, *arguments, **options):
        if str(path).endswith("locked.txt"):
            raise PermissionError(13, "The process cannot access the file", str(path))
        return real_open(path, *arguments, **options)

    monkeypatch.setattr("builtins.open", locked)
    watcher.step(10)
    assert watcher.condition().queued_files == 3
    watcher.step(20)
    heart.beat()
    found = device(lab, instrument)
    assert (found["status"], found["queued_files"]) == ("error", 1)
    assert found["detail"] == {"unreadable": 0, "failing": 1, "refused": 1}

    monkeypatch.undo()
    (root / "program.txt").unlink()
    watcher.step(30)
    watcher.step(40)
    heart.beat()
    found = device(lab, instrument)
    assert (found["status"], found["queued_files"]) == ("online", 0)

    root.rename(root.with_name("away"))
    watcher.step(50)
    heart.beat()
    found = device(lab, instrument)
    assert (found["status"], found["is_watching"]) == ("error", False)
    assert found["detail"]["unreadable"] == 1


def test_a_platform_without_heartbeats_is_not_complained_about(server, instrument, watcher, caplog):
    proxy = Proxy(server.url)
    try:
        with labdata.connect(proxy.url, KEY, retry_seconds=0) as old:
            heart = Heart(old, instrument, watcher)
            proxy.plan = [(404, {}, "not_found")] * 3
            for _ in range(3):
                heart.beat()
            assert caplog.records == []
            heart.beat()
        with labdata.connect(server.url, KEY) as lab:
            assert device(lab, instrument)["status"] == "online"
    finally:
        proxy.close()


def test_a_heartbeat_that_fails_is_logged_once_and_stops_nothing(server, instrument, watcher, caplog):
    proxy = Proxy(server.url)
    try:
        with labdata.connect(proxy.url, KEY, retry_seconds=0) as lab:
            heart = Heart(lab, instrument, watcher)
            proxy.plan = [
                (403, {}, "scope_missing"),
                (500, {}, "internal"),
                (503, {"Retry-After": "1"}, "busy"),
            ]
            for _ in range(3):
                heart.beat()
            assert [record.levelname for record in caplog.records] == ["WARNING"]
            proxy.plan = ["lost before", None, (500, {}, "internal")]
            for _ in range(3):
                heart.beat()
            assert len(caplog.records) == 2
    finally:
        proxy.close()
    (watcher._root / "plate.txt").write_text("a")
    watcher.step(10)
    watcher.step(20)
    assert watcher.is_idle


def test_the_thread_beats_while_an_upload_takes_long(server, lab, instrument, watcher, monkeypatch):
    """A large file over a slow line takes longer than three minutes, after which a device is offline."""
    uploading, finish, beaten = threading.Event(), threading.Event(), threading.Event()
    real_upload = watcher._lab.upload

    def slow(*arguments, **options):
        uploading.set()
        assert finish.wait(60)
        return real_upload(*arguments, **options)

    monkeypatch.setattr(watcher._lab, "upload", slow)
    (watcher._root / "large.bin").write_bytes(os.urandom(100))
    watcher.step(10)
    thread = threading.Thread(target=watcher.step, args=(20,))
    thread.start()
    assert uploading.wait(60)
    with labdata.connect(server.url, KEY) as own:
        heart = Heart(own, instrument, watcher)
        real_beat = heart.beat

        def beat():
            real_beat()
            beaten.set()

        monkeypatch.setattr(heart, "beat", beat)
        heart.start()
        assert beaten.wait(60)
        heart.stop()
        heart._thread.join(60)
    assert device(lab, instrument)["queued_files"] == 1
    finish.set()
    thread.join(60)
    assert watcher.is_idle


def test_a_key_that_only_writes_may_report(lab, server, instrument):
    key = lab.request("POST", "/api-keys", json={"name": "watch", "scopes": ["write"]})["key"]
    with labdata.connect(server.url, key) as writer:
        writer.heartbeat(instrument)
        with pytest.raises(labdata.Forbidden):
            writer.device_status(instrument)
    key = lab.request("POST", "/api-keys", json={"name": "look", "scopes": ["read"]})["key"]
    with labdata.connect(server.url, key) as reader, pytest.raises(labdata.Forbidden):
        reader.heartbeat(instrument)
