import asyncio
import io
import json
import uuid
from pathlib import Path

import pytest
from conftest import KEY

import labdata_client as labdata
from labdata_client._reading import OPTIONS

CSV = "Sample,Vol (µl),Remark\nA,1.5,x\nB,,\n"
COLUMNS = {"Sample": "name", "Vol (µl)": "volume", "Remark": None}


@pytest.fixture
def table(lab):
    name = f"sample_{uuid.uuid4().hex[:8]}"
    columns = [
        {"name": "name", "data_type": "string", "is_nullable": False, "is_unique": True},
        {"name": "volume", "data_type": "float"},
    ]
    lab.define_table(name, columns)
    return name


def test_a_file_is_imported_and_reverted(lab, table, tmp_path):
    path = tmp_path / "plate.csv"
    path.write_text(CSV, encoding="utf-8")
    result = lab.import_file(table, path, columns=COLUMNS)
    assert (result.created, result.updated) == (2, 0)
    assert result.columns == {"Sample": "name", "Vol (µl)": "volume"}
    again = lab.import_file(table, str(path), mode="upsert", key="name", columns=COLUMNS)
    assert (again.created, again.updated) == (0, 2)
    assert {row["name"]: row["volume"] for row in lab.read(table)} == {"A": 1.5, "B": None}
    assert lab.revert(result.job_execution_id)["deleted_count"] == 2


def test_the_name_of_an_imported_file_is_stored_as_it_is(lab, table):
    result = lab.import_file(table, b"name\nQuoted\n", name='plate "2".csv')
    stored = [file["original_path"] for file in lab.files(limit=5) if file["file_id"] == result.file_id]
    assert stored == ['plate "2".csv']


def test_problems_name_the_lines_of_the_file(lab, table):
    with pytest.raises(labdata.WriteRefused) as refused:
        lab.import_file(table, b"name,volume\nA,1\n\nB,1.5.2\n", name="plate.csv")
    assert [problem.path for problem in refused.value.problems] == ["rows[4].volume"]
    assert lab.read(table) == []


def test_a_dry_run_writes_nothing(lab, table):
    result = lab.import_file(table, io.BytesIO(b"name\nA\n"), name="plate.csv", dry_run=True)
    assert (result.created, result.job_execution_id) == (1, None)
    assert lab.read(table) == []


def test_an_execution_imports(lab, table):
    with lab.execution("Import") as run:
        result = run.import_file(table, b"name\nA\n", name="plate.csv")
        assert result.job_execution_id == run.id
        assert table in run._repr_html_()


def test_the_asynchronous_client_imports_by_several_key_columns(server, table):
    async def script():
        async with labdata.connect_async(server.url, KEY) as lab:
            key = ["name", "volume"]
            return await lab.import_file(table, b"name,volume\nA,1\n", name="p.csv", mode="upsert", key=key)

    assert asyncio.run(script()).created == 1


def test_a_preview_says_how_a_file_is_read_and_an_import_reads_it_so(lab, table):
    export = "sep=;\nName;Volume (µl)\nA;1.234,5\nB;n.d.\nC;2\nD;3\nE;4\n".encode()
    preview = lab.preview_file(export, name="plate.csv")
    assert (preview.reading["decimal"], preview.reading["thousands"]) == (",", ".")
    assert [doubt["code"] for doubt in preview.doubts] == ["text_numbers"]
    (settled,) = preview.doubts[0]["options"]
    preview = lab.preview_file(export, name="plate.csv", **settled)
    assert (preview.columns[1]["unit"], preview.columns[1]["nulls"]) == ("µl", 1)
    lab.import_file(table, export, name="plate.csv", **preview.reading)
    rows = {row["name"]: row["volume"] for row in lab.read(table)}
    assert rows == {"A": 1234.5, "B": None, "C": 2, "D": 3, "E": 4}


def test_a_preview_is_a_table_in_a_notebook(lab):
    preview = lab.preview_file("Sample;Größe (µl)\nA<1;1.234\nB;\n".encode(), name="plate.csv")
    html = preview._repr_html_()
    for text in ("Größe (µl)", "float µl", "A&lt;1", "2 rows", "delimiter", "doubt", "decimal"):
        assert text in html
    assert "A<1" not in html


