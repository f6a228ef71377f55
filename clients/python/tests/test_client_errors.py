"""Everything that the client raises is a LabdataError that says what to do."""

import datetime
import json
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import KEY

import labdata_client as labdata


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8080",
        "127.0.0.1:8080",
        "ftp://example.org",
        "http://",
        "http://[::1",
        "http://example.org:port",
        "http://example.org:99999999",
        "http://example.org?x=1",
        "http://user:secret@example.org",
        "http://exa mple.org",
        "\x00",
        7,
    ],
)
def test_an_address_that_is_none_is_refused_at_once(url):
    with pytest.raises(labdata.LabdataError, match="address") as error:
        labdata.connect(url, KEY)
    assert "secret" not in str(error.value)


def test_a_port_that_is_none_is_named():
    with pytest.raises(labdata.InvalidArgument, match="has the port 99999, and ports end at 65535"):
        labdata.connect("http://127.0.0.1:99999", KEY)


@pytest.mark.parametrize("key", ["ldk_ä", "ldk_a b", "ldk_\nx", " \n", b"ldk_x", "ldk_\u200b"])
def test_a_key_that_is_none_is_refused_at_once(key):
    with pytest.raises(labdata.LabdataError, match="API key"):
        labdata.connect("http://127.0.0.1:1", key)


def test_blanks_around_address_and_key_do_not_count(server):
    with labdata.connect(f" {server.url}/ \n", f"{KEY}\n") as lab:
        lab.instruments()


@pytest.fixture
def _without_proxies(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.usefixtures("_without_proxies")
class TestProxies:
    @pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "http://127.0.0.1:9", "nonsense://x"])
    @pytest.mark.parametrize("variable", ["ALL_PROXY", "HTTP_PROXY"])
    def test_a_platform_on_this_machine_is_reached_directly(self, server, monkeypatch, variable, proxy):
        monkeypatch.setenv(variable, proxy)
        with labdata.connect(server.url, KEY) as lab:
            lab.instruments()

    @pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "nonsense://x"])
    def test_a_proxy_that_cannot_be_used_is_named(self, monkeypatch, proxy):
        monkeypatch.setitem(sys.modules, "socksio", None)
        monkeypatch.setenv("ALL_PROXY", proxy)
        with pytest.raises(labdata.LabdataError, match=r"ALL_PROXY.*NO_PROXY=labdata\.invalid") as error:
            labdata.connect("https://labdata.invalid", KEY)
        assert ("labdata-client[socks5]" in str(error.value)) == proxy.startswith("socks5")

    def test_a_proxy_that_does_not_answer_is_no_crash(self, monkeypatch):
        monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
        with (
            labdata.connect("http://labdata.invalid", KEY, retry_seconds=0.1) as lab,
            pytest.raises(labdata.ConnectionFailed, match=r"labdata\.invalid"),
        ):
            lab.instruments()


def test_pages_of_other_programs_are_no_results(shaky, proxy):
    proxy.answers["/api/v1/tools/schema"] = ("text/html", b"<html>Please sign in</html>")
    with pytest.raises(labdata.LabdataError, match=r"text/html.*another program"):
        shaky.tables()


def test_a_redirect_names_the_address(shaky, proxy):
    proxy.plan = [(301, {"Location": "https://labdata.example.org/api/v1/tools/schema"})]
    with pytest.raises(labdata.ApiError, match=r"https://labdata\.example\.org"):
        shaky.tables()


def test_a_broken_encoding_is_an_error_of_the_connection(shaky, proxy):
    proxy.plan = [(200, {"Content-Encoding": "gzip"})]
    with pytest.raises(labdata.ConnectionFailed):
        shaky.tables()


