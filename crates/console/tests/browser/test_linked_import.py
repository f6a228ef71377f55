"""One messy sheet of a laboratory that fills three tables: its plates, their wells, and what was measured."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from conftest import check_accessible, check_fits_a_phone

# A title, blank lines, a unit in a header, decimal commas, days first, and a plate on every line.
SHEET = """Growth assay 7;;;;;
Read by Ada;;;;;
;;;;;
Plate;Opened on;Well;Strain;Measured on;OD (600 nm)
P-1;13.03.2026;A1;BY4741;14.03.2026;0,512
P-1;13.03.2026;A2;W303;14.03.2026;0,498

P-1;13.03.2026;A1;BY4741;15.03.2026;1,024
P-2;27.03.2026;A1;W303;28.03.2026;0,25
"""


@pytest.fixture(scope="module")
def three_tables(server):
    """Plates, wells of plates, and readings of wells."""
    barcode = {"name": "barcode", "data_type": "string", "is_unique": True, "is_nullable": False}
    definitions = {
        "sheet_plate": [barcode, {"name": "opened_on", "data_type": "date"}],
        "sheet_well": [
            {"name": "plate", "data_type": "string", "references": "sheet_plate", "is_nullable": False},
            {"name": "position", "data_type": "string"},
            {"name": "strain", "data_type": "string"},
        ],
        "sheet_reading": [
            {"name": "well", "data_type": "string", "references": "sheet_well", "is_nullable": False},
            {"name": "measured_on", "data_type": "date"},
            {"name": "od", "data_type": "float"},
        ],
    }
    for name, columns in definitions.items():
        server.call("PUT", f"/tables/{name}", {"semantic_category": "curated", "columns": columns})


def choose(page: Page, text: str) -> None:
    """Chooses a file for the import of the page's table."""
    page.set_input_files("input[type=file]", {"name": "assay.csv", "mimeType": "text/csv", "buffer": text.encode()})
    expect(page.get_by_label("Plate", exact=True)).to_be_visible()


def assign(page: Page) -> None:
    """Says of the columns of the sheet to which tables they belong."""
    for header, column in [
        ("Plate", "sheet_plate → barcode"),
        ("Opened on", "sheet_plate → opened_on"),
        ("Well", "sheet_well → position"),
        ("Strain", "sheet_well → strain"),
    ]:
        page.get_by_label(header, exact=True).select_option(label=column)


def test_a_messy_sheet_fills_three_tables_by_one_preview_and_one_call(three_tables, server, page):
    page.goto("/#/tables/sheet_reading")
    page.click("text=Import a file")
    choose(page, SHEET)
    # What belongs to the table of the page is found; the reference to wells is none of the sheet's texts.
    expect(page.get_by_label("Measured on")).to_have_value("measured_on")
    expect(page.get_by_label("OD (600 nm)")).to_have_value("od")
    assign(page)
    plates = page.get_by_role("group", name="Lines are one row of sheet_plate")
    wells = page.get_by_role("group", name="Lines are one row of sheet_well")
    # A plate is known by its barcode. That a well is one of its plate, a person may say otherwise.
    expect(plates.get_by_label("barcode")).to_be_checked()
    expect(plates.get_by_label("opened_on")).not_to_be_checked()
    expect(wells.get_by_label("plate")).to_be_checked()
    expect(wells.get_by_label("position")).to_be_checked()
    wells.get_by_label("strain").uncheck()
    check_accessible(page)
    calls = []
    page.on("request", lambda it: calls.append(it.url) if it.url.endswith("/sheet_reading/import") else None)
    page.click("button:has-text('Check')")
    counts = {"sheet_plate": 2, "sheet_well": 3, "sheet_reading": 4}
    words = "; ".join(f"{name}: {count} rows created, 0 updated" for name, count in counts.items())
    expect(page.get_by_text(f"No problems. It would be {words}.")).to_be_visible()
    page.click("button:has-text('Import assay.csv')")
    result = page.locator("form").get_by_role("status")
    for name, count in counts.items():
        expect(result).to_contain_text(f"{name}: {count} rows created, 0 updated")
        expect(result.get_by_role("link", name=name)).to_have_attribute("href", f"#/tables/{name}")
    # A trial and the import: no further requests.
    assert len(calls) == 2
    query = (
        "select p.barcode, p.opened_on, w.position, w.strain, r.measured_on, r.od from sheet_reading r "
        "join sheet_well w on w.id = r.well_id join sheet_plate p on p.id = w.plate_id order by 1, 3, 5"
    )
    assert server.call("POST", "/tools/query", {"query": query})["data"] == [
        ["P-1", "2026-03-13", "A1", "BY4741", "2026-03-14", 0.512],
        ["P-1", "2026-03-13", "A1", "BY4741", "2026-03-15", 1.024],
        ["P-1", "2026-03-13", "A2", "W303", "2026-03-14", 0.498],
        ["P-2", "2026-03-27", "A1", "W303", "2026-03-28", 0.25],
    ]
    result.get_by_role("link", name="sheet_plate").click()
    expect(page.locator("td a >> text=P-2")).to_be_visible()
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).to_have_count(0)
    assert server.call("POST", "/tools/query", {"query": "select count(*) from sheet_plate"})["data"] == [[0]]


def test_a_sheet_that_contradicts_itself_or_lacks_a_table_between_is_refused_in_words(three_tables, page):
    page.goto("/#/tables/sheet_reading")
    page.click("text=Import a file")
    choose(page, SHEET.replace("P-1;13.03.2026;A2", "P-1;12.03.2026;A2"))
    assign(page)
    page.get_by_role("group", name="Lines are one row of sheet_well").get_by_label("strain").uncheck()
    page.click("button:has-text('Check')")
    expect(page.get_by_role("alert")).to_contain_text("1 problem. Nothing was written.")
    cells = page.get_by_role("region", name="Problems of the file").locator("td")
    expect(cells.first).to_have_text("6")
    expect(cells.nth(1)).to_have_text("sheet_plate.opened_on")
    for header in ("Well", "Strain"):
        page.get_by_label(header, exact=True).select_option(label="leave it out")
    page.click("button:has-text('Check')")
    expect(page.get_by_role("alert")).to_contain_text("nor another table of this import refers to sheet_plate")
    page.get_by_label("Well", exact=True).select_option(label="sheet_well → position")
    for box in page.get_by_role("group", name="Lines are one row of sheet_well").get_by_role("checkbox").all():
        box.uncheck()
    page.click("button:has-text('Check')")
    expect(page.get_by_role("alert")).to_contain_text("Choose what tells rows of sheet_well apart.")
    check_fits_a_phone(page)
