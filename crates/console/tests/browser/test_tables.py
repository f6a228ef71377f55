"""Tables: the picture, definitions, rows, imports and SQL."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import expect

from conftest import check_accessible

HOSTILE = "<img src=x onerror=alert(1)><b>bold</b>"

# Rows of the table that is paged through, and the most that one request may have.
ROWS = 1_000_000
BATCH = 10_000


@pytest.fixture(scope="module")
def tables(server):
    """Strains, and wells that refer to them."""
    strain = [{"name": "name", "data_type": "string", "is_unique": True, "is_nullable": False}]
    server.call("PUT", "/tables/strain", {"semantic_category": "curated", "columns": strain, "description": HOSTILE})
    well = [
        {"name": "name", "data_type": "string", "is_nullable": False},
        {"name": "strain", "data_type": "string", "references": "strain"},
        {"name": "volume", "data_type": "float"},
        {"name": "is_blank", "data_type": "boolean"},
        {"name": "note", "data_type": "text"},
    ]
    server.call("PUT", "/tables/well", {"semantic_category": "curated", "columns": well})
    write = [
        {"table": "strain", "rows": [{"name": "BY4741"}, {"name": "W303"}, {"name": HOSTILE}]},
        {"table": "well", "rows": [{"name": f"A{n}", "strain": {"name": "W303"}, "volume": n} for n in range(1, 13)]},
    ]
    server.call("POST", "/data/write", {"tables": write[:1]})
    server.call("POST", "/data/write", {"tables": write[1:]})


def test_a_table_is_defined_and_a_row_is_added_and_changed(tables, server, page):
    page.goto("/#/tables")
    boxes = page.locator(".picture a")
    lines = page.locator(".picture path.reference")
    expect(boxes.first).to_be_visible()
    before = boxes.count(), lines.count()
    page.click("text=Define a table")
    check_accessible(page)
    page.get_by_role("textbox", name="Name", exact=True).fill("sample")
    page.click("text=Another column")
    page.get_by_role("textbox", name="Column").nth(1).fill("strain")
    page.get_by_role("combobox", name="Type").nth(1).select_option("→strain")
    page.click("button:has-text('Define the table')")
    expect(page.locator("h1")).to_have_text("sample")
    page.click("text=Add a row")
    form = page.locator(".row-form")
    form.get_by_label("name").fill(HOSTILE)
    form.get_by_label("strain").fill("nobody")
    page.click("button:has-text('Add the row')")
    expect(form.locator("label", has_text="strain").locator(".failure")).to_contain_text("No row of strain is called")
    form.get_by_label("strain").fill("BY4741")
    page.click("button:has-text('Add the row')")
    expect(page.locator("h1")).to_have_text(HOSTILE)
    page.click("button:has-text('Change')")
    form.get_by_label("strain").fill(HOSTILE)
    page.click("button:has-text('Save the change')")
    expect(page.locator("dd a")).to_have_text(HOSTILE)
    check_accessible(page)
    assert page.locator("main img, main b").count() == 0
    # The row that it refers to shows it, and what would be deleted with it.
    page.click("dd a")
    expect(page.locator("section td a")).to_have_text(HOSTILE)
    page.click("button:has-text('Delete…')")
    expect(page.locator("button.danger")).to_have_text(f"Delete {HOSTILE} and what refers to it: 1 of sample")
    page.goto("/#/tables")
    expect(boxes).to_have_count(before[0] + 1)
    expect(lines).to_have_count(before[1] + 1)


def test_what_somebody_else_changed_is_not_overwritten(tables, server, page):
    page.goto("/#/tables/well")
    page.click("td >> text=A12")
    page.click("button:has-text('Change')")
    form = page.locator(".row-form")
    form.get_by_label("volume").fill("a lot")
    page.click("button:has-text('Save the change')")
    expect(form.locator("label", has_text="volume")).to_contain_text("holds numbers")
    form.get_by_label("volume").fill("120")
    key = page.locator("dd").first.inner_text()
    rows = [{"id": key, "volume": 7.5}]
    server.call("POST", "/data/write", {"tables": [{"table": "well", "mode": "update", "rows": rows}]})
    page.click("button:has-text('Save the change')")
    expect(page.get_by_role("alert")).to_contain_text("changed in the meantime")
    page.goto("/#/tables/well")
    page.get_by_role("button", name="Leave without saving").click()
    page.click("td >> text=A12")
    expect(page.locator("dd", has_text="7.5")).to_be_visible()


def test_numbers_keep_all_their_digits_and_a_blank_is_no_number(server, page):
    long = 12345678901234567
    columns = [
        {"name": "name", "data_type": "string", "is_unique": True},
        {"name": "count", "data_type": "integer"},
        {"name": "volume", "data_type": "float"},
        {"name": "settings", "data_type": "json"},
    ]
    server.call("PUT", "/tables/counted", {"semantic_category": "curated", "columns": columns})
    row = {"name": "a", "count": long, "settings": {"serial": -long}}
    server.call("POST", "/data/write", {"tables": [{"table": "counted", "rows": [row]}]})

    def stored(name: str) -> dict:
        body = {"target_name": "counted", "target_type": "table", "filters": {"name": name}, "mode": "single"}
        return server.call("POST", "/tools/read", body)[0]

    page.goto("/#/tables/counted")
    expect(page.locator("td", has_text=str(long)).first).to_be_visible()
    page.click("td >> text=a")
    expect(page.locator("dd", has_text=f'{{"serial":-{long}}}')).to_be_visible()
    page.click("button:has-text('Change')")
    form = page.locator(".row-form")
    expect(form.get_by_label("count")).to_have_value(str(long))
    form.get_by_label("count").fill(str(long + 2))
    form.get_by_label("settings").fill(f'{{"serial": {long + 4}, "gain": 1.5}}')
    form.get_by_label("volume").fill(" ")
    page.click("button:has-text('Save the change')")
    expect(page.locator("dd", has_text=str(long + 2))).to_be_visible()
    changed = stored("a")
    assert (changed["count"], changed["volume"]) == (long + 2, None)
    assert changed["settings"] == {"serial": long + 4, "gain": 1.5}

    page.goto("/#/tables/counted")
    page.click("text=Add a row")
    form.get_by_label("name").fill("b")
    for field, text in [("volume", "1e999"), ("volume", "0x10"), ("count", "1.5"), ("count", "1e3")]:
        form.get_by_label(field).fill(text)
        page.click("button:has-text('Add the row')")
        expect(form.locator("label", has_text=field)).to_contain_text(f'"{text}" is none')
        form.get_by_label(field).fill("")
    form.get_by_label("count").fill(" ")
    form.get_by_label("volume").fill("1e3")
    page.click("button:has-text('Add the row')")
    expect(page.locator("h1")).to_have_text("b")
    added = stored("b")
    assert (added["count"], added["volume"]) == (None, 1000.0)
    page.get_by_role("button", name="Change").click()
    form.get_by_label("volume").fill("7")
    page.click("button:has-text('Save the change')")
    expect(page.locator("dd").get_by_text("7", exact=True)).to_be_visible()
    page.locator(".toast", has_text="The change is saved.").last.get_by_role("button", name="Undo").click()
    expect(page.locator("dd").get_by_text("1000", exact=True)).to_be_visible()
    assert stored("b")["volume"] == 1000.0
    page.locator(".toast", has_text="The row is added.").last.get_by_role("button", name="Undo").click()
    expect(page.locator("h1")).to_have_text("counted")
    expect(page.locator("tbody")).not_to_contain_text("1000")

    page.goto("/#/sql")
    page.fill("textarea", "select count from counted where count is not null")
    page.keyboard.press("Control+Enter")
    expect(page.locator("td", has_text=str(long + 2))).to_be_visible()


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


def test_a_view_is_its_address(tables, page):
    page.goto("/#/tables/well")
    page.select_option("select[aria-label='Column to filter by']", "strain__name")
    page.fill("input[aria-label=Value]", "W303")
    page.click("button:has-text('Filter')")
    expect(page.get_by_role("list", name="Filters")).to_contain_text("strain → name is W303")
    page.click("th >> text=volume")
    expect(page.locator("th >> text=volume")).to_have_text("volume ↑")
    page.click("summary:has-text('Columns')")
    page.get_by_role("checkbox", name="note").uncheck()
    expect(page.locator("thead th")).to_have_count(4)
    page.reload()
    expect(page.locator("th >> text=volume")).to_have_text("volume ↑")
    expect(page.locator("thead th")).to_have_count(4)
    expect(page.get_by_role("list", name="Filters")).to_contain_text("W303")
    page.click("tbody tr >> nth=0 >> td a >> nth=0")
    expect(page.locator("h1")).to_have_text("A1")
    page.go_back()
    expect(page.locator("th >> text=volume")).to_have_text("volume ↑")
    page.get_by_role("button", name="Remove the filter strain → name is W303").click()
    expect(page.get_by_role("list", name="Filters")).to_be_hidden()
    page.go_back()
    expect(page.get_by_role("list", name="Filters")).to_contain_text("W303")


def test_cells_are_changed_in_place_pasted_and_undone(server, page):
    columns = [
        {"name": "name", "data_type": "string", "is_unique": True, "is_nullable": False},
        {"name": "volume", "data_type": "float"},
        {"name": "note", "data_type": "string"},
    ]
    server.call("PUT", "/tables/vial", {"semantic_category": "curated", "columns": columns})
    rows = [{"name": f"v{n}", "volume": n, "note": "as it was"} for n in (1, 2, 3)]
    server.call("POST", "/data/write", {"tables": [{"table": "vial", "rows": rows}]})

    def stored() -> dict:
        body = {"target_name": "vial", "target_type": "table", "order_by": ["name"]}
        return {row["name"]: (row["volume"], row["note"]) for row in server.call("POST", "/tools/read", body)}

    before = stored()
    page.goto("/#/tables/vial?_sort=name")
    cell = page.locator("tbody tr >> nth=0 >> td >> nth=1")
    cell.focus()
    page.keyboard.press("Enter")
    field = page.get_by_role("textbox", name="volume of v1")
    expect(field).to_have_value("1")
    field.fill("a lot")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("holds numbers")
    field.fill("12.5")
    page.keyboard.press("Enter")
    expect(cell).to_have_text("12.5")
    toast = page.locator(".toast")
    expect(toast).to_contain_text("volume of v1: 1 → 12.5")
    check_accessible(page)
    assert stored()["v1"] == (12.5, "as it was")
    toast.get_by_role("button", name="Undo").click()
    expect(cell).to_have_text("1")
    assert stored() == before
    paste = """(it) => {
      const data = new DataTransfer();
      data.setData("text/plain", "20\\tnew\\n30\\t\\n");
      it.focus();
      it.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
    }"""
    page.locator("tbody tr >> nth=1 >> td >> nth=1").evaluate(paste)
    expect(toast.last).to_contain_text("4 cells pasted")
    expect(page.locator("tbody tr >> nth=2 >> td >> nth=1")).to_have_text("30")
    assert stored() == {"v1": (1, "as it was"), "v2": (20, "new"), "v3": (30, None)}
    # A block that does not fit changes nothing.
    page.locator("tbody tr >> nth=2 >> td >> nth=1").evaluate(paste)
    expect(page.locator(".toast", has_text="Nothing was written")).to_be_visible()
    toast.filter(has_text="pasted").get_by_role("button", name="Undo").click()
    expect(page.locator("tbody tr >> nth=1 >> td >> nth=1")).to_have_text("2")
    assert stored() == before
    # What others write is read once the cell that is being edited is saved.
    expect(toast.filter(has_text="Undo")).to_have_count(0)
    cell.press("Enter")
    field.fill("7")
    others = [{"name": "v3", "volume": 33}]
    upsert = {"table": "vial", "mode": "upsert", "key": ["name"], "rows": others}
    server.call("POST", "/data/write", {"tables": [upsert]})
    page.wait_for_timeout(1500)
    expect(field).to_have_value("7")
    field.press("Enter")
    expect(cell).to_have_text("7")
    expect(page.locator("tbody tr >> nth=2 >> td >> nth=1")).to_have_text("33")


def test_a_row_shows_its_history_and_is_set_back(server, page):
    columns = [{"name": "name", "data_type": "string", "is_unique": True}, {"name": "volume", "data_type": "float"}]
    server.call("PUT", "/tables/flask", {"semantic_category": "curated", "columns": columns})
    written = server.call(
        "POST",
        "/data/write",
        {"job_name": "First", "tables": [{"table": "flask", "rows": [{"name": "f", "volume": 1}]}]},
    )
    id = written["tables"][0]["ids"][0]
    update = {"table": "flask", "mode": "update", "rows": [{"id": id, "volume": 99}]}
    server.call("POST", "/data/write", {"job_name": "Wrong", "tables": [update]})
    page.goto(f"/#/tables/flask%2F{id}")
    expect(page.locator("main")).to_contain_text("by Wrong")
    page.click("summary:has-text('History')")
    lines = page.get_by_role("region", name="History").locator("tbody tr")
    expect(lines).to_have_count(2)
    expect(lines.first).to_contain_text("volume: 1 → 99")
    check_accessible(page)
    lines.last.get_by_role("button", name="Restore").click()
    page.get_by_role("button", name="Set the row back to version 1").click()
    expect(page.locator("dd", has_text="1").first).to_be_visible()
    body = {"target_name": "flask", "target_type": "table", "mode": "single", "filters": {"id": id}}
    expect(page.locator(".toast")).to_contain_text("as it was in version 1")
    assert server.call("POST", "/tools/read", body)[0]["volume"] == 1


def test_rows_are_sorted_filtered_and_chosen(tables, page):
    page.goto("/#/tables/well")
    page.select_option("select[aria-label='Column to filter by']", "strain__name")
    page.fill("input[aria-label=Value]", "W303")
    page.click("button:has-text('Filter')")
    page.click("th >> text=volume")
    expect(page.locator("tbody tr").first.locator("td").nth(2)).to_have_text("1")
    page.click("th >> text=volume")
    expect(page.locator("th >> text=volume")).to_have_text("volume ↓")
    expect(page.locator("tbody tr").first.locator("td").first).to_have_text("A11")
    page.click("summary:has-text('Columns')")
    page.get_by_role("checkbox", name="note").uncheck()
    expect(page.locator("thead th")).to_have_count(4)
    page.click("tbody tr >> nth=0 >> text=W303")
    expect(page.locator("h1")).to_have_text("W303")


def test_the_focus_stays_where_it_is_when_rows_are_read_again(tables, page):
    page.goto("/#/tables/well")
    sort = page.get_by_role("button", name="volume")
    sort.focus()
    for name in ("volume ↑", "volume ↓"):
        page.keyboard.press("Enter")
        expect(sort).to_have_text(name)
        expect(sort).to_be_focused()


def test_a_row_is_added_once_however_often_the_button_is_pressed(tables, server, page):
    page.goto("/#/tables/strain")
    page.click("text=Add a row")
    page.locator(".row-form").get_by_label("name").fill("pressed twice")
    writes = []
    page.route("**/data/write", lambda route: (writes.append(1), route.continue_()))
    page.locator(".row-form button.primary").evaluate("(it) => (it.click(), it.click())")
    expect(page.locator("h1")).to_have_text("pressed twice")
    assert len(writes) == 1


def test_a_slow_answer_never_replaces_a_later_one(tables, page):
    page.goto("/#/tables/well")
    expect(page.locator("tbody tr").first).to_be_visible()
    held = []
    page.route("**/tools/read", lambda route: held.append(route) if not held else route.continue_())
    with page.expect_request("**/tools/read"):
        page.click("th >> text=volume")
    page.click("th >> text=volume")
    expect(page.locator("th >> text=volume")).to_have_text("volume ↓")
    with page.expect_response("**/tools/read"):
        held[0].continue_()
    page.evaluate("() => new Promise(requestAnimationFrame)")
    expect(page.locator("th >> text=volume")).to_have_text("volume ↓")


def test_pages_of_rows_do_not_fill_the_memory(server, page):
    columns = [{"name": "name", "data_type": "string"}, {"name": "value", "data_type": "float"}]
    server.call("PUT", "/tables/big", {"semantic_category": "curated", "columns": columns})
    began = time.monotonic()
    for start in range(0, ROWS, BATCH):
        rows = [{"name": f"r{n}", "value": n / 7} for n in range(start, start + BATCH)]
        server.call("POST", "/data/write", {"tables": [{"table": "big", "rows": rows}]})
    print(f"\n{ROWS:,} rows written in {time.monotonic() - began:.1f} s")
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable")

    def size() -> tuple[float, int]:
        tools.send("HeapProfiler.collectGarbage")
        metrics = {it["name"]: it["value"] for it in tools.send("Performance.getMetrics")["metrics"]}
        return metrics["JSHeapUsedSize"] / 1e6, int(metrics["Nodes"])

    page.goto("/#/tables/big")
    sizes = []
    for number in range(60):
        expect(page.locator("td").first).to_have_text(f"r{ROWS - 1 - 50 * number}")
        if number in (10, 59):
            sizes.append(size())
        page.click("text=Next page")
    print(f"\nafter 10 and 59 pages of 50 rows: {sizes[0]}, {sizes[1]} (MB of JavaScript, nodes)")
    assert sizes[1][0] < sizes[0][0] + 1
    assert sizes[1][1] < sizes[0][1] + 200


def test_statements_are_remembered_and_results_are_drawn(tables, page):
    page.goto("/#/sql")
    page.fill("textarea", "select name, volume as \"<i>v</i>\" from well where name like 'A_' order by volume")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".told").first).to_contain_text("9 rows in")
    page.click("button:has-text('Chart')")
    expect(page.locator(".ytitle")).to_have_text("<i>v</i>")
    expect(page.locator(".bars .point")).to_have_count(9)
    page.get_by_role("combobox", name="As", exact=True).select_option("lines")
    expect(page.locator(".scatterlayer .js-line")).to_have_count(1)
    check_accessible(page)
    page.reload()
    page.click("text=History")
    expect(page.locator(".statements li")).to_have_count(1)
    page.fill("textarea", "")
    page.click(".statement")
    assert page.input_value("textarea").startswith("select name, volume")
    page.click("text=Clear the history")
    expect(page.locator(".statements li")).to_have_count(0)


def test_an_execution_shows_its_rows_before_and_after(server, page):
    columns = [{"name": "label", "data_type": "text"}, {"name": "volume", "data_type": "float"}]
    server.call("PUT", "/tables/tube", {"semantic_category": "curated", "columns": columns})
    first = [{"id": name, "label": HOSTILE, "volume": 1} for name in ("t1", "t2")]
    server.call("POST", "/data/write", {"tables": [{"table": "tube", "rows": first}]})
    writes = [
        {"table": "tube", "mode": "update", "rows": [{"id": "t1", "volume": 2.5}]},
        {"table": "tube", "mode": "delete", "rows": [{"id": "t2"}]},
        {"table": "tube", "rows": [{"id": "t3", "volume": 3}]},
    ]
    execution = server.call("POST", "/data/write", {"tables": writes})["job_execution_id"]
    page.goto(f"/#/executions/{execution}")
    page.click("text=Rows of tube, before and after")
    part = lambda name: page.locator("section", has=page.get_by_role("heading", name=name, exact=True))  # noqa: E731
    updated = part("Updated").locator("tbody tr")
    expect(updated).to_have_count(1)
    expect(updated.locator("td")).to_have_text(["t1", "volume", "1", "2.5"])
    expect(part("Created").locator("tbody td").first).to_have_text("t3")
    expect(part("Deleted").locator("tbody tr")).to_contain_text(HOSTILE)
    assert page.locator("main img, main b").count() == 0
    check_accessible(page)
    updated.get_by_role("link", name="t1").click()
    expect(page.locator("h1")).to_have_text("t1")


def test_a_number_that_is_rounded_says_so(page):
    page.goto("/#/sql?q=select+2%3A%3Afloat8%2F3+as+share%2C+2+as+whole")
    rounded = page.locator("td .rounded")
    expect(rounded).to_have_text(["0.666667"])
    expect(rounded).to_have_attribute("title", "0.6666666666666666")
    note = "getComputedStyle(document.querySelector('.scroll'), '::after').content"
    assert "are rounded" in page.evaluate(note)


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


def test_counts_are_written_alike_in_every_language(server, browser, session):
    # In German the point stands between thousands: 1.234 rows would be a little more than one.
    context = browser.new_context(locale="de-DE", base_url=server.url, storage_state=session)
    page = context.new_page()
    page.goto("/#/sql?q=select+generate_series%281%2C+1234%29+as+n")
    expect(page.locator(".told")).to_contain_text("1,234 rows in", timeout=30_000)
    expect(page.locator(".told")).to_contain_text("of which the first 1,000 are shown")
    context.close()


def test_a_question_about_unsaved_text_is_asked_once(page):
    page.goto("/#/jobs")
    page.get_by_text("New job").click()
    page.get_by_role("textbox", name="Name").first.fill("not saved yet")
    for address in ("#/files", "#/tables"):
        page.evaluate("address => { location.hash = address }", address)
        expect(page.get_by_role("dialog")).to_have_count(1)
    page.get_by_role("button", name="Stay").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("textbox", name="Name").first).to_have_value("not saved yet")