@pytest.mark.parametrize(
    "rows",
    [
        7,
        "text",
        {"name": "A"},
        [["A"]],
        [{"name": object()}],
        [{("a", "b"): 1}],
        [{"name": "\ud800"}],
        [{"name": float("inf")}],
        pd.DataFrame([[1, 2]], columns=["name", "name"]),
        pd.DataFrame([[1, 2]], columns=[1, "1"]),
        pd.concat([pd.DataFrame({"name": [1]}), pd.DataFrame({"name": [2]})], axis=1),
        pd.DataFrame({"name": [1]}, index=pd.Index([2], name="name")),
        pa.table([[1], [2]], names=["name", "name"]),
        pd.DataFrame({"name": pd.to_datetime(["2026-03-01T00:00:00.000000001Z"])}),
        pl.DataFrame({"name": [1]}).cast(pl.Datetime("ns")),
        pa.table({"name": pa.array([1], pa.timestamp("ns"))}),
    ],
)
def test_rows_that_cannot_be_sent_are_refused(lab, tables, rows):
    with pytest.raises(labdata.LabdataError):
        lab.write({tables.sample: rows})
    assert lab.read(tables.sample) == []


@pytest.mark.parametrize("columns", [{"hours": 7}, {"hours": "text"}, pa.table([[1], [2]], names=["a", "a"])])
def test_curves_that_cannot_be_sent_are_refused(lab, tables, columns):
    with pytest.raises(labdata.LabdataError):
        lab.write(series={tables.curve: {"x": columns}})


def test_files_of_this_machine(lab, tmp_path):
    with pytest.raises(labdata.LabdataError, match=r"missing\.txt"), lab.execution("x") as run:
        run.upload(tmp_path / "missing.txt")
    with pytest.raises(labdata.LabdataError), lab.execution("x") as run:
        run.upload(tmp_path)
    with pytest.raises(labdata.LabdataError):
        lab.export("experiment", tmp_path / "no" / "such" / "folder" / "x.csv")


def test_results_are_lists_and_dicts_of_json(lab, tables):
    row = {"_ref": "a", "name": "A"}
    points = {"@a": {"hours": [0.0, 1.0], "od600": [0.5, None]}}
    written = lab.write({tables.sample: [row]}, series={tables.curve: points})
    key = written.refs["a"]
    results = [
        written,
        lab.tables(),
        lab.read(tables.sample),
        lab.query(f"select * from {tables.sample}"),
        lab.series(tables.curve, [key]),
        lab.files(),
        lab.changes(written.job_execution_id),
    ]
    for result in results:
        assert json.loads(json.dumps(result)) == result
    curve = {
        "parent": key,
        "columns": {"order": [0, 1], "hours": [0.0, 1.0], "od600": [0.5, None]},
        "points": 2,
    }
    assert json.loads(json.dumps(lab.series(tables.curve))) == [curve]


def test_integers_with_nulls_stay_integers(lab, tables):
    large = 2**53 + 1
    lab.write({tables.reading: [{"number": large}, {"number": None}, {"number": -large}]})
    read = lab.read(tables.reading, order_by="number")
    queried = lab.query(f"select number, created_at from {tables.reading} order by number")
    for result in (read, queried):
        frame = result.to_pandas()
        assert str(frame["number"].dtype) == "Int64"
        assert frame["number"].dropna().tolist() == [-large, large]
        assert str(frame["created_at"].dtype).startswith("datetime64[us, UTC")
        assert result.to_polars()["number"].drop_nulls().to_list() == [-large, large]
        assert result.to_polars()["created_at"].dtype == pl.Datetime("us", "UTC")
        assert result.to_arrow()["number"].drop_null().to_pylist() == [-large, large]
        text = json.dumps(result)
        assert [row["number"] for row in json.loads(text)] == [row["number"] for row in result]
    full = lab.query(f"select number from {tables.reading} where number is not null").to_pandas()
    assert full["number"].dtype == np.int64


def test_times_of_the_platforms_own_tables_are_datetimes(lab):
    lab.execution("Some job").open().close()
    frame = lab.read("job", limit=5).to_polars()
    assert frame["created_at"].dtype == pl.Datetime("us", "UTC")


