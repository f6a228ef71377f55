import copy
import multiprocessing
import pickle

import httpx
import pytest

import labdata_client as labdata


def test_each_status_is_a_class(lab, server, tables):
    with pytest.raises(labdata.NotFound, match=r"\(request [-0-9a-f]{36}\)"):
        lab.get_execution("01a205b8-12a7-7000-ace7-3dcf56c90105")
    with pytest.raises(labdata.NotFound, match="table not found") as missing:
        lab.read("no_such_table")
    assert missing.value.code == "not_found"
    with pytest.raises(labdata.Invalid, match=r"body\.limit: "):
        lab.read(tables.sample, limit=0)
    with pytest.raises(labdata.BadRequest):
        lab.query("select no_such_column")
    with pytest.raises(labdata.NotFound):
        lab.predict("no such model", [{"x": 1}])
    with labdata.connect(server.url, "ldk_wrong") as stranger, pytest.raises(labdata.Unauthorized):
        stranger.tables()


def test_a_missing_scope_is_forbidden(lab, server):
    key = lab.request("POST", "/api-keys", json={"name": "reader", "scopes": ["read"]})["key"]
    with labdata.connect(server.url, key) as reader, pytest.raises(labdata.Forbidden, match="write"):
        reader.execution("x").open()


def test_a_conflict_names_the_taken_path(lab):
    instrument = lab.request("POST", "/instruments", json={"name": "Taken"}, creates=True)
    lab.upload(b"1", name="plate.txt", instrument="Taken")
    with pytest.raises(labdata.Conflict):
        lab.upload(b"1", name="plate.txt", instrument=instrument["id"])


def test_an_unknown_instrument_is_answered_with_the_known_ones(lab):
    lab.request("POST", "/instruments", json={"name": "Known"}, creates=True)
    with pytest.raises(labdata.LabdataError, match=r"no instrument 'Unknown'.*'Known'"):
        lab.upload(b"1", name="plate.txt", instrument="Unknown")


def test_errors_cross_processes():
    problem = labdata.Problem("tables[0].rows[1].name", "must be a string", "wrong_type")
    refused = labdata.WriteRefused([problem], request_id="r1")
    refused.job_execution_id = "e1"
    response = httpx.Response(
        404, json={"detail": "no such row", "code": "not_found"}, request=httpx.Request("GET", "http://x")
    )
    found = labdata.errors.error_from(response)
    missing = labdata.MissingLibrary("this needs polars", name="polars")
    absent = labdata.LocalFileNotFound(2, "No such file", "plate.txt")
    others = [labdata.ConnectionFailed("away"), labdata.InvalidArgument("x"), labdata.LabdataError("x")]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for error in (refused, found, missing, absent, *others):
            for copied in (
                copy.copy(error),
                pickle.loads(pickle.dumps(error)),
                pool.apply(_returned, (error,)),
            ):
                assert (type(copied), str(copied)) == (type(error), str(error))
                assert copied.__dict__ == error.__dict__
        with pytest.raises(labdata.NotFound, match="no such row") as raised:
            pool.apply(_raised, (found,))
    assert (raised.value.status, raised.value.code) == (404, "not_found")


def _returned(error):
    return error


def _raised(error):
    raise error


@pytest.mark.parametrize("missing", ["LABDATA_BASE_URL", "LABDATA_API_KEY"])
def test_a_missing_variable_is_named(monkeypatch, missing):
    monkeypatch.setenv("LABDATA_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("LABDATA_API_KEY", "ldk_x")
    monkeypatch.delenv(missing)
    with pytest.raises(labdata.LabdataError, match=missing):
        labdata.connect()


@pytest.mark.parametrize("suffix", ["", "/", "/api/v1", "/api/v1/"])
def test_the_address_may_have_the_prefix(server, suffix, monkeypatch):
    monkeypatch.setenv("LABDATA_BASE_URL", server.url + suffix)
    monkeypatch.setenv("LABDATA_API_KEY", "ldk_wrong")
    with labdata.connect() as lab, pytest.raises(labdata.Unauthorized):
        lab.tables()


def test_errors_of_storages_are_read_too():
    text = "<?xml version='1.0'?><Error><Code>EntityTooLarge</Code><Message>Too large.</Message></Error>"
    response = httpx.Response(400, text=text, request=httpx.Request("PUT", "http://x"))
    error = labdata.errors.error_from(response)
    assert isinstance(error, labdata.BadRequest)
    assert str(error) == "400: EntityTooLarge: Too large."
