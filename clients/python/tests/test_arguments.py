"""Arguments of another shape: taken where there is one meaning, and refused in words elsewhere."""

import io
import uuid

import numpy as np
import pandas as pd
import pytest
from conftest import KEY

import labdata_client as labdata


@pytest.fixture
def filled(lab, tables):
    rows = [{"_ref": "a", "name": "A", "strain": "x"}, {"name": "B"}]
    points = {tables.curve: {"@a": {"hours": [0.0], "od600": [1.0]}}}
    return lab.write({tables.sample: rows}, points)


def test_a_text_is_one_name(lab, tables, filled):
    rows = lab.read(tables.sample, columns="name", order_by="-name")
    assert rows == [{"name": "B"}, {"name": "A"}]
    curves = lab.series(tables.curve, parents=filled.refs["a"], columns="od600")
    assert [(curve.parent, curve.columns) for curve in curves] == [(filled.refs["a"], {"od600": [1.0]})]
    written = lab.write({tables.sample: [{"name": "A", "strain": "y"}]}, mode="upsert", key="name")
    assert written.tables[0]["updated"] == 1
    entry = {"table": tables.sample, "rows": [{"name": "A"}], "mode": "upsert", "key": "name"}
    assert lab.write([entry]).tables[0]["updated"] == 1
    with lab.execution("Files") as run:
        file = run.upload(b"a", name=f"{uuid.uuid4().hex}.kind")
    assert [found["file_id"] for found in lab.files(file.file_name, extensions="kind")] == [file.file_id]
    name = f"group {uuid.uuid4().hex}"
    assert len(lab.create_group(name, "admin@localhost").members) == 1
    assert len(lab.update_group(name, members="admin@localhost").members) == 1


def test_arrays_and_columns_of_frames_are_lists(lab, tables, filled):
    ids = filled.tables[0]["ids"]
    for parents in (np.array(ids), pd.Series(ids), tuple(ids), iter(ids)):
        assert [curve.points for curve in lab.series(tables.curve, parents=parents)] == [1, 0]
    assert lab.query("select %s::int8 + %s::int8 as n", np.array([1, 2]))[0]["n"] == 3


WRONG_LISTS = [{"name": "A"}, 7, 1.5, True, b"name", np.array(7), pd.DataFrame({"name": [1]})]


@pytest.mark.parametrize("wrong", WRONG_LISTS, ids=lambda wrong: type(wrong).__name__)
@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("params", lambda lab, wrong: lab.query("select %s::text", wrong)),
        ("columns", lambda lab, wrong: lab.read("sample", columns=wrong)),
        ("order_by", lambda lab, wrong: lab.read("sample", order_by=wrong)),
        ("parents", lambda lab, wrong: lab.series("curve", parents=wrong)),
        ("columns", lambda lab, wrong: lab.series("curve", columns=wrong)),
        ("key", lambda lab, wrong: lab.write({"sample": []}, mode="upsert", key=wrong)),
        ("key", lambda lab, wrong: lab.import_file("sample", b"a", name="a.csv", key=wrong)),
        ("extensions", lambda lab, wrong: lab.files(extensions=wrong)),
        ("file_ids", lambda lab, wrong: lab.backfill("job", file_ids=wrong)),
        ("users", lambda lab, wrong: lab.create_group("name", wrong)),
        ("groups", lambda lab, wrong: lab.invite("a@b.example", groups=wrong)),
        ("events", lambda lab, wrong: lab.create_webhook("https://example.org", wrong)),
    ],
)
def test_what_is_no_list_is_refused(lab, argument, call, wrong):
    with pytest.raises(labdata.InvalidArgument, match=rf"{argument} is a list"):
        call(lab, wrong)


def test_parameters_are_no_text(lab):
    with pytest.raises(labdata.InvalidArgument, match="params is a list, not str: 'abc'"):
        lab.query("select %s, %s, %s", "abc")


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ([{"name": "x"}], r"tables\[0\] is a mapping with 'table' and 'rows'; it has no 'table'"),
        ([{"table": "kit"}], r"tables\[0\].*no 'rows'"),
        (["kit"], r"tables\[0\].*no 'table'"),
        ("kit", "tables is {table: rows}"),
        (7, "tables is {table: rows}"),
        (pd.DataFrame({"name": ["x"]}), "tables is {table: rows}.*DataFrame"),
        ({"kit": None}, "rows are a frame"),
    ],
)
def test_tables_of_another_shape_are_refused(lab, tables, words):
    with pytest.raises(labdata.InvalidArgument, match=words):
        lab.write(tables)