@pytest.fixture
def wells(lab, table):
    name = f"well_{uuid.uuid4().hex[:8]}"
    columns = [
        {"name": "sample", "data_type": "string", "references": table},
        {"name": "carrier", "data_type": "string", "references": "carrier"},
        {"name": "well", "data_type": "string", "is_nullable": False},
        {"name": "measured_on", "data_type": "date"},
        {"name": "od", "data_type": "float"},
    ]
    lab.define_table(name, columns)
    return name


def test_a_messy_sheet_is_linked_to_two_tables_by_one_call(lab, table, wells):
    plate = f"P-{uuid.uuid4().hex[:8]}"
    lab.write({table: [{"name": "S 1"}, {"name": "S 2"}], "carrier": [{"name": plate, "carrier_type": "96"}]})
    sheet = (
        f"Plate reader export;;;;\n;;;;\nSample;Carrier;Well;Measured on;OD (600 nm)\n"
        f"S 1;{plate};A1;13.03.2026;0,512\nS 2;{plate};A2;14.03.2026;1.024,5\n;{plate};A3;;\n"
    ).encode()
    preview = lab.preview_file(sheet, name="export.txt")
    assert [column["name"] for column in preview.columns] == [
        "sample",
        "carrier",
        "well",
        "measured_on",
        "od",
    ]
    lookups = {"carrier": "name"}
    result = lab.import_file(wells, sheet, name="export.txt", lookups=lookups, **preview.reading)
    assert (result.created, result.reading["header_row"]) == (3, 3)
    rows = {row["well"]: row for row in lab.read(wells)}
    assert [rows[well]["od"] for well in ("A1", "A2", "A3")] == [0.512, 1024.5, None]
    assert rows["A2"]["measured_on"] == "2026-03-14"
    names = {row["id"]: row["name"] for row in lab.read(table)}
    assert [names.get(rows[well]["sample"]) for well in ("A1", "A2", "A3")] == ["S 1", "S 2", None]
    changes = lab.request("GET", f"/job-executions/{result.job_execution_id}/changes")
    assert changes["files"] == [{"id": result.file_id, "file_name": "export.txt"}]


def linked_tables(lab):
    """Define plates, wells of plates, and readings of wells; return their names."""
    suffix = uuid.uuid4().hex[:8]
    plate, well, reading = (f"{name}_{suffix}" for name in ("plate", "well", "reading"))
    text = {"data_type": "string"}
    lab.define_table(
        plate, [{"name": "barcode", "is_unique": True, **text}, {"name": "read_on", "data_type": "date"}]
    )
    lab.define_table(well, [{"name": "plate", "references": plate, **text}, {"name": "position", **text}])
    lab.define_table(
        reading, [{"name": "well", "references": well, **text}, {"name": "od", "data_type": "float"}]
    )
    return plate, well, reading


MESSY = (
    b"Plate reader export;;;\n;;;\nPLATE;Well ;Read on;OD (600 nm)\n"
    b"P-1;A1;13.03.2026;0,512\nP-1;A2;13.03.2026;1.024,5\n\nP-2;A1;14.03.2026;0,75\nP-2;A1;14.03.2026;0,76\n"
)


