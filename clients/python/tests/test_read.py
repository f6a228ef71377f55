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


def test_the_same_values_with_and_without_arrow(lab, tables, monkeypatch):
    lab.write(
        {
            tables.reading: [
                {
                    "number": 2**60,
                    "value": 1.5,
                    "valid": True,
                    "taken_at": "2026-03-01T12:30:00.25Z",
                    "day": "2026-03-01",
                    "settings": {"gain": [1, None]},
                    "note": "µ",
                }
            ]
        }
    )
    sql = f"select number, value, valid, taken_at, day, settings, note, sample_id, note from {tables.reading}"
    with_arrow = lab.query(sql)
    monkeypatch.setattr("labdata_client._frames.has_arrow", lambda: False)
    assert lab.query(sql) == with_arrow
    assert list(with_arrow[0]) == lab.query(sql).columns


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

    def test_the_same_without_arrow(self, lab, tables, keys, monkeypatch):
        parents = [keys["B"], keys["A"]]
        with_arrow = lab.series(tables.curve, parents)
        frame = with_arrow.to_polars()
        monkeypatch.setattr("labdata_client._frames.has_arrow", lambda: False)
        curves = lab.series(tables.curve, parents)
        assert curves == with_arrow
        assert curves.to_polars().equals(frame)

    def test_unknown_parents_and_tables_are_named(self, lab, tables, keys):
        with pytest.raises(labdata.NotFound, match="no-such-row"):
            lab.series(tables.curve, [keys["A"], "no-such-row"])
        with pytest.raises(labdata.NotFound, match="table not found"):
            lab.series("no_such_table", ["A"])

    def test_what_was_read_can_be_written(self, lab, tables, keys):
        frame = lab.series(tables.curve, [keys["A"]]).to_pandas()
        result = lab.write(series={tables.curve: frame})
        assert result.series[0]["points_replaced"] == result.series[0]["points_written"] == 2


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
