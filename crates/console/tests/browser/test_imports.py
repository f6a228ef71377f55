"""Imports of files into a table: how they are read, mapped, checked and undone."""

from __future__ import annotations

from playwright.sync_api import expect

from conftest import check_accessible


def test_a_messy_sheet_is_read_mapped_checked_imported_and_undone(tables, page):
    page.goto("/#/tables/well")
    page.click("text=Import a file")
    content = "Plate 7, read by Ada\n\nName,Vol (µl),Is blank,Strain\nB1,12.5,true,W303\nB2,<b>1</b>,maybe,W303\n"
    page.set_input_files("input[type=file]", {"name": "w.csv", "mimeType": "text/csv", "buffer": content.encode()})
    # The line of the header was found, and headers with it their columns; the others are asked for.
    expect(page.get_by_text("header in line 3")).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_have_value("name")
    expect(page.get_by_label("Is blank", exact=True)).to_have_value("is_blank")
    check_accessible(page)
    page.click("button:has-text('Check')")
    expect(page.get_by_role("alert")).to_contain_text('Choose the column of "Vol (µl)"')
    page.get_by_label("Vol (µl)").select_option("volume")
    page.click("button:has-text('Check')")
    expect(page.get_by_role("alert")).to_contain_text("2 problems. Nothing was written.")
    cells = page.get_by_role("region", name="Problems of the file").locator("td")
    assert [cells.nth(index).inner_text() for index in (0, 1, 3)] == ["5", "volume", "B2,<b>1</b>,maybe,W303"]
    assert cells.nth(5).inner_text() == "is_blank"
    check_accessible(page)
    fixed = content.replace("<b>1</b>", "13").replace("maybe", "false")
    page.set_input_files("input[type=file]", {"name": "w.csv", "mimeType": "text/csv", "buffer": fixed.encode()})
    page.get_by_label("Vol (µl)").select_option("volume")
    page.click("button:has-text('Check')")
    page.click("button:has-text('Import w.csv')")
    expect(page.locator("form").get_by_role("status")).to_contain_text("2 rows created, 0 updated")
    expect(page.locator("td a >> text=B2")).to_be_visible()
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator("td a >> text=B2")).to_have_count(0)


def test_what_a_file_leaves_open_is_a_choice(tables, page):
    page.goto("/#/tables/well")
    page.click("text=Import a file")
    content = "name;volume\nC1;1,5\nC2;2,25\n"
    page.set_input_files("input[type=file]", {"name": "de.csv", "mimeType": "text/csv", "buffer": content.encode()})
    expect(page.get_by_role("region", name="First rows of the file")).to_contain_text("2.25")
    page.click("summary:has-text('Read as csv')")
    expect(page.get_by_label("Decimal sign")).to_have_value(",")
    page.get_by_label("Header in line").fill("2")
    page.get_by_label("Header in line").press("Tab")
    expect(page.get_by_label("C1", exact=True)).to_be_visible()


def test_a_header_of_another_unit_than_its_column_needs_a_choice(tables, server, page):
    columns = [{"name": "name", "data_type": "string"}, {"name": "volume", "data_type": "float", "unit": "uL"}]
    server.call("PUT", "/tables/aliquot", {"semantic_category": "curated", "columns": columns})
    page.goto("/#/tables/aliquot")
    page.click("text=Import a file")
    for header, is_other in [("Volume (µl)", False), ("Volume (mL)", True)]:
        content = f"name,{header}\nQ1,1.5\n"
        page.set_input_files("input[type=file]", {"name": "a.csv", "mimeType": "text/csv", "buffer": content.encode()})
        expect(page.get_by_label(header)).to_have_value("volume")
        page.click("button:has-text('Check')")
        if is_other:
            expect(page.get_by_role("region", name="Problems of the file")).to_contain_text("mL")
            expect(page.get_by_label(header)).to_have_value("?")
            page.get_by_label(header).select_option("volume")
            page.click("button:has-text('Check')")
        expect(page.locator("form").get_by_role("status")).to_contain_text("1 row created")


def test_an_import_says_how_many_rows_are_listed(server, page):
    columns = [{"name": "name", "data_type": "string"}, {"name": "volume", "data_type": "float"}]
    server.call("PUT", "/tables/listed_rows", {"semantic_category": "curated", "columns": columns})
    page.goto("/#/tables/listed_rows")
    page.get_by_text("Import a file", exact=True).click()
    lines = "".join(f"W{n};{n},5\n" for n in range(20))
    content = f"name;volume\n{lines}".encode()
    page.set_input_files("main input[type=file]", {"name": "rows.csv", "mimeType": "text/csv", "buffer": content})
    expect(page.get_by_text("The first 12 of 20 rows.")).to_be_visible()
    expect(page.get_by_role("region", name="First rows of the file").locator("tbody tr")).to_have_count(12)
    expect(page.locator("summary", has_text="Read as csv")).to_contain_text("columns end at a semicolon, decimal comma")