def test_a_column_that_another_client_added_has_its_type(lab, server, tables):
    lab.read(tables.sample)
    with labdata.connect(server.url, KEY) as other:
        columns = [{"name": "drawn_at", "data_type": "datetime"}]
        other.define_table(tables.sample, columns, ensure=True)
    lab.write({tables.sample: [{"name": "A", "drawn_at": "2026-03-01T00:00:00Z"}]})
    assert lab.read(tables.sample).to_polars()["drawn_at"].dtype == pl.Datetime("us", "UTC")


def test_durations_times_of_day_and_decimals(lab, tables):
    lab.write(
        {tables.reading: [{"value": datetime.timedelta(milliseconds=1500), "note": datetime.time(8, 30)}]}
    )
    row = lab.read(tables.reading)[0]
    assert (row["value"], row["note"]) == (1.5, "08:30:00")
    long = Decimal("0.12345678901234567890")
    with pytest.raises(labdata.WriteRefused):
        lab.write({tables.reading: [{"value": long}]})
    lab.write({tables.reading: [{"note": long}, {"value": Decimal("0.1")}, {"number": Decimal(2**60)}]})
    assert lab.read(tables.reading, note=str(long))
    assert lab.read(tables.reading, number=2**60)[0]["value"] is None


def test_a_query_returns_any_number_of_rows(lab):
    rows = lab.query("select i, i::float8 / 4 as x from generate_series(1, 30000) i")
    assert len(rows) == 30_000
    assert rows[-1] == {"i": 30_000, "x": 7_500.0}


def test_a_definition_is_ensured_with_the_write_scope(lab, server, tables):
    key = lab.request("POST", "/api-keys", json={"name": "script", "scopes": ["write"]})["key"]
    columns = [{"name": "name", "data_type": "string"}, {"name": "ph", "data_type": "float"}]
    with labdata.connect(server.url, key) as script:
        for _ in range(2):
            table = script.define_table(tables.sample, columns, ensure=True)
            assert "ph" in [column["name"] for column in table["columns"]]


def test_logs_and_reports_are_asked_for_by_run_and_model(shaky, proxy):
    run = "01a205b8-12a7-7000-ace7-3dcf56c90105"
    proxy.answers[f"/api/v1/job-executions/{run}/logs"] = ("text/plain; charset=utf-8", "µ\n".encode())
    assert shaky.logs(run) == "µ\n"
    proxy.answers[f"/api/v1/ml-models/{run}/report"] = ("text/html; charset=utf-8", b"<p>r2</p>")
    proxy.answers["/api/v1/ml-models?limit=1000"] = (
        "application/json",
        json.dumps([{"id": run, "name": "yield"}]).encode(),
    )
    for model in ("yield", run):
        page = shaky.report(model)
        assert page == "<p>r2</p>"
        assert "&lt;p&gt;" in page._repr_html_()
    with pytest.raises(labdata.LabdataError, match="no model 'other'; there are: 'yield'"):
        shaky.report("other")


def test_a_job_is_backfilled_by_name(lab):
    reader = lab.request("POST", "/instruments", json={"name": "Backfilled"}, creates=True)
    files = [lab.upload(b"a\n1\n", name=f"{n}.csv", instrument=reader["id"]).file_id for n in range(3)]
    job = {
        "name": "Parse backfilled",
        "code": "pass",
        "trigger_enabled": True,
        "trigger_category": "file_uploaded",
        "trigger_instrument_id": reader["id"],
    }
    lab.request("POST", "/jobs", json=job, creates=True)
    found = lab.backfill("Parse backfilled", instrument="Backfilled", dry_run=True)
    assert (found.count, found.files, found.execution_ids) == (3, files, [])
    found = lab.backfill("Parse backfilled", file_ids=files[:1])
    assert lab.get_execution(found.execution_ids[0]).trigger_file_id == files[0]
    with pytest.raises(labdata.LabdataError, match="no job 'Parse'"):
        lab.backfill("Parse")


def test_errors_can_be_told_apart_as_before():
    assert issubclass(labdata.InvalidArgument, (ValueError, TypeError))
    assert issubclass(labdata.LocalFileNotFound, FileNotFoundError)
    assert issubclass(labdata.MissingLibrary, ModuleNotFoundError)
