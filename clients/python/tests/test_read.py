import datetime
import sys
import uuid

import pytest

import labdata_client as labdata


@pytest.fixture
def samples(lab, tables):
    lab.write({tables.sample: [{"name": f"S{i:04}", "strain": "x" if i % 2 else None} for i in range(2_500)]})
    return tables.sample


def test_pages_are_followed_to_the_end(lab, samples):
    rows = lab.read(samples)
    assert len(rows) == len({row["id"] for row in rows}) == 2_500


def test_a_limit_is_kept(lab, samples):
    assert len(lab.read(samples, limit=1_200)) == 1_200
    assert len(lab.read(samples, limit=3)) == 3


def test_conditions(lab, samples):
    assert [row["name"] for row in lab.read(samples, name__contains="s0007")] == ["S0007"]
    assert len(lab.read(samples, strain=None, name__lt="S0100")) == 50
    assert len(lab.read(samples, filters={"name__in": ["S0001", "S0002"]})) == 2


def test_core_tables_and_platform_tables(lab):
    name = "Experiment of test_read"
    lab.write({"experiment": [{"name": name}]}, mode="upsert", key=["name"])
    for _ in range(2):
        assert lab.read("experiment", name=name)[0]["name"] == name
    assert lab.read("job", limit=1)


def test_a_query_has_parameters(lab, samples):
    rows = lab.query(f"select count(*) as n, max(name) as last from {samples} where name < $1", ["S0010"])
    assert rows == [{"n": 10, "last": "S0009"}]
    assert "S0009" in rows._repr_html_()


def test_results_in_notebooks_are_short_and_escaped(lab, tables):
    lab.write({tables.sample: [{"name": f"<b>{i}"} for i in range(60)]})
    html = lab.read(tables.sample)._repr_html_()
    assert "<b>" not in html
    assert "10 more rows" in html


VALUES = [
    ("sum(x)", 12.0),
    ("'0012-01-01T00:00:00.25Z'::timestamptz", "0012-01-01T00:00:00.25Z"),
    ("'0012-01-01'::date", "0012-01-01"),
    ("array[1,2]", "[1,2]"),
    ("array['a',null]", '["a",null]'),
    ("""'{"a":  [1, 2.50]}'::json""", '{"a":  [1, 2.50]}'),
    ("5::float8", 5.0),
    ("5::smallint", 5),
    ("1::bigint << 60", 2**60),
    ("true", True),
    ("null", None),
    ("'NaN'::float8", None),
    ("'\u00b5'", "\u00b5"),
]


@pytest.mark.parametrize("hidden", [[], ["pyarrow"], ["polars"], ["pyarrow", "polars", "pandas"]])
def test_values_of_a_query_do_not_depend_on_libraries(lab, monkeypatch, hidden):
    for library in hidden:
        monkeypatch.setitem(sys.modules, library, None)
    columns = ", ".join(f"{expression} as v{i}" for i, (expression, _) in enumerate(VALUES))
    row = lab.query(f"select {columns} from (values (5::bigint), (7)) as t(x)")[0]
    assert [(value, type(value)) for value in row.values()] == [(value, type(value)) for _, value in VALUES]
    with pytest.raises(labdata.BadRequest, match="cast it to text"):
        lab.query("select 9007199254740993::numeric as v")


def test_pages_of_rows_and_nulls_of_an_arrow_stream(lab):
    sql = """select i, case when i % 3 > 0 then 't' || i end as t, i % 2 = 0 as b
        from generate_series(1, 30001) i"""
    rows = lab.query(sql)
    assert rows == [{"i": i, "t": f"t{i}" if i % 3 else None, "b": i % 2 == 0} for i in range(1, 30_002)]
    assert lab.query("select 1 as i, 'x' as t where false").columns == ["i", "t"]


