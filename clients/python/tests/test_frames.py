import datetime
import decimal
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import KEY

import labdata_client as labdata

UTC = datetime.timezone.utc
TAKEN_AT = datetime.datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
COLUMNS = {
    "number": [1, None],
    "value": [1.5, None],
    "valid": [True, None],
    "taken_at": [TAKEN_AT, None],
    "day": [datetime.date(2026, 3, 1), None],
    "note": ["a", None],
}


def pandas_frame():
    frame = pd.DataFrame(COLUMNS)
    frame["number"] = frame["number"].astype("Int64")
    frame["valid"] = frame["valid"].astype("boolean")
    frame["note"] = frame["note"].astype("category")
    return frame


FRAMES = {
    "pandas": pandas_frame,
    "polars": lambda: pl.DataFrame(COLUMNS),
    "lazy": lambda: pl.LazyFrame(COLUMNS),
    "arrow": lambda: pa.table(COLUMNS),
    "batch": lambda: pa.RecordBatch.from_pydict(COLUMNS),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_are_written_and_read(lab, tables, kind):
    assert lab.write({tables.reading: FRAMES[kind]()}).tables[0]["created"] == 2
    rows = lab.read(tables.reading, number=1)
    assert rows[0]["value"] == 1.5
    assert rows[0]["taken_at"] == "2026-03-01T12:30:00Z"
    empty = lab.read(tables.reading, number=None)[0]
    assert [empty[name] for name in COLUMNS] == [None] * len(COLUMNS)

    everything = lab.read(tables.reading)
    arrow = everything.to_arrow()
    assert arrow.schema.field("number").type == pa.int64()
    assert arrow.schema.field("taken_at").type == pa.timestamp("us", "UTC")
    assert arrow.schema.field("day").type == pa.date32()
    frame = everything.to_polars()
    assert frame.schema["taken_at"] == pl.Datetime("us", "UTC")
    assert frame.schema["valid"] == pl.Boolean
    assert set(frame["taken_at"].to_list()) == {TAKEN_AT, None}
    assert str(everything.to_pandas()["taken_at"].dtype).startswith("datetime64[")

    queried = lab.query(f"select number, taken_at from {tables.reading} order by number")
    assert queried.to_polars()["taken_at"].to_list() == [TAKEN_AT, None]
    assert queried.to_pandas()["number"].tolist()[0] == 1
    assert queried.to_arrow().num_rows == 2


def test_a_named_index_is_data(lab, tables):
    frame = pd.DataFrame({"strain": ["x"]}, index=pd.Index(["A"], name="name"))
    lab.write({tables.sample: frame})
    assert lab.read(tables.sample)[0]["name"] == "A"


def test_scalars_of_numpy_and_others(lab, tables):
    row = {
        "number": np.int64(3),
        "value": np.float32(0.5),
        "valid": np.bool_(True),
        "taken_at": pd.Timestamp(TAKEN_AT),
        "note": pd.NA,
    }
    lab.write({tables.reading: [row, {"value": decimal.Decimal("2.5"), "taken_at": pd.NaT}]})
    first = lab.read(tables.reading, number=3)[0]
    assert (first["value"], first["valid"], first["note"]) == (0.5, True, None)
    assert lab.read(tables.reading, value=2.5)[0]["taken_at"] is None


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_a_frame_of_curves_is_split_by_parent(lab, tables, make):
    ids = lab.write({tables.sample: [{"name": "A"}, {"name": "B"}]}).tables[0]["ids"]
    points = make({"sample": [*ids, *ids], "hours": [0.0, 0.0, 1.0, 1.0], "od600": [1.0, 2.0, 3.0, 4.0]})
    result = lab.write(series={tables.curve: points})
    assert [entry["points_written"] for entry in result.series] == [2, 2]
    assert [curve.columns["od600"] for curve in lab.series(tables.curve, ids)] == [[1.0, 3.0], [2.0, 4.0]]


class TestJson:
    VALUES = ({"gain": [1, None, 2.5]}, [1, "a"], "text", 2**60, 0.1, True, None)

    @pytest.fixture
    def table(self, lab, tables):
        lab.write({tables.reading: [{"number": i, "settings": v} for i, v in enumerate(self.VALUES)]})
        return tables.reading

    @pytest.mark.parametrize("convert", ["to_pandas", "to_polars", "to_arrow", "copy"])
    @pytest.mark.parametrize("source", ["read", "query"])
    def test_what_was_read_is_written_as_it_was(self, lab, table, source, convert):
        if source == "read":
            rows = lab.read(table, columns=["number", "settings"])
        else:
            rows = lab.query(f"select number, settings from {table}")
        lab.write({table: getattr(rows, convert)()})
        stored = lab.read(table, order_by=["number", "created_at"])
        assert [row["settings"] for row in stored] == [value for value in self.VALUES for _ in range(2)]

    def test_texts_of_a_frame_that_are_no_json_are_refused(self, lab, table):
        for text in ("fast", "NaN", "", "0.12345678901234567890", "1e999"):
            with pytest.raises(labdata.InvalidArgument, match=r"tables\[0\]\.rows\[1\]\.settings"):
                lab.write({table: pd.DataFrame({"settings": ["1", text]})})
        assert len(lab.read(table)) == len(self.VALUES)

    def test_rows_hold_values_and_no_texts_of_them(self, lab, table):
        with pytest.raises(labdata.InvalidArgument, match=r"rows\[1\]\.settings.*json\.loads"):
            lab.write({table: [{"settings": "text"}, {"settings": '{"a": 1}'}]})
        lab.write({table: [{"note": '{"a": 1}'}, {"settings": "{not json"}]})
        assert lab.read(table, note='{"a": 1}')

    def test_a_column_that_another_client_added(self, lab, server, tables):
        lab.read(tables.sample)
        with labdata.connect(server.url, KEY) as other:
            other.define_table(tables.sample, [{"name": "extra", "data_type": "json"}], ensure=True)
        lab.write({tables.sample: pl.DataFrame({"name": ["A"], "extra": ["[1]"]})})
        assert lab.read(tables.sample)[0]["extra"] == [1]

    def test_a_key_that_cannot_read_warns(self, lab, server, table):
        key = lab.request("POST", "/api-keys", json={"name": "writer", "scopes": ["write"]})["key"]
        with (
            labdata.connect(server.url, key) as writer,
            pytest.warns(UserWarning, match=r"rows\[0\]\.note.*cannot read"),
        ):
            writer.write({table: pd.DataFrame({"note": ["[1]"]})})


def test_a_frame_of_curves_may_use_labels(lab, tables):
    points = pd.DataFrame({"sample": ["@a", "@a"], "hours": [0.0, 1.0], "od600": np.array([1.0, np.nan])})
    result = lab.write({tables.sample: [{"_ref": "a", "name": "A"}]}, series={tables.curve: points})
    assert lab.series(tables.curve, [result.refs["a"]])[0].columns["od600"] == [1.0, None]


def test_a_frame_of_curves_needs_the_parents_column(lab, tables):
    with pytest.raises(ValueError, match="parent_column"):
        lab.write(series={tables.curve: pd.DataFrame({"well": ["A"], "hours": [0.0]})})


@pytest.mark.parametrize(
    "column", [np.arange(3.0), pd.Series([0.0, 1.0, 2.0]), pl.Series([0.0, 1.0, 2.0]), range(3)]
)
def test_columns_of_curves_may_be_arrays(lab, tables, column):
    rows = {tables.sample: [{"_ref": "a", "name": "A"}]}
    result = lab.write(rows, series={tables.curve: {"@a": {"hours": column, "od600": column}}})
    assert lab.series(tables.curve, [result.refs["a"]])[0].columns["hours"] == [0.0, 1.0, 2.0]


def test_an_empty_result_has_its_columns(lab, tables):
    rows = lab.read(tables.sample)
    assert "name" in rows.to_pandas().columns
    assert "name" in rows.to_polars().columns
    assert list(lab.query(f"select name from {tables.sample}").to_pandas().columns) == ["name"]


def test_a_missing_library_is_named_with_its_extra(lab, tables, monkeypatch):
    rows = lab.read(tables.sample)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ModuleNotFoundError, match=r"labdata-client\[polars\]"):
        rows.to_polars()


def test_importing_the_client_imports_no_frames():
    libraries = {"pandas", "polars", "pyarrow", "numpy", "tqdm"}
    code = f"import sys, labdata_client; print(sorted({libraries} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
