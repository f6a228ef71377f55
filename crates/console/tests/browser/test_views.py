"""Saved views, and what tables do with several rows, with their definition and with earlier moments."""

from __future__ import annotations

import csv
import uuid
from datetime import datetime, timezone

import pytest
from playwright.sync_api import expect

from conftest import check_accessible, check_fits_a_phone


@pytest.fixture
def batch(server) -> str:
    """A table of batches, of its own for each test, with four rows to which vials refer."""
    name = f"batch_{uuid.uuid4().hex[:8]}"
    columns = [
        {"name": "name", "data_type": "string", "is_unique": True, "is_nullable": False},
        {"name": "amount", "data_type": "integer", "unit": "mg"},
        {"name": "remark", "data_type": "string"},
    ]
    server.call("PUT", f"/tables/{name}", {"semantic_category": "curated", "columns": columns})
    vial = [{"name": "name", "data_type": "string"}, {"name": "batch", "data_type": "string", "references": name}]
    server.call("PUT", f"/tables/vial_of_{name}", {"semantic_category": "curated", "columns": vial})
    rows = [{"name": f"B{n}", "amount": n * 10, "remark": "=1+1"} for n in range(1, 5)]
    server.call("POST", "/data/write", {"tables": [{"table": name, "rows": rows}]})
    vials = [{"name": "V1", "batch": {"name": "B1"}}]
    server.call("POST", "/data/write", {"tables": [{"table": f"vial_of_{name}", "rows": vials}]})
    return name


def stored(server, table: str, **body: object) -> list[dict]:
    rows = server.call("POST", "/tools/read", {"target_name": table, "target_type": "table", **body})
    return sorted(rows, key=lambda row: row["name"])


def test_a_view_is_saved_pinned_found_and_deleted(server, page, batch):
    name = f"Large batches {batch}"
    page.goto(f"/#/tables/{batch}?amount__gte=20&_sort=-amount")
    expect(page.locator("tbody tr")).to_have_count(3)
    page.get_by_text("Save this view", exact=True).click()
    form = page.locator("details[open] form")
    form.get_by_label("Name of the view").fill(name)
    form.get_by_label("Pinned on Home").check()
    check_accessible(page)
    form.get_by_role("button", name="Save the view").click()
    expect(page.locator(".toast")).to_contain_text("pinned on Home")
    page.goto("/#/home")
    pinned = page.get_by_role("list", name="Pinned views").get_by_role("link", name=name)
    check_accessible(page)
    pinned.click()
    expect(page.locator("tbody tr")).to_have_count(3)
    expect(page.locator("tbody tr").first).to_contain_text("B4")
    page.keyboard.press("Control+k")
    page.keyboard.type(name)
    expect(page.get_by_role("option", name=name)).to_contain_text("Saved view")
    page.keyboard.press("Escape")
    page.goto("/#/home")
    page.get_by_text("All saved views").click()
    line = page.get_by_role("region", name="Saved views").locator("tbody tr", has_text=name)
    line.get_by_role("button", name="Unpin").click()
    expect(pinned).to_have_count(0)
    line.get_by_role("button", name="Delete", exact=True).click()
    check_fits_a_phone(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    line.get_by_role("button", name=f'Delete "{name}"').click()
    expect(line).to_have_count(0)
    assert name not in [it["name"] for it in server.call("GET", "/saved-views")]


def test_a_statement_is_saved_with_its_parameters(server, page, batch):
    name = f"Sum of {batch}"
    page.goto("/#/sql")
    page.fill("textarea", f"select sum(amount) as total from {batch} where amount > $1")
    page.get_by_label("Parameter $1").fill("15")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("td")).to_have_text("90")
    page.get_by_text("Save this view", exact=True).click()
    page.get_by_label("Name of the view").fill(name)
    page.get_by_role("button", name="Save the view").click()
    expect(page.locator(".toast")).to_contain_text("is saved")
    page.goto("/#/home")
    page.goto("/#/sql")
    page.get_by_text("Saved queries").click()
    page.get_by_role("link", name=name).click()
    expect(page.locator("td")).to_have_text("90")
    expect(page.get_by_label("Parameter $1")).to_have_value("15")