class TestChangedResults:
    @pytest.fixture(params=["read", "query"])
    def rows(self, lab, tables, request):
        rows = [{"number": i, "note": f"n{i}", "taken_at": "2026-03-01T00:00:00Z"} for i in range(4)]
        lab.write({tables.reading: rows})
        if request.param == "read":
            return lab.read(tables.reading, columns=["number", "note", "taken_at"], order_by="number")
        return lab.query(f"select number, note, taken_at from {tables.reading} order by number")

    def frames(self, rows):
        yield rows.to_pandas().to_dict("records")
        yield rows.to_polars().to_dicts()
        yield rows.to_arrow().to_pylist()

    def test_removed_sorted_and_changed_rows(self, rows):
        rows.pop()
        rows.sort(key=lambda row: -row["number"])
        rows[0]["note"] = "changed"
        for frame in self.frames(rows):
            assert [(row["number"], row["note"]) for row in frame] == [(2, "changed"), (1, "n1"), (0, "n0")]

    def test_added_and_removed_columns(self, rows):
        for row in rows:
            row["half"] = row["number"] / 2
            del row["note"]
        assert rows.columns == ["number", "taken_at", "half"]
        for frame in self.frames(rows):
            assert [list(row) for row in frame] == [["number", "taken_at", "half"]] * 4

    def test_values_of_another_type(self, rows):
        at = datetime.datetime(2026, 4, 1, tzinfo=datetime.timezone.utc)
        rows[0].update(number=0.5, taken_at=at)
        for frame in self.frames(rows):
            assert [row["number"] for row in frame] == [0.5, 1.0, 2.0, 3.0]
            assert frame[0]["taken_at"] == at
        rows[1]["number"] = "one"
        for convert in (rows.to_arrow, rows.to_polars):
            with pytest.raises(labdata.InvalidArgument, match="'number' has values of several types"):
                convert()

    def test_slices_and_copies_are_rows(self, rows):
        part = rows[1:3]
        assert isinstance(part, labdata.Rows)
        for frame in self.frames(part):
            assert [row["number"] for row in frame] == [1, 2]
        assert rows[:0].to_polars().schema == rows.to_polars().schema
        assert rows.copy().to_arrow().schema == rows.to_arrow().schema
        assert rows[0]["number"] == 0


class TestSeries:
    @pytest.fixture
    def keys(self, lab, tables):
        rows = [{"_ref": name, "name": name} for name in ("A", "B", "C")]
        points = {
            "@A": {"hours": [0.0, 1.0], "od600": [0.1, 0.2]},
            "@B": {"hours": [0.0], "od600": [None]},
        }
        return lab.write({tables.sample: rows}, series={tables.curve: points}).refs

    def test_many_in_the_order_of_the_parents(self, lab, tables, keys):
        curves = lab.series(tables.curve, [keys["B"], keys["C"], keys["A"]])
        assert [curve.points for curve in curves] == [1, 0, 2]
        assert curves[0].columns["od600"] == [None]
        assert curves[1].columns["od600"] == []
        assert curves[2]["columns"]["hours"] == [0.0, 1.0]

    def test_by_conditions_on_the_parents(self, lab, tables, keys):
        assert [c.parent for c in lab.series(tables.curve, name="A")] == [keys["A"]]
        assert [c.parent for c in lab.series(tables.curve)] == sorted([keys["A"], keys["B"]])

    def test_chosen_columns(self, lab, tables, keys):
        assert list(lab.series(tables.curve, [keys["A"]], columns=["od600"])[0].columns) == ["od600"]

    def test_as_one_frame(self, lab, tables, keys):
        table = lab.series(tables.curve, [keys["B"], keys["A"]]).to_arrow()
        assert table.column_names[0] == "sample"
        assert table["sample"].to_pylist() == [keys["B"], keys["A"], keys["A"]]
        assert table["od600"].to_pylist() == [None, 0.1, 0.2]

    def test_the_same_without_libraries(self, lab, tables, keys, monkeypatch):
        parents = [keys["B"], keys["A"]]
        curves = lab.series(tables.curve, parents)
        for library in ("pyarrow", "polars"):
            monkeypatch.setitem(sys.modules, library, None)
        assert lab.series(tables.curve, parents) == curves

    def test_changed_curves_and_slices(self, lab, tables, keys):
        curves = lab.series(tables.curve, [keys["A"], keys["B"], keys["C"]])
        curves[0].columns["od600"] = [0.5, 0.25]
        assert curves[:1].to_polars()["od600"].to_list() == [0.5, 0.25]
        assert curves[2:].to_arrow().schema == curves.to_arrow().schema
        curves[0].columns["od600"] = [0.5]
        with pytest.raises(labdata.InvalidArgument, match="same length"):
            curves.to_pandas()

    def test_unknown_parents_and_tables_are_named(self, lab, tables, keys):
        with pytest.raises(labdata.NotFound, match="no-such-row"):
            lab.series(tables.curve, [keys["A"], "no-such-row"])
        with pytest.raises(labdata.NotFound, match="table not found"):
            lab.series("no_such_table", ["A"])

    def test_what_was_read_can_be_written(self, lab, tables, keys):
        frame = lab.series(tables.curve, [keys["A"]]).to_pandas()
        result = lab.write(series={tables.curve: frame})
        assert result.series[0]["points_replaced"] == result.series[0]["points_written"] == 2


