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
    expect(form.locator("label", has_text="strain").locator(".failure")).to_contain_text("matches no row")
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
    expect(page.get_by_role("alert")).to_contain_text("holds numbers")
    form.get_by_label("volume").fill("120")
    key = page.locator("dd").first.inner_text()
    rows = [{"id": key, "volume": 7.5}]
    server.call("POST", "/data/write", {"tables": [{"table": "well", "mode": "update", "rows": rows}]})
    page.click("button:has-text('Save the change')")
    expect(page.get_by_role("alert")).to_contain_text("changed in the meantime")
    page.reload()
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
        expect(page.get_by_role("alert")).to_contain_text(f'"{text}" is none')
        form.get_by_label(field).fill("")
    form.get_by_label("count").fill(" ")
    form.get_by_label("volume").fill("1e3")
    page.click("button:has-text('Add the row')")
    expect(page.locator("h1")).to_have_text("b")
    added = stored("b")
    assert (added["count"], added["volume"]) == (None, 1000.0)

    page.goto("/#/sql")
    page.fill("textarea", "select count from counted where count is not null")
    page.keyboard.press("Control+Enter")
    expect(page.locator("td", has_text=str(long + 2))).to_be_visible()


def test_a_file_is_checked_before_it_is_imported(tables, page):
    page.goto("/#/tables/well")
    page.click("text=Import a file")
    content = "name,Vol (µl),is_blank\nB1,12.5,true\nB2,<b>1</b>,maybe\n"
    page.set_input_files("input[type=file]", {"name": "w.csv", "mimeType": "text/csv", "buffer": content.encode()})
    page.click("button:has-text('Check')")
    expect(page.get_by_role("alert")).to_contain_text("1 problem. Nothing was written.")
    page.get_by_label("Vol (µl)").select_option("volume")
    page.click("button:has-text('Check')")
    expect(page.get_by_role("alert")).to_contain_text("2 problems. Nothing was written.")
    cells = page.locator("form td")
    assert [cells.nth(index).inner_text() for index in (0, 1, 3)] == ["3", "volume", "B2,<b>1</b>,maybe"]
    assert cells.nth(5).inner_text() == "is_blank"
    check_accessible(page)
    fixed = content.replace("<b>1</b>", "13").replace("maybe", "false")
    page.set_input_files("input[type=file]", {"name": "w.csv", "mimeType": "text/csv", "buffer": fixed.encode()})
    page.click("button:has-text('Check')")
    page.get_by_label("Vol (µl)").select_option("volume")
    page.click("button:has-text('Check')")
    page.click("button:has-text('Import w.csv')")
    expect(page.get_by_role("status")).to_contain_text("2 rows created, 0 updated")
    expect(page.locator("td >> text=B2")).to_be_visible()


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
    # Whose statement it is may be known only after its result.
    waiting = []
    page.goto("/")
    expect(page.locator("nav")).to_be_visible()
    page.route("**/api/v1/session", lambda route: waiting.append(route))
    page.goto("/#/sql")
    page.fill("textarea", "select name, volume as \"<i>v</i>\" from well where name like 'A_' order by volume")
    with page.expect_response("**/api/v1/tools/query"):
        page.keyboard.press("Control+Enter")
    assert len(waiting) == 1
    waiting[0].continue_()
    page.unroute("**/api/v1/session")
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