def test_chosen_rows_are_saved_and_deleted_together_and_come_back(server, page, batch, tmp_path):
    page.goto(f"/#/tables/{batch}?_sort=name")
    page.get_by_role("checkbox", name="Choose B1").check()
    page.get_by_role("checkbox", name="Choose B3").check()
    bar = page.get_by_role("group", name="Chosen rows")
    expect(bar).to_contain_text("2 rows chosen")
    check_accessible(page)
    with page.expect_download() as saved:
        bar.get_by_role("button", name="Save as CSV").click()
    saved.value.save_as(tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["name"], row["amount"], row["remark"]) for row in rows] == [
        ("B1", "10", "'=1+1"),
        ("B3", "30", "'=1+1"),
    ]
    bar.get_by_role("button", name="Delete…").click()
    bar.get_by_role("button", name=f"Delete 2 rows and what refers to them: 1 of vial_of_{batch}").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(bar).to_be_hidden()
    assert [row["name"] for row in stored(server, batch)] == ["B2", "B4"]
    page.locator(".toast", has_text="2 rows deleted").get_by_role("button", name="Undo").click()
    expect(page.locator("tbody tr")).to_have_count(4)
    assert len(stored(server, f"vial_of_{batch}")) == 1
    # Every row of the page, and none of them.
    page.get_by_role("checkbox", name="Choose every row of this page").check()
    expect(bar).to_contain_text("4 rows chosen")
    bar.get_by_role("button", name="Choose none").click()
    expect(page.get_by_role("checkbox", name="Choose B1")).not_to_be_checked()
    check_fits_a_phone(page)


def test_a_column_is_changed_in_all_chosen_rows_and_set_back(server, page, batch):
    page.goto(f"/#/tables/{batch}?_sort=name")
    page.get_by_role("checkbox", name="Choose B1").check()
    page.get_by_role("checkbox", name="Choose B3").check()
    bar = page.get_by_role("group", name="Chosen rows")
    bar.get_by_text("Change a column").click()
    # The name is unique, so no two rows can have the same.
    expect(bar.get_by_label("Column to change").locator("option")).to_have_text(["amount (mg)", "remark"])
    bar.get_by_label("New amount (mg)").fill("7")
    check_accessible(page)
    bar.get_by_role("button", name="Change the chosen rows").click()
    message = page.locator(".toast", has_text="amount (mg) of 2 rows: 7")
    expect(message).to_be_visible()
    assert [row["amount"] for row in stored(server, batch)] == [7, 20, 7, 40]
    expect(page.get_by_role("cell", name="7", exact=True)).to_have_count(2)
    # The same rows are changed once more.
    bar.get_by_label("Column to change").select_option("remark")
    bar.get_by_label("New remark").fill("diluted")
    bar.get_by_role("button", name="Change the chosen rows").click()
    expect(page.get_by_role("cell", name="diluted")).to_have_count(2)
    page.locator(".toast", has_text="remark of 2 rows").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("cell", name="diluted")).to_have_count(0)
    message.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("cell", name="7", exact=True)).to_have_count(0)
    assert [row["amount"] for row in stored(server, batch)] == [10, 20, 30, 40]
    check_fits_a_phone(page)


