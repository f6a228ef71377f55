"""Workbooks in the import wizard, files that are on the platform already, and problems of many kinds."""

from __future__ import annotations

import io
import zipfile

import pytest
from playwright.sync_api import expect

from conftest import check_accessible, check_fits_a_phone

FORMATS = "http://schemas.openxmlformats.org"
PACKAGE = f"{FORMATS}/package/2006"
SHEETS = f"{FORMATS}/spreadsheetml/2006/main"
OFFICE = f"{FORMATS}/officeDocument/2006/relationships"
TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def workbook(sheets: dict[str, list[list]]) -> bytes:
    """A workbook of texts and numbers; rows without a cell are left out, as Excel does."""
    numbers = range(1, len(sheets) + 1)
    names = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(sheets, 1))
    targets = "".join(
        f'<Relationship Id="r{n}" Type="{OFFICE}/worksheet" Target="worksheets/s{n}.xml"/>' for n in numbers
    )
    files = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{TYPE}.main+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{SHEETS}" xmlns:r="{OFFICE}"><sheets>{names}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{targets}</Relationships>',
        **{f"xl/worksheets/s{n}.xml": sheet(rows) for n, rows in zip(numbers, sheets.values(), strict=True)},
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def sheet(rows: list[list]) -> str:
    def cell(at: str, value: object) -> str:
        inline = f'<c r="{at}" t="inlineStr"><is><t>{value}</t></is></c>'
        return inline if isinstance(value, str) else f'<c r="{at}"><v>{value}</v></c>'

    lines = [
        f'<row r="{n}">{"".join(cell(f"{chr(65 + column)}{n}", value) for column, value in enumerate(row))}</row>'
        for n, row in enumerate(rows, 1)
        if row
    ]
    return f'<worksheet xmlns="{SHEETS}"><sheetData>{"".join(lines)}</sheetData></worksheet>'


@pytest.fixture(scope="module")
def flasks(server) -> str:
    columns = [
        {"name": "name", "data_type": "string", "is_unique": True, "is_nullable": False},
        {"name": "volume", "data_type": "float"},
        {"name": "filled_at", "data_type": "datetime"},
    ]
    server.call("PUT", "/tables/flask", {"semantic_category": "curated", "columns": columns})
    return server.call("POST", "/instruments", {"name": "Balance", "instrument_type": "balance"})["id"]


BOOK = {
    "Notes": [["Weighed by Ada"]],
    "Run 7": [["Run 7", "exported"], [], ["Operator", "Ada"], ["Name", "Volume"], ["F1", 1.5], ["F2", 2.5]],
}


def test_the_sheet_and_the_header_of_a_workbook_are_chosen_by_click(flasks, server, page):
    page.goto("/#/tables/flask")
    page.click("text=Import a file")
    page.set_input_files("input[type=file]", {"name": "run.xlsx", "mimeType": TYPE, "buffer": workbook(BOOK)})
    expect(page.get_by_text("Read as xlsx: sheet Notes, header in line 1")).to_be_visible()
    page.locator("summary", has_text="Read as").click()
    page.get_by_label("Sheet").select_option("Run 7")
    expect(page.get_by_text("Read as xlsx: sheet Run 7, header in line 1")).to_be_visible()
    lines = page.locator(".lines button")
    expect(lines).to_have_text(["Run 7 | exported", "Operator | Ada", "Name | Volume", "F1 | 1.5", "F2 | 2.5"])
    check_accessible(page)
    lines.filter(has_text="Name | Volume").click()
    # The blank row above counts.
    expect(page.get_by_text("Read as xlsx: sheet Run 7, header in line 4")).to_be_visible()
    expect(lines.filter(has_text="Name | Volume")).to_have_attribute("aria-pressed", "true")
    check_fits_a_phone(page)
    page.click("button:has-text('Check')")
    page.click("button:has-text('Import run.xlsx')")
    expect(page.locator("form").get_by_role("status")).to_contain_text("2 rows created, 0 updated")
    expect(page.get_by_role("link", name="F2")).to_be_visible()
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("link", name="F2")).to_have_count(0)


def test_the_header_of_a_text_is_chosen_by_click(flasks, page):
    page.goto("/#/tables/flask")
    page.click("text=Import a file")
    text = b"a,b\nName,Volume\nF3,3\n"
    page.set_input_files("input[type=file]", {"name": "f.csv", "mimeType": "text/csv", "buffer": text})
    page.locator("summary", has_text="Read as").click()
    page.get_by_role("button", name="2 Name,Volume").click()
    expect(page.get_by_text("header in line 2")).to_be_visible()
    expect(page.get_by_label("Volume", exact=True)).to_have_value("volume")


def test_a_file_of_the_platform_is_imported(flasks, server, page):
    file = server.upload("weights.csv", b"name,volume\nF7,7.5\n", flasks)
    page.goto(f"/#/files/{file}")
    page.get_by_text("Import it into a table").click()
    page.get_by_role("link", name="flask", exact=True).click()
    expect(page.get_by_text("header in line 1")).to_be_visible()
    page.click("button:has-text('Check')")
    page.click("button:has-text('Import weights.csv')")
    expect(page.get_by_role("link", name="F7")).to_be_visible()
    assert "_import" not in page.url


def test_a_doubt_is_decided_by_its_button(flasks, page):
    page.goto("/#/tables/flask")
    page.click("text=Import a file")
    text = b"name;filled_at\nF8;2026-03-01 08:30\nF9;2026-03-02 08:30\n"
    page.set_input_files("input[type=file]", {"name": "t.csv", "mimeType": "text/csv", "buffer": text})
    doubt = page.locator(".note.warns", has_text="zone")
    expect(doubt).to_be_visible()
    doubt.get_by_role("button").first.click()
    expect(doubt).to_have_count(0)
    page.click("button:has-text('Check')")
    expect(page.locator("form").get_by_role("status")).to_contain_text("2 rows created, 0 updated")


def test_many_problems_are_counted_by_kind(flasks, page):
    page.goto("/#/tables/flask")
    page.click("text=Import a file")
    lines = [*(f"G{n},much,2026-03-01T08:30:00Z" for n in range(4)), *(f"H{n},1,someday" for n in range(3)), "I,1,"]
    text = "\n".join(["name,volume,filled_at", *lines]).encode()
    page.set_input_files("input[type=file]", {"name": "p.csv", "mimeType": "text/csv", "buffer": text})
    page.click("button:has-text('Check')")
    expect(page.get_by_role("alert")).to_contain_text("7 problems. Nothing was written.")
    kinds = page.locator("form .chips li")
    expect(kinds).to_have_count(2)
    expect(kinds.first).to_have_text("wrong type in volume: 4")
    expect(kinds.last).to_have_text("wrong type in filled_at: 3")
    check_accessible(page)