@pytest.mark.parametrize(
    ("series", "words"),
    [
        (
            [{"table": "t"}],
            r"series\[0\] is a mapping with 'table' and 'parent' and 'columns'; it has no 'parent'",
        ),
        ([7], r"series\[0\]"),
        ("t", "series is {table: {parent"),
        (7, "series is {table: {parent"),
        (pd.DataFrame({"x": [1]}), "series is .*DataFrame"),
        ({"t": {"p": 7}}, "rows are a frame"),
        ([{"table": "t", "parent": "p", "columns": 7}], "rows are a frame"),
    ],
)
def test_series_of_another_shape_are_refused(lab, series, words):
    with pytest.raises(labdata.InvalidArgument, match=words):
        lab.write(series=series)


def closed_file():
    file = io.BytesIO(b"a")
    file.close()
    return file


@pytest.mark.parametrize(
    "source",
    [pd.DataFrame({"a": [1]}), None, 7, [b"a"], {"a": 1}, object(), io.StringIO("a"), closed_file(), "\0"],
)
def test_sources_that_are_no_files_are_refused(lab, source):
    for send in (lab.upload, lambda given, name: lab.import_file("t", given, name=name), lab.preview_file):
        with pytest.raises(labdata.InvalidArgument):
            send(source, name="a.csv")


def test_a_file_that_is_open_for_texts_is_refused(lab, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a")
    with path.open() as file, pytest.raises(labdata.InvalidArgument, match='mode "rb"'):
        lab.upload(file)


def test_keys_of_rows_may_be_integers(lab):
    table = f"numbered_{uuid.uuid4().hex[:8]}"
    columns = [
        {"name": "n", "data_type": "integer", "is_primary_key": True},
        {"name": "v", "data_type": "float"},
    ]
    lab.define_table(table, columns)
    lab.write({table: [{"n": 1, "v": 1.0}]})
    lab.write({table: [{"n": 1, "v": 2.0}]}, mode="update")
    for key in (1, "1", np.int64(1)):
        assert len(lab.history(table, key)) >= 2
        lab.restore(table, key, 1)
    assert lab.read(table)[0]["v"] == 1.0


@pytest.mark.parametrize("wrong", [None, 1.5, True, ["a"], {}])
def test_ids_that_are_none_are_refused(lab, wrong):
    for call in (
        lambda: lab.history("t", wrong),
        lambda: lab.restore("t", wrong, 1),
        lambda: lab.history(wrong, "1"),
        lambda: lab.download(wrong),
        lambda: lab.restore_from_trash(wrong),
        lambda: lab.instrument_id(wrong),
        lambda: lab.report(wrong),
        lambda: lab.access(wrong),
        lambda: lab.delete_webhook(wrong),
        lambda: lab.read(wrong),
        lambda: lab.series(wrong),
        lambda: lab.write([{"table": wrong, "rows": []}]),
        lambda: lab.write(series=[{"table": wrong, "parent": 1, "columns": {}}]),
        lambda: lab.request(wrong, "/files"),
    ):
        with pytest.raises(labdata.InvalidArgument, match="a name or an id"):
            call()
    with pytest.raises(labdata.InvalidArgument, match="whole characters"):
        lab.history("t", "\ud800")
    with pytest.raises(labdata.InvalidArgument, match="params is a mapping"):
        lab.request("GET", "/files", params=["limit"])


def test_limits_filters_and_times_of_another_type_are_refused(lab):
    for call in (
        lab.files,
        lab.trash,
        lambda limit: lab.read("t", limit=limit),
        lambda limit: lab.history("t", 1, limit=limit),
    ):
        for limit in ("x", 1.5, [1]):
            with pytest.raises(labdata.InvalidArgument, match="limit is a whole number"):
                call(limit=limit)
    for call in (lab.read, lab.series):
        with pytest.raises(labdata.InvalidArgument, match="filters is a mapping"):
            call("t", filters="name")
    with pytest.raises(labdata.InvalidArgument, match="as_of is a datetime"):
        lab.export("t", as_of=7)
    with pytest.raises(labdata.InvalidArgument, match="to is a path"):
        lab.export("t", 7)


def test_durations_and_parent_columns_of_another_type_are_refused(lab, server):
    for argument in ("timeout", "retry_seconds"):
        for wrong in ("x", None, -1, True, [1]):
            with pytest.raises(labdata.InvalidArgument, match=f"{argument} is a number of seconds"):
                labdata.connect(server.url, KEY, **{argument: wrong})
    with pytest.raises(labdata.InvalidArgument, match="parent_column is a name"):
        lab.write(series={"curve": pd.DataFrame({"y": [1.0]})}, parent_column=["parent"])


def test_a_closed_client_says_so(server):
    with labdata.connect(server.url, KEY) as lab:
        run = lab.execution("Open").open()
    for call in (
        lab.tables,
        run.close,
        lambda: lab.upload(b"a", name="a.csv", instrument="x"),
        lambda: lab.export("t"),
    ):
        with pytest.raises(labdata.LabdataError, match="was closed"):
            call()