def test_a_value_that_one_row_refuses_changes_none(server, page, batch):
    page.goto(f"/#/tables/{batch}?_sort=name")
    page.get_by_role("checkbox", name="Choose B1").check()
    page.get_by_role("checkbox", name="Choose B2").check()
    bar = page.get_by_role("group", name="Chosen rows")
    bar.get_by_text("Change a column").click()
    bar.get_by_label("New amount (mg)").fill("7")
    page.route("**/tools/read*", lambda route: route.abort())
    row = stored(server, batch)[1]
    change = {"table": batch, "mode": "update", "rows": [{"id": row["id"], "amount": 11}]}
    server.call("POST", "/data/write", {"tables": [change]})
    bar.get_by_role("button", name="Change the chosen rows").click()
    expect(bar.get_by_role("alert")).to_contain_text("changed")
    # What was typed is still there.
    expect(bar.get_by_label("New amount (mg)")).to_have_value("7")
    page.unroute_all()
    assert [it["amount"] for it in stored(server, batch)] == [10, 11, 30, 40]


def test_chosen_rows_that_somebody_changed_are_not_deleted(server, page, batch):
    page.goto(f"/#/tables/{batch}?_sort=name")
    page.get_by_role("checkbox", name="Choose B1").check()
    # The list follows what happens elsewhere, and this is about what it has not read yet.
    page.route("**/tools/read*", lambda route: route.abort())
    row = stored(server, batch)[0]
    change = {"table": batch, "mode": "update", "rows": [{"id": row["id"], "amount": 11}]}
    server.call("POST", "/data/write", {"tables": [change]})
    bar = page.get_by_role("group", name="Chosen rows")
    bar.get_by_role("button", name="Delete…").click()
    expect(bar.get_by_role("alert")).to_contain_text("changed")
    page.unroute_all()
    assert len(stored(server, batch)) == 4


def test_a_table_is_shown_as_it_was_at_a_moment(server, page, batch):
    before = datetime.now(timezone.utc)
    row = stored(server, batch)[0]
    change = {"table": batch, "mode": "update", "rows": [{"id": row["id"], "name": "B1 (new)", "amount": 99}]}
    drop = {"table": batch, "mode": "delete", "rows": [{"id": stored(server, batch)[3]["id"]}]}
    server.call("POST", "/data/write", {"tables": [change, drop]})
    moment = before.isoformat().replace("+00:00", "Z")
    page.goto(f"/#/tables/{batch}?_as_of={moment}&_sort=name")
    expect(page.locator("tbody tr")).to_have_count(4)
    expect(page.locator("tbody tr").first).to_contain_text("10")
    expect(page.get_by_role("status").first).to_contain_text("as they stood")
    assert page.locator("td.editable").count() == 0
    expect(page.get_by_text("Add a row")).to_have_count(0)
    assert "as_of=" in page.get_by_role("link", name="CSV", exact=True).get_attribute("href")
    check_accessible(page)
    # What refers to the batch has the batch's name of then, too.
    page.goto(f"/#/tables/vial_of_{batch}?_as_of={moment}")
    expect(page.locator("tbody tr").first).to_contain_text("B1")
    expect(page.locator("tbody tr").first).not_to_contain_text("new")
    page.get_by_role("link", name="The rows of now").click()
    expect(page.locator("tbody tr").first).to_contain_text("B1 (new)")
    # The form puts the moment into the address.
    page.goto(f"/#/tables/{batch}")
    page.get_by_text("As it was at…").click()
    page.get_by_label("Moment").fill("2999-01-01T00:00:00")
    page.get_by_role("button", name="Show the rows of then").click()
    expect(page.get_by_role("alert")).to_contain_text("future")
    assert "_as_of=2999" in page.url


