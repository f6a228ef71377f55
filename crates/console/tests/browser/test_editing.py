"""Editing: what is typed is stored as it is, found again, and not lost to a redraw, a colleague or a click."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from conftest import check_fits_a_phone

PASTE = """([cell, text]) => {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  cell.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""


def define(server, name: str, columns: list[dict], **definition) -> None:
    server.call("PUT", f"/tables/{name}", {"semantic_category": "curated", "columns": columns, **definition})


def write(server, table: str, rows: list[dict]) -> list[str]:
    tables = [{"table": table, "mode": "insert", "rows": rows}]
    return server.call("POST", "/data/write", {"job_name": "seed", "tables": tables})["tables"][0]["ids"]


def stored(server, table: str, order: str) -> list[dict]:
    body = {"target_name": table, "target_type": "table", "order_by": [order]}
    return server.call("POST", "/tools/read", body)


@pytest.fixture(scope="module")
def tubes(server):
    """A table of tubes with owners of whom two have one name; its ids."""
    text = {"data_type": "string"}
    define(server, "keeper", [{"name": "name", **text}, {"name": "room", **text}])
    owner = {"name": "keeper", **text, "references": "keeper"}
    wide = [{"name": f"observation_{number}", **text} for number in range(14)]
    define(
        server,
        "ampoule",
        [
            {"name": "name", **text, "is_unique": True},
            {"name": "label", **text},
            {"name": "story", "data_type": "text"},
            owner,
            *wide,
        ],
    )
    keepers = write(
        server, "keeper", [{"name": "Anna", "room": "1"}, {"name": "Anna", "room": "2"}, {"name": "Bo", "room": "3"}]
    )
    rows = [{"name": f"T{it}", "label": "a\nb", "story": "x\r\ny\r\nz", "keeper": keepers[it % 3]} for it in range(3)]
    return write(server, "ampoule", [*rows, {"name": " lead"}])


def cell(page, row: str, column: str):
    return page.locator(f"td[data-name='{row} {column}']")


def test_a_cell_keeps_its_line_breaks_the_focus_and_the_place(page, server, tubes):
    page.goto("/#/tables/ampoule?_sort=name")
    label = cell(page, tubes[0], "label")
    label.press("Enter")
    label.locator("textarea").press("Control+End")
    page.keyboard.type("!")
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text("label of T0")
    expect(label).to_be_focused()
    page.keyboard.press("ArrowRight")
    story = cell(page, tubes[0], "story")
    expect(story).to_be_focused()
    page.keyboard.press("Enter")
    story.locator("textarea").press("Control+End")
    page.keyboard.type("!")
    page.keyboard.press("Enter")
    expect(story).to_be_focused()
    expect(page.locator(".toast")).to_have_count(2)
    row = stored(server, "ampoule", "name")[1]
    assert (row["label"], row["story"]) == ("a\nb!", "x\r\ny\r\nz!")
    page.locator(".toast").last.get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).to_have_count(1)
    expect(story).to_be_focused()
    assert stored(server, "ampoule", "name")[1]["story"] == "x\r\ny\r\nz"
    # What happens to the rows meanwhile takes neither the place nor what is being typed.
    last = cell(page, tubes[1], "observation_13")
    last.press("Enter")
    write(server, "ampoule", [{"name": "T9"}])
    page.keyboard.type("half")
    expect(last.locator("input")).to_have_value("half")
    before = page.locator(".scroll").evaluate("it => it.scrollLeft")
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="T9")).to_be_visible()
    assert page.locator(".scroll").evaluate("it => it.scrollLeft") > before / 2 > 0
    expect(last).to_be_focused()


def test_a_block_with_a_line_break_is_pasted_into_its_own_cells(page, server, tubes):
    page.goto("/#/tables/ampoule?_sort=name&_columns=name,label,story")
    at = cell(page, tubes[1], "label")
    page.evaluate(PASTE, [at.element_handle(), '"p\nq"\tone\r\nr\ttwo\r\n'])
    expect(page.locator(".toast")).to_contain_text("4 cells pasted.")
    rows = {it["name"]: (it["label"], it["story"]) for it in stored(server, "ampoule", "name")}
    assert (rows["T1"], rows["T2"]) == (("p\nq", "one"), ("r", "two"))


def test_rows_are_found_by_what_their_cells_show(page, tubes):
    for conditions, count in (
        ("keeper=Anna", 2),
        ("keeper__in=Bo,%20Anna", 3),
        ("keeper__contains=nn", 2),
        ("name=%20lead", 1),
        ("keeper=Nobody", 0),
    ):
        page.goto(f"/#/tables/ampoule?{conditions}")
        expect(page.locator(".chip")).to_be_visible()
        expect(page.locator("tbody tr")).to_have_count(count)
        page.goto("/#/tables")
    page.goto("/#/tables/ampoule?keeper=Bo")
    page.get_by_role("button", name="Remove the filter").click()
    expect(page.get_by_label("Value")).to_be_focused()