def test_a_messy_sheet_becomes_three_linked_tables_in_one_preview_and_one_call(lab):
    plate, well, reading = linked_tables(lab)
    linked = [
        {"table": plate, "columns": {"PLATE": "barcode", "Read on": "read_on"}, "of": well},
        {"table": well, "columns": {"Well": "position"}, "key": ["plate", "position"]},
    ]
    preview = lab.preview_file(MESSY, name="export.txt")
    # The reading that is passed on confirms the format of the dates.
    assert [doubt["options"] for doubt in preview.doubts] == [[{"date_format": "%d.%m.%Y"}]]
    result = lab.import_file(
        reading, MESSY, name="export.txt", linked=linked, columns={"OD (600 nm)": "od"}, **preview.reading
    )
    counts = [(written["table"], written["created"], written["updated"]) for written in result.tables]
    assert counts == [(plate, 2, 0), (well, 3, 0), (reading, 4, 0)]
    assert (result.created, result.columns) == (4, {"OD (600 nm)": "od"})
    joined = (
        f"SELECT p.barcode, p.read_on::text, w.position, r.od FROM {reading} r "
        f"JOIN {well} w ON w.id = r.well_id JOIN {plate} p ON p.id = w.plate_id ORDER BY r.od"
    )
    assert [list(row.values()) for row in lab.query(joined)] == [
        ["P-1", "2026-03-13", "A1", 0.512],
        ["P-2", "2026-03-14", "A1", 0.75],
        ["P-2", "2026-03-14", "A1", 0.76],
        ["P-1", "2026-03-13", "A2", 1024.5],
    ]
    # Plates and wells are found again, and one revert takes what the first call made.
    with lab.execution("Import") as run:
        again = run.import_file(reading, MESSY, name="export.txt", linked=linked, **preview.reading)
        assert [written["updated"] for written in again.tables] == [2, 3, 0]
        assert well in run._repr_html_()
    lab.revert(again.job_execution_id)
    assert lab.revert(result.job_execution_id)["deleted_count"] == 9
    assert lab.read(plate) == []


def test_problems_of_linked_tables_name_the_line_the_table_and_the_column(lab):
    plate, well, reading = linked_tables(lab)
    linked = [
        {"table": plate, "columns": {"Plate": "barcode", "Day": "read_on"}, "of": well},
        {"table": well, "columns": {"Well": "position"}, "key": ["plate", "position"]},
    ]

    def problems(sheet, linked):
        with pytest.raises(labdata.WriteRefused) as refused:
            lab.import_file(reading, sheet, name="sheet.csv", linked=linked, columns={"OD": "od"})
        return [problem.path for problem in refused.value.problems]

    sheet = b"Plate,Day,Well,OD\nP-1,2026-03-13,A1,0.5\nP-1,2026-03-14,A2,0.5\nP-2,2026-03-14,,0.5\n"
    assert problems(sheet, linked) == [f"rows[3].{plate}.read_on", f"rows[4].{well}.position"]
    wrong_type = sheet.replace(b"2026-03-14", b"yesterday")
    assert f"rows[3].{plate}.read_on" in problems(wrong_type, linked)
    unknown = [{"table": "no_such_table", "columns": {"Plate": "barcode"}}]
    assert problems(sheet, unknown) == ["linked[0].table"]
    assert lab.read(plate) == []
    with pytest.raises(labdata.Invalid):
        lab.import_file(reading, sheet, name="sheet.csv", linked=[])


def test_an_import_takes_all_options(lab, table):
    lab.write({table: [{"name": "A", "volume": 1}]})
    again = {"mode": "upsert", "key": "name", "name": "plate.csv"}
    lab.import_file(table, b"name,volume\nA,\n", **again)
    lab.import_file(table, b"name,volume\nA,2\n", on_match="fill_missing", **again)
    assert [row["volume"] for row in lab.read(table)] == [1]
    result = lab.import_file(table, b"name,volume\nA,\n", blank="null", job_name="Cleaning", **again)
    assert [row["volume"] for row in lab.read(table)] == [None]
    path = f"/job-executions/{result.job_execution_id}"
    assert lab.request("GET", path)["job_name"] == "Cleaning"


def test_an_option_that_the_platform_would_ignore_is_a_mistake(lab, table):
    with pytest.raises(TypeError, match="no option of the reading of a file: decimals"):
        lab.import_file(table, b"name\nA\n", name="plate.csv", decimals=",")


def test_the_options_are_those_of_the_platform():
    document = Path(__file__).parents[3] / "docs" / "openapi.json"
    schemas = json.loads(document.read_text("utf-8"))["components"]["schemas"]
    assert set(schemas["ReadOptionFields"]["properties"]) == OPTIONS