def test_a_definition_is_changed_after_its_consequences_were_shown(server, page, batch):
    page.goto(f"/#/tables/{batch}")
    page.get_by_text("Change the table", exact=True).click()
    amount = page.get_by_role("group", name="Column amount")
    amount.get_by_label("Column").fill("mass")
    amount.get_by_label("Label").fill("Mass")
    amount.get_by_label("Type").select_option("float")
    amount.get_by_label("Unit").fill("g")
    page.get_by_role("button", name="Remove remark").click()
    page.get_by_role("button", name="Another column").click()
    page.get_by_role("group", name="New column").get_by_role("textbox", name="Column").fill("shelf")
    page.get_by_role("button", name="Show what changes").click()
    changes = page.get_by_role("list", name="What changes")
    for words in (
        "amount is called mass",
        "amount: integer becomes float",
        'amount: unit "mg" → "g". The stored numbers stay as they are.',
        "shelf is added, empty in every row",
        "remark is removed with 4 values: it can be restored from the trash",
    ):
        expect(changes).to_contain_text(words)
    check_accessible(page)
    assert "remark" in stored(server, batch)[0]
    page.get_by_role("button", name="Change the table, and remove the values").click()
    expect(page.locator("thead")).to_contain_text("Mass (g)")
    row = stored(server, batch)[0]
    assert (row["mass"], row["shelf"]) == (10.0, None)
    assert "remark" not in row
    assert f"{batch}.remark" in str(server.call("GET", "/trash")) or "remark" in str(server.call("GET", "/trash"))
    # It can be kept to a group.
    group = f"Keepers of {batch}"
    server.call("POST", "/groups", {"name": group})
    page.reload()
    page.get_by_text("Change the table", exact=True).click()
    page.get_by_role("group", name="Read by").get_by_label(group).check()
    page.get_by_role("button", name="Show what changes").click()
    expect(changes).to_contain_text(f"read by {group} and administrators. For others it does not exist.")
    page.get_by_role("button", name="Change the table", exact=True).click()
    expect(page.locator(".toast", has_text="is changed")).to_be_visible()
    schema = {table["name"]: table for table in server.call("GET", "/tools/schema")}
    assert schema[batch]["access"]["read"] == [group]
    # What would lose values is refused in words, and nothing is changed.
    page.reload()
    page.get_by_text("Change the table", exact=True).click()
    page.get_by_role("group", name="Column shelf").get_by_label("Required").check()
    page.get_by_role("button", name="Show what changes").click()
    page.get_by_role("button", name="Change the table", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("shelf")
    check_fits_a_phone(page)
    schema = {table["name"]: table for table in server.call("GET", "/tools/schema")}
    assert [column["is_nullable"] for column in schema[batch]["columns"] if column["name"] == "shelf"] == [True]


def test_a_column_is_matched_by_another_name_of_the_row_it_refers_to(server, page):
    """Cells of a reference may hold any unique column of the referenced table: the person says which."""
    unique = {"data_type": "string", "is_unique": True, "is_nullable": False}
    box = [{"name": "name", **unique}, {"name": "barcode", **unique}]
    server.call("PUT", "/tables/freezer_box", {"semantic_category": "curated", "columns": box})
    rows = [{"name": "Box 1", "barcode": "0001"}, {"name": "0001", "barcode": "0002"}]
    server.call("POST", "/data/write", {"tables": [{"table": "freezer_box", "rows": rows}]})
    tube = [{"name": "name", **unique}, {"name": "box", "data_type": "string", "references": "freezer_box"}]
    server.call("PUT", "/tables/freezer_tube", {"semantic_category": "curated", "columns": tube})
    page.goto("/#/tables/freezer_tube")
    page.get_by_text("Import a file", exact=True).click()
    sheet = {"name": "tubes.csv", "mimeType": "text/csv", "buffer": b"name,box\nT1,0001\nT2,0002\n"}
    page.locator("input[type=file]").set_input_files(sheet)
    page.get_by_label("What box holds").select_option("barcode")
    check_accessible(page)
    page.get_by_role("button", name="Check").click()
    page.get_by_role("button", name="Import tubes.csv").click()
    expect(page.locator("tbody tr", has_text="T1").last).to_contain_text("Box 1")
    boxes = {row["id"]: row["name"] for row in stored(server, "freezer_box")}
    assert [boxes[row["box"]] for row in stored(server, "freezer_tube")] == ["Box 1", "0001"]