def test_namesakes_are_told_apart_in_a_form_and_chosen_by_key(page, tubes):
    page.goto("/#/tables/ampoule")
    page.locator("summary", has_text="Add a row").click()
    form = page.locator(".row-form")
    form.get_by_label("name", exact=True).fill("T10")
    keeper = form.get_by_label("keeper")
    keeper.fill("Anna")
    proposed = form.locator("datalist option", has_text="Anna · 2")
    expect(proposed).to_have_count(1)
    form.get_by_role("button", name="Add the row").click()
    expect(form).to_contain_text('Several rows of keeper are called "Anna"')
    # It is typed and not saved.
    page.get_by_role("link", name="Files", exact=True).click()
    page.get_by_role("button", name="Stay").click()
    keeper.fill(proposed.get_attribute("value"))
    form.get_by_role("button", name="Add the row").click()
    expect(page.locator("dl")).to_contain_text("Anna")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_what_a_colleague_changed_in_the_meantime_is_not_overwritten(page, server):
    columns = [{"name": "name", "data_type": "string"}, {"name": "od", "data_type": "float"}]
    define(server, "shared", columns)
    page.goto("/#/tables/shared")
    page.get_by_text("Change the table").click()
    page.get_by_label("Description").first.fill("Mine")
    define(server, "shared", [columns[0], {**columns[1], "unit": "mmol/L"}])
    page.get_by_role("button", name="Show what changes").click()
    expect(page.get_by_role("alert")).to_contain_text("Somebody else has changed the table")
    job = server.call("POST", "/jobs", {"name": "Shared script", "code": "print(1)\n"})["id"]
    page.goto(f"/#/jobs/{job}")
    page.get_by_role("button", name="Leave without saving").click()
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Script").fill("print(2)\n")
    server.call("PATCH", f"/jobs/{job}", {"code": "print(3)\n"})
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.get_by_role("alert")).to_contain_text("Version 2")
    page.get_by_role("button", name="Discard").click()
    page.get_by_role("button", name="Stay").click()
    assert page.get_by_label("Script").input_value() == "print(2)\n"
    page.get_by_role("button", name="Discard").click()
    page.get_by_role("button", name="Leave without saving").click()
    expect(page.get_by_label("Script")).to_have_count(0)


def test_nobody_is_offered_what_would_be_refused_or_sees_what_another_one_ran(server, browser, session):
    server.call("POST", "/groups", {"name": "qa"})
    define(server, "locked", [{"name": "name", "data_type": "string"}], access={"write": ["qa"]})
    write(server, "locked", [{"name": "only"}])
    keys = []
    for role in ("member", "viewer"):
        user = server.call("POST", "/users", {"email": f"{role}@editing.example", "role": role})["id"]
        keys.append(
            server.call(
                "POST",
                "/api-keys",
                {"name": role, "user_id": user, "scopes": ["read", "write"][: 2 if role == "member" else 1]},
            )["key"]
        )
    context = browser.new_context(locale="en-US", base_url=server.url)
    page = context.new_page()
    page.goto("/")
    page.fill("#key", keys[0])
    page.click("text=Sign in")
    page.get_by_role("link", name="Tables", exact=True).click()
    page.get_by_role("link", name="locked", exact=True).first.click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("td.editable, summary:text-matches('Add a row|Import|Change the table')")).to_have_count(0)
    page.get_by_role("link", name="only").click()
    expect(page.locator("dl")).to_contain_text("only")
    expect(page.locator("main button")).to_have_count(0)
    page.goto("/#/sql")
    page.get_by_label("SQL").fill("select 'mine' as secret")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("td")).to_have_text("mine")
    page.get_by_role("button", name="Sign out").click()
    page.fill("#key", keys[1])
    page.click("text=Sign in")
    page.get_by_role("link", name="SQL", exact=True).click()
    expect(page.get_by_label("SQL")).to_have_value('select name, semantic_category from "table" order by name')
    page.get_by_text("History").click()
    expect(page.locator("main")).not_to_contain_text("secret")
    context.close()


def test_a_choice_that_cannot_be_read_leaves_the_wizard_open(page, server):
    define(server, "moment", [{"name": "name", "data_type": "string"}, {"name": "taken", "data_type": "datetime"}])
    page.goto("/#/tables/moment")
    page.locator("summary", has_text="Import a file").click()
    content = b"export of today,\nname,taken\nA,2026-03-01 10:00\n"
    page.locator("input[type=file]").set_input_files({"name": "moments.csv", "mimeType": "text/csv", "buffer": content})
    page.get_by_text("Read as csv").click()
    zone = page.get_by_label("Time zone")
    zone.fill("Berlin")
    zone.press("Tab")
    expect(zone).to_have_attribute("aria-invalid", "true")
    expect(page.locator("details[open]", has_text="Read as csv").last).to_contain_text("must be a time zone")
    expect(page.get_by_label("Date format")).to_be_focused()
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("alert").last).to_contain_text("does not hold")
    zone.fill("Europe/Berlin")
    zone.press("Tab")
    expect(zone).not_to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name="Check").click()
    found = page.get_by_text("No problems. It would be 1 row created")
    expect(found).to_be_visible()
    page.locator("select[aria-label=taken]").select_option("")
    expect(found).to_have_count(0)


def test_names_neither_hide_nor_turn_around_nor_run_out_of_their_places(page, server):
    define(server, "odd", [{"name": "name", "data_type": "string", "is_unique": True}])
    write(server, "odd", [{"name": ""}, {"name": "\u202eKEEP sdnoces 5"}, {"name": "L" * 200}])
    page.goto("/#/tables/odd")
    for name in ("(empty)", "[U+202E]KEEP sdnoces 5"):
        expect(page.get_by_role("link", name=name, exact=True)).to_be_visible()
    page.get_by_role("link", name="L" * 200).click()
    expect(page.locator("dl")).to_be_visible()
    check_fits_a_phone(page)
