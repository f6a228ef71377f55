"""Pages that follow what changes on the platform, and take nothing away from who works on them."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from conftest import wait_until
from test_models import MODEL, RESULTS

# Milliseconds after which a page looks again for what no event tells of.
TICK = 30_000

NAME = {"name": "name", "data_type": "string", "is_unique": True, "is_nullable": False}


@pytest.fixture(scope="module")
def flask(server) -> str:
    """The key of a flask. Samples refer to it."""
    columns = [NAME, {"name": "volume", "data_type": "float", "unit": "mL"}, {"name": "note", "data_type": "string"}]
    server.call("PUT", "/tables/live_flask", {"semantic_category": "curated", "columns": columns})
    of = {"name": "flask", "data_type": "string", "references": "live_flask"}
    server.call("PUT", "/tables/live_sample", {"semantic_category": "curated", "columns": [NAME, of]})
    owner = {"name": "sample", "data_type": "string", "references": "live_sample", "is_nullable": False}
    points = [owner, {"name": "time", "data_type": "float", "unit": "s"}, {"name": "signal", "data_type": "float"}]
    server.call("PUT", "/tables/live_curve", {"semantic_category": "raw", "columns": points})
    return write(server, "live_flask", {"name": "Flask 1", "volume": 100})


def write(server, table: str, row: dict, mode: str = "insert") -> str:
    """Writes a row; its key."""
    body = {"tables": [{"table": table, "mode": mode, "rows": [row]}]}
    return server.call("POST", "/data/write", body)["tables"][0]["ids"][0]


def measure(server, name: str) -> None:
    """A sample with a curve."""
    curve = {"table": "live_curve", "parent": write(server, "live_sample", {"name": name})}
    server.call("POST", "/data/write", {"series": [{**curve, "columns": {"time": [0, 10, 20], "signal": [1, 2, 3]}}]})


def test_a_row_follows_its_changes_but_for_a_form_that_is_open(flask, server, page):
    page.goto(f"/#/tables/live_flask%2F{flask}")
    values = page.locator("dl").first
    expect(values).to_contain_text("100")
    write(server, "live_flask", {"id": flask, "volume": 250}, "update")
    expect(values).to_contain_text("250")
    page.get_by_text("History", exact=True).click()
    history = page.get_by_role("region", name="History")
    expect(history.locator("tbody tr")).to_have_count(2)
    expect(history.locator("tbody tr").last).to_contain_text("volume: 100")
    page.get_by_role("button", name="Change").click()
    note = page.get_by_label("note")
    note.fill("not saved yet")
    write(server, "live_flask", {"id": flask, "volume": 300}, "update")
    write(server, "live_sample", {"name": "Sample of a flask", "flask": flask})
    # Other parts of the page show both, so the events have come.
    expect(page.get_by_role("link", name="Sample of a flask")).to_be_visible()
    expect(history.locator("tbody tr")).to_have_count(3)
    expect(note).to_have_value("not saved yet")
    expect(values).to_contain_text("250")


def test_curves_follow_what_is_measured_but_for_a_plot_that_is_zoomed(flask, server, page):
    measure(server, "First of the day")
    page.goto("/#/plates/live_curve?_all=1")
    told = page.locator(".told")
    expect(told).to_have_text("1 curve, 3 points.")
    measure(server, "Second of the day")
    expect(told).to_have_text("2 curves, 6 points.")
    page.get_by_role("button", name="+", exact=True).click()
    wait_until(page, "document.querySelector('lab-plot').layout.xaxis.range[0] > 1")
    other = page.context.new_page()
    other.goto("/#/plates/live_curve?_all=1")
    expect(other.locator(".told")).to_have_text("2 curves, 6 points.")
    measure(server, "Third of the day")
    expect(other.locator(".told")).to_have_text("3 curves, 9 points.")
    other.close()
    expect(told).to_have_text("2 curves, 6 points.")
    assert page.evaluate("document.querySelector('lab-plot').layout.xaxis.range[0]") > 1
    page.get_by_role("button", name="Reset").click()
    expect(told).to_have_text("3 curves, 9 points.")


def test_instruments_come_by_themselves_and_one_shows_its_computer(server, page):
    page.clock.install()
    page.goto("/#/instruments")
    expect(page.locator("main .scroll, main .empty").first).to_be_visible()
    made = server.call("POST", "/instruments", {"name": "Reader of a later hour"})["id"]
    page.clock.fast_forward(TICK)
    page.get_by_role("link", name="Reader of a later hour").click()
    expect(page.get_by_text("No computer has reported for this instrument yet.")).to_be_visible()
    beat = {"status": "online", "app_version": "1.0", "is_watching": True, "queued_files": 0}
    server.call("POST", f"/instruments/{made}/heartbeat", beat)
    # The platform tells of it: nobody has to wait for the next look.
    expect(page.locator("main dl .badge")).to_have_text("online")


def test_lists_of_administrators_are_looked_through_again_but_for_what_is_typed_or_shown_once(server, page):
    page.clock.install()
    page.goto("/#/admin")
    keys = section(page, "Keys")
    users = section(page, "Users")
    expect(keys.locator("tbody tr").first).to_be_visible()
    expect(users.locator("tbody tr").first).to_be_visible()
    keys.get_by_text("New key").click()
    keys.get_by_role("textbox", name="Name").fill("of the day")
    server.call("POST", "/api-keys", {"name": "made elsewhere", "scopes": ["read"]})
    server.call("POST", "/users", {"email": "late@example.com", "role": "viewer"})
    page.clock.fast_forward(TICK)
    expect(users.locator("td", has_text="late@example.com").first).to_be_visible()
    expect(keys.get_by_role("textbox", name="Name")).to_have_value("of the day")
    expect(keys.locator("td", has_text="made elsewhere")).to_have_count(0)
    keys.get_by_role("button", name="Create the key").click()
    expect(keys.locator(".secret")).to_be_visible()
    server.call("POST", "/users", {"email": "later@example.com", "role": "viewer"})
    page.clock.fast_forward(TICK)
    expect(users.locator("td", has_text="later@example.com").first).to_be_visible()
    expect(keys.locator(".secret")).to_be_visible()
    keys.get_by_role("button", name="I have it").click()
    expect(keys.locator("td", has_text="made elsewhere")).to_be_visible()


def section(page: Page, name: str):
    return page.locator("section", has=page.get_by_role("heading", name=name, exact=True))


def test_a_chat_that_goes_on_elsewhere_is_shown_and_listed(server, page):
    page.clock.install()
    page.goto("/#/chat")
    expect(page.locator("main .scroll, main .empty").first).to_be_visible()
    asked = {"prompt": "Which came first?", "save": True, "stream": False}
    chat = server.call("POST", "/agent/runs", asked)["chat_id"]
    page.clock.fast_forward(TICK)
    page.get_by_role("link", name="Which came first?").click()
    expect(page.locator(".chat .user")).to_have_text(["Which came first?"])
    question = page.get_by_role("textbox", name="Question")
    question.fill("What I am about to ask")
    server.call("POST", "/agent/runs", {**asked, "prompt": "And which came second?", "chat_id": chat})
    page.clock.fast_forward(TICK)
    expect(page.locator(".chat .user")).to_have_text(["Which came first?", "And which came second?"])
    expect(question).to_have_value("What I am about to ask")


def test_an_execution_follows_its_run_and_keeps_what_is_chosen_for_its_undo(flask, server, page):
    run = server.call("POST", "/job-executions", {"job_name": "Watched run"})["job_execution_id"]

    def put(name: str) -> None:
        body = {"tables": [{"table": "live_flask", "rows": [{"name": name}]}], "job_execution_id": run}
        server.call("POST", "/data/write", body)

    put("First of a run")
    page.goto(f"/#/executions/{run}")
    counts = page.get_by_role("row", name="live_flask")
    expect(counts.locator("td").nth(1)).to_have_text("1")
    expect(page.locator("h1 .badge")).to_have_text("running")
    page.get_by_text("Rows of live_flask, before and after").click()
    expect(page.get_by_role("link", name="First of a run")).to_be_visible()
    restores = page.get_by_label("Bring back what it changed and deleted")
    restores.check()
    page.get_by_role("button", name="Preview the revert").click()
    revert = page.locator("button[data-name=Revert]")
    expect(revert).to_have_text("Delete 1 row of live_flask")
    revert.focus()
    put("Second of a run")
    expect(counts.locator("td").nth(1)).to_have_text("2")
    expect(page.get_by_role("link", name="Second of a run")).to_be_visible()
    # The button says what it would do now, and neither the choice nor the focus is lost.
    expect(revert).to_have_text("Delete 2 rows of live_flask")
    expect(revert).to_be_focused()
    expect(restores).to_be_checked()
    cancel = page.get_by_role("button", name="Cancel", exact=True)
    expect(cancel).to_be_visible()
    server.call("PATCH", f"/job-executions/{run}", {"status": "completed"})
    expect(page.locator("h1 .badge")).to_have_text("completed")
    expect(page.locator("dt", has_text="Took")).to_be_visible()
    expect(cancel).to_have_count(0)
    server.call("POST", f"/job-executions/{run}/revert", {})
    expect(page.locator("main")).to_contain_text("Reverted by")
    expect(revert).to_have_count(0)


def test_a_job_follows_its_changes_but_for_parts_in_which_somebody_works(server, page):
    page.clock.install()
    definitions = [{"parameter_name": "wells", "widget_type": "text", "label": "Wells"}]
    body = {"name": "watched job", "code": "print(1)\n", "parameter_definitions": definitions}
    job = f"/jobs/{server.call('POST', '/jobs', body)['id']}"
    page.goto(f"/#{job}")
    expect(page.locator("pre.code")).to_contain_text("print(1)")
    page.get_by_label("Wells").fill("A1, not run yet")
    page.get_by_text("Run it by itself").click()
    page.get_by_role("button", name="Edit").click()
    script = page.locator("textarea.code")
    script.fill("print('mine')\n")
    server.call("PATCH", job, {"code": "print(2)\n", "description": "Reads wells.", "parameter_definitions": []})
    server.call("PATCH", job, {"trigger_enabled": True, "trigger_category": "file_uploaded"})
    page.clock.fast_forward(TICK)
    expect(page.get_by_text("Reads wells.")).to_be_visible()
    expect(page.get_by_text("Run over old files")).to_be_visible()
    expect(page.locator("main")).to_contain_text("Version 2 is draft")
    # Three parts in which somebody works have stayed.
    expect(page.get_by_label("Wells")).to_have_value("A1, not run yet")
    expect(page.get_by_text("It runs by hand only.")).to_be_visible()
    expect(script).to_have_value("print('mine')\n")
    expect(page.get_by_role("heading", name="Script, version 1")).to_be_visible()
    page.get_by_role("button", name="Discard").click()
    page.get_by_role("button", name="Leave without saving").click()
    page.clock.run_for(1000)
    expect(page.get_by_role("heading", name="Script, version 2")).to_be_visible()
    expect(page.locator("pre.code")).to_contain_text("print(2)")
    server.call("PATCH", job, {"archived": True})
    page.clock.fast_forward(TICK)
    expect(page.get_by_role("button", name="Bring the job back")).to_be_visible()


def test_files_of_a_run_come_and_go_but_the_chosen_one_stays(server, page):
    instrument = server.call("POST", "/instruments", {"name": "Reader of runs"})["id"]
    chosen = server.upload("first of a run.csv", b"well,od\n", instrument)
    job = server.call("POST", "/jobs", {"name": "job that reads one", "code": "print(1)\n"})["id"]
    page.goto(f"/#/jobs/{job}")
    files = page.get_by_role("combobox", name="File", exact=True)
    files.select_option(chosen)
    files.blur()
    server.upload("second of a run.csv", b"well,od\n", instrument)
    second = files.locator("option", has_text="second of a run.csv")
    expect(second).to_have_text(re.compile(r"\(\d{4}-\d\d-\d\d \d\d:\d\d [^.:]+\)$"))
    expect(files).to_have_value(chosen)
    part = page.get_by_label("Part of the file's name")
    part.fill("second of")
    # Of the other files only the one that is chosen.
    expect(files.locator("option")).to_have_count(3)
    expect(files).to_have_value(chosen)
    part.blur()
    server.call("DELETE", f"/files/{chosen}")
    expect(files).to_have_value("")
    expect(page.get_by_text("The file that was chosen has been deleted.")).to_be_visible()
    expect(files.locator("option")).to_have_count(2)
    expect(second).to_be_attached()


def test_a_model_follows_its_versions_but_for_a_prediction_that_is_typed(page):
    version = MODEL | {"version_number": 1, "currently_active": True}
    shown = {"it": version, "versions": [version]}
    page.clock.install()
    page.route(re.compile(r"/api/v1/ml-models/m1$"), lambda it: it.fulfill(json=shown["it"]))
    page.route(re.compile(r"/api/v1/ml-models/m1/versions"), lambda it: it.fulfill(json=shown["versions"]))
    page.route(re.compile(r"/api/v1/ml-models/m1/results"), lambda it: it.fulfill(json=RESULTS))
    page.goto("/#/models/m1")
    versions = page.locator("section", has=page.get_by_role("heading", name="Versions")).locator("tbody tr")
    expect(versions).to_have_count(1)
    volume = page.get_by_label("volume").last
    volume.fill("3")
    newer = MODEL | {"version_number": 2, "currently_active": False, "status": "training"}
    shown["versions"] = [newer, version]
    page.clock.fast_forward(TICK)
    expect(versions.first).to_contain_text("training")
    shown["versions"] = [newer | {"status": "ready"}, version]
    page.clock.fast_forward(TICK)
    expect(versions.first.get_by_role("button", name="Activate")).to_be_visible()
    shown["it"] = newer | {"status": "ready", "currently_active": True, "target_column": "titer"}
    shown["versions"] = [shown["it"], version | {"currently_active": False}]
    page.clock.fast_forward(TICK)
    expect(page.locator("main dl")).to_contain_text("titer")
    expect(volume).to_have_value("3")


def test_a_text_that_is_marked_to_be_copied_stays_marked(flask, server, page):
    page.goto(f"/#/tables/live_flask%2F{flask}")
    values = page.locator("dl").first
    expect(values).to_contain_text("Flask 1")
    other = page.context.new_page()
    other.goto(f"/#/tables/live_flask%2F{flask}")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('dl'))")
    write(server, "live_flask", {"id": flask, "note": "after it was marked"}, "update")
    expect(other.locator("dl").first).to_contain_text("after it was marked")
    write(server, "live_sample", {"name": "Sample after the mark", "flask": flask})
    expect(page.get_by_role("link", name="Sample after the mark")).to_be_visible()
    assert "Flask 1" in page.evaluate("String(getSelection())")
    other.close()
    page.evaluate("getSelection().removeAllRanges()")
    expect(values).to_contain_text("after it was marked")
