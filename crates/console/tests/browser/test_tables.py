"""Tables: the picture, definitions and rows."""

from __future__ import annotations

import time

from playwright.sync_api import expect

from conftest import HOSTILE, check_accessible

# Rows of the table that is paged through, and the most that one request may have.
ROWS = 1_000_000
BATCH = 10_000


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