@pytest.fixture(params=[True, False], ids=["pyarrow", "without"])
def _pyarrow(request, monkeypatch):
    if not request.param:
        monkeypatch.setitem(sys.modules, "pyarrow", None)


@pytest.mark.usefixtures("_pyarrow")
@pytest.mark.parametrize(
    ("kind", "keys", "forms"),
    [
        ("integer", [10, 20, 30], [str, int]),
        ("uuid", [str(uuid.UUID(int=0xA000 + i)) for i in range(3)], [str, uuid.UUID, str.upper]),
        ("string", ["b", "A", "a"], [str]),
    ],
)
def test_parents_may_be_given_in_any_form_of_their_keys(lab, kind, keys, forms):
    parent, curve = (f"{name}_{uuid.uuid4().hex[:8]}" for name in ("parent", "curve"))
    lab.define_table(parent, [{"name": "key", "data_type": kind, "is_primary_key": True}])
    columns = [
        {"name": "parent", "data_type": kind, "references": parent},
        {"name": "order", "data_type": "integer"},
        {"name": "y", "data_type": "float"},
    ]
    lab.define_table(curve, columns, semantic_category="raw")
    points = {curve: {keys[0]: {"y": [1.0, 2.0]}, keys[2]: {"y": [3.0]}}}
    ids = lab.write({parent: [{"key": key} for key in keys]}, points).tables[0]["ids"]
    for form in forms:
        curves = lab.series(curve, parents=[form(key) for key in reversed(ids)])
        assert [(found.parent, found.points) for found in curves] == [
            (keys[2], 1),
            (keys[1], 0),
            (keys[0], 2),
        ]
        assert curves.to_polars()["parent"].to_list() == [keys[2], keys[0], keys[0]]


class TestExport:
    @pytest.fixture(autouse=True)
    def rows(self, lab, tables):
        lab.write({tables.sample: [{"name": "A", "strain": "x"}, {"name": "B"}]})

    def test_a_table_is_saved_as_its_name_says(self, lab, tables, tmp_path):
        path = lab.export(tables.sample, tmp_path / "samples.csv")
        assert path == tmp_path / "samples.csv"
        lines = path.read_text().splitlines()
        assert lines[0].startswith("id,name,")
        assert len(lines) == 3

    def test_a_directory_gets_a_file_named_after_the_table(self, lab, tables, tmp_path):
        parquet = pytest.importorskip("pyarrow.parquet")
        path = lab.export(tables.sample, tmp_path, file_format="parquet")
        assert path == tmp_path / f"{tables.sample}.parquet"
        assert sorted(parquet.read_table(path)["name"].to_pylist()) == ["A", "B"]

    def test_an_arrow_stream(self, lab, tables, tmp_path):
        ipc = pytest.importorskip("pyarrow.ipc")
        path = lab.export(tables.sample, tmp_path / "samples.arrows")
        assert ipc.open_stream(path.read_bytes()).read_all().num_rows == 2

    @pytest.mark.parametrize("name", ["samples.xlsx", "samples.foo", "samples.csv.gz"])
    def test_an_unknown_end_is_refused(self, lab, tables, tmp_path, name):
        with pytest.raises(labdata.InvalidArgument, match=r"no format has the end.*\.parquet.*file_format"):
            lab.export(tables.sample, tmp_path / name)
        assert list(tmp_path.iterdir()) == []
        assert lab.export(tables.sample, tmp_path / name, file_format="csv").exists()

    def test_a_slash_at_the_end_is_a_directory(self, lab, tables, tmp_path):
        path = lab.export(tables.sample, f"{tmp_path}/new/tables/")
        assert path == tmp_path / "new" / "tables" / f"{tables.sample}.csv"

    def test_nothing_is_left_of_a_table_that_is_not_there(self, lab, tmp_path):
        with pytest.raises(labdata.NotFound):
            lab.export("nothing", tmp_path / "nothing.csv")
        assert list(tmp_path.iterdir()) == []


class TestOrder:
    def test_chosen_columns_in_a_chosen_order(self, lab, tables):
        lab.write(
            {tables.sample: [{"name": "A", "strain": "x"}, {"name": "B"}, {"name": "C", "strain": "y"}]}
        )
        rows = lab.read(tables.sample, columns=["name", "strain"], order_by=["-strain", "name"])
        assert [row["name"] for row in rows] == ["B", "C", "A"]
        assert list(rows[0]) == ["name", "strain"]
