"""Jobs, keys and the inbox."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

import pytest
from playwright.sync_api import expect

from conftest import HOSTILE, check_accessible, check_fits_a_phone, png, wait_until


def check_plain(page) -> None:
    """The hostile text is shown, and is no markup."""
    expect(page.locator("main")).to_contain_text(HOSTILE)
    assert page.locator("main img, main b").count() == 0


@pytest.fixture(scope="module")
def job(server):
    """A job with two versions and a parameter, and a file that it may take."""
    definitions = [{"widget_type": "text", "parameter_name": "plate", "required": True, "label": HOSTILE}]
    made = server.call("POST", "/jobs", {"name": "noise", "code": "print(1)\n", "parameter_definitions": definitions})
    server.call("PATCH", f"/jobs/{made['id']}", {"code": f"# {HOSTILE}\nprint({HOSTILE!r})\n"})
    return made["id"]


def test_files_with_long_names_fit_a_phone(job, server, page):
    instrument = server.call("POST", "/instruments", {"name": "reader with long names"})["id"]
    name = "growth of every strain, measured through a long weekend on the third floor.csv"
    server.upload(name, b"well,value\n", instrument)
    page.goto(f"/#/jobs/{job}")
    page.get_by_label("Part of the file's name").fill("long weekend")
    expect(page.get_by_role("option", name=name)).to_be_attached()
    check_fits_a_phone(page)


def test_a_job_runs_and_its_log_is_followed(job, page):
    page.goto(f"/#/jobs/{job}")
    check_plain(page)
    expect(page.locator(".code .comment")).to_have_text(f"# {HOSTILE}")
    page.click("text=Versions")
    page.click("button:has-text('Compare')")
    expect(page.locator(".differences .taken").first).to_have_text("print(1)")
    check_accessible(page)
    page.get_by_label(HOSTILE).fill("P1")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("pre[aria-label=Log]")).to_have_text(re.compile(re.escape(HOSTILE)))
    expect(page.locator(".badge.completed")).to_be_visible()
    check_plain(page)
    check_accessible(page)


def test_a_run_says_which_version_of_which_job_read_which_file(server, job, page):
    instrument = server.call("POST", "/instruments", {"name": "reader of origins"})["id"]
    file = server.upload("origins.csv", b"well,value\n", instrument)
    body = {"parameters": {"plate": "P7"}, "file_id": file}
    run = server.call("POST", f"/jobs/{job}/run", body)["job_execution_id"]
    page.goto(f"/#/executions/{run}")
    expect(page.locator("h1 .badge.completed")).to_be_visible()
    facts = page.locator("dl").first
    expect(facts.locator("div", has_text="Job")).to_have_text("Jobnoise, version 2")
    expect(facts.locator("div", has_text="Took")).to_have_text(re.compile(r"^Took\d+(\.\d+)? (ms|s|min)"))
    expect(facts.locator("div", has_text="By")).to_contain_text("(")
    facts.get_by_role("link", name="origins.csv").click()
    expect(page.locator("h1")).to_have_text("origins.csv")
    expect(page.get_by_role("link", name="noise")).to_be_visible()
    page.go_back()
    # The same job with the same file and parameters.
    page.get_by_role("button", name="Run again").click()
    wait_until(page, f"!location.hash.endsWith('{run}')")
    expect(facts.get_by_role("link", name="origins.csv")).to_be_visible()
    expect(page.locator("pre", has_text="P7")).to_be_visible()
    expect(page.locator("h1 .badge.completed")).to_be_visible()


def test_a_log_that_breaks_off_is_read_again(server, job, page):
    run = server.call("POST", f"/jobs/{job}/run", {"parameters": {"plate": "P1"}})["job_execution_id"]
    # The first request fails, and further ones wait until it was seen what the page says of it.
    requests = []

    def hold(route) -> None:
        if not requests:
            route.abort()
        requests.append(route)

    page.route("**/logs?follow=true", hold)
    page.goto(f"/#/executions/{run}")
    log = page.locator("lab-log")
    expect(log).to_contain_text("The connection broke off.")
    page.unroute("**/logs?follow=true")
    for route in requests[1:]:
        route.continue_()
    expect(log.locator("pre")).to_have_text(f"{HOSTILE}\n")
    expect(log).not_to_contain_text("The connection broke off.")
    expect(page.locator(".badge.completed")).to_be_visible()


def test_a_region_is_drawn_on_an_image(server, page):
    instrument = server.call("POST", "/instruments", {"name": "microscope"})["id"]
    name = "colonies.png"
    image = server.upload(name, png(400, 300, (20, 160, 90)), instrument)
    definitions = [
        {"widget_type": "text", "parameter_name": "plate", "label": "Plate"},
        {"widget_type": "region", "parameter_name": "colony", "file_id_parameter": "plate", "required": True},
    ]
    script = "import json, os\nprint(os.environ)\n"
    job = server.call("POST", "/jobs", {"name": "crop", "code": script, "parameter_definitions": definitions})["id"]
    page.goto(f"/#/jobs/{job}")
    draw = page.get_by_role("button", name="Draw on the image")
    draw.click()
    expect(page.locator(".region")).to_contain_text("Give the image's file first.")
    plate = page.locator("label", has_text=re.compile("^Plate")).get_by_label("File", exact=True)
    expect(plate.get_by_role("option", name=name)).to_be_attached()
    plate.select_option(image)
    draw.click()
    canvas = page.get_by_role("img", name="The image, to draw on")
    expect(canvas).to_be_visible()
    check_accessible(page)
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert (box["width"], box["height"]) == (400, 300)
    # Backwards, from the lower right corner.
    page.mouse.move(box["x"] + 200, box["y"] + 150)
    page.mouse.down()
    page.mouse.move(box["x"] + 120, box["y"] + 110, steps=4)
    page.mouse.up()
    expected = {"x": 120, "y": 110, "width": 80, "height": 40}
    for side, pixels in expected.items():
        expect(page.get_by_label(side, exact=True)).to_have_value(str(pixels))
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".badge.completed")).to_be_visible()
    run = server.call("GET", f"/job-executions?job_id={job}")[0]
    assert run["parameters"] == {"plate": image, "colony": expected}


def test_a_trigger_is_set_and_removed(job, page):
    page.goto(f"/#/jobs/{job}")
    page.click("text=Run it by itself")
    page.get_by_role("combobox", name="It runs", exact=True).select_option("schedule")
    page.get_by_label("Cron").fill("nonsense")
    page.click("button:has-text('Set the trigger')")
    expect(page.locator("form > div .failure").last).to_contain_text("cron must be five fields")
    page.get_by_label("Cron").fill("0 6 * * 1-5")
    page.click("button:has-text('Set the trigger')")
    expect(page.locator("main")).to_contain_text("It runs at 0 6 * * 1-5")
    page.click("text=Remove the trigger")
    page.click("button:has-text('Let noise run by hand only')")
    expect(page.locator("main")).to_contain_text("It runs by hand only.")


def test_an_administrator_sees_what_is_used(page):
    page.goto("/#/admin")
    usage = page.locator("section", has=page.get_by_role("heading", name="Usage and quotas"))
    expect(usage.locator("div", has_text="Files and datasets").last).to_contain_text("MB, no limit")
    expect(usage).to_contain_text("Tokens of the agent")


def test_the_doctor_tells_what_works_and_what_is_to_be_fixed(page):
    page.goto("/#/admin")
    doctor = page.locator("section", has=page.get_by_role("heading", name="Doctor"))
    expect(doctor.get_by_text("works", exact=True)).to_have_count(6)
    expect(doctor.get_by_text("not set up")).to_have_count(3)
    expect(doctor).not_to_contain_text("To be fixed")
    states = [{"name": "storage", "state": "ok"}, {"name": "SMTP", "state": "failed"}]
    report = {"checked_at": "2026-11-25T08:00:00Z", "dependencies": states}
    page.route("**/api/v1/dependencies", lambda route: route.fulfill(json=report))
    page.reload()
    expect(doctor).to_contain_text("To be fixed: SMTP.")
    check_accessible(page)


def test_a_key_is_shown_once_and_revoked(page):
    page.goto("/#/admin")
    page.click("text=New key")
    form = page.locator("details", has=page.locator("summary", has_text="New key"))
    form.get_by_label("Name").fill("robot")
    form.get_by_role("button", name="Create the key").click()
    expect(page.locator(".secret")).to_have_text(re.compile("^ldk_"))
    check_accessible(page)
    page.click("text=I have it")
    row = page.locator("tr", has_text="robot")
    row.get_by_role("button", name="Revoke").click()
    row.get_by_role("button", name="Revoke robot").click()
    expect(row).to_contain_text("revoked")
    assert page.locator(".secret").count() == 0


def test_the_inbox_is_live(server, job, page):
    page.goto("/#/home")
    expect(page.locator("h1")).to_have_text("Home")
    notice = {"title": HOSTILE, "body": HOSTILE, "dedupe_key": "work", "action_url": f"/jobs/{job}"}
    server.call("POST", "/notifications", notice)
    check_plain(page)
    check_accessible(page)
    page.locator("li", has_text=HOSTILE).get_by_role("link", name="Open").click()
    expect(page.locator("h1")).to_have_text("noise")


def test_the_next_ticks_of_a_schedule_are_shown_while_it_is_typed(job, page):
    # Zones that never change their clocks.
    offsets = {"America/Bogota": timedelta(hours=-5), "Asia/Tokyo": timedelta(hours=9), "UTC": timedelta()}
    emulation = {"timezoneId": "Asia/Tokyo"}
    page.context.new_cdp_session(page).send("Emulation.setTimezoneOverride", emulation)
    page.goto(f"/#/jobs/{job}")
    page.click("text=Run it by itself")
    page.get_by_role("combobox", name="It runs", exact=True).select_option("schedule")
    expect(page.get_by_label("Time zone")).to_have_value("Asia/Tokyo")
    said = page.locator(".ticks")
    page.get_by_label("Cron").fill("")
    expect(said.get_by_role("alert")).to_contain_text("it has 0")
    page.get_by_label("Cron").press_sequentially("0 6")
    expect(said.get_by_role("alert")).to_contain_text("cron must be five fields (minute, hour, day, month, weekday)")
    page.get_by_label("Cron").fill("0 0 30 2 *")
    expect(said.get_by_role("alert")).to_contain_text("never comes")
    page.get_by_label("Cron").fill("15 6 * * 1-5")
    page.get_by_label("Time zone").fill("Mars/Olympus")
    expect(said.get_by_role("alert")).to_contain_text("Mars/Olympus")
    check_accessible(page)

    page.get_by_label("Time zone").fill("America/Bogota")
    names = ["Next in America/Bogota", "Next in Asia/Tokyo (yours)", "Next in UTC"]
    expect(said.get_by_role("columnheader")).to_have_text(names)
    check_accessible(page)
    lines = said.locator("tbody tr")
    expect(lines).to_have_count(5)
    ticks = []
    for line in lines.all():
        times = line.locator("time")
        tick = datetime.fromisoformat(times.first.get_attribute("datetime").replace("Z", "+00:00"))
        for offset, shown in zip(offsets.values(), times.all_inner_texts(), strict=True):
            there = tick.astimezone(timezone(offset))
            assert f"{there:%a}, {there:%b} {there.day}, " in shown
            assert f"{there:%I:%M}" in shown
        there = tick.astimezone(timezone(offsets["America/Bogota"]))
        assert (there.hour, there.minute, there.weekday() < 5) == (6, 15, True)
        ticks.append(tick)
    assert datetime.now(timezone.utc) < ticks[0]
    assert ticks == sorted(set(ticks))
    check_fits_a_phone(page)


def test_a_wrong_re_run_is_undone_and_the_undo_too(server, page):
    columns = [{"name": "name", "data_type": "string", "is_unique": True}, {"name": "volume", "data_type": "float"}]
    server.call("PUT", "/tables/rerun", {"semantic_category": "curated", "columns": columns})
    rows = [{"name": "a", "volume": 1}, {"name": "b", "volume": 2}]
    server.call("POST", "/data/write", {"tables": [{"table": "rerun", "rows": rows}]})
    wrong = {"table": "rerun", "mode": "upsert", "key": ["name"], "rows": [{"name": "a", "volume": 9}, {"name": "c"}]}
    execution = server.call("POST", "/data/write", {"job_name": "Wrong re-run", "tables": [wrong]})["job_execution_id"]

    def stored() -> list:
        body = {"target_name": "rerun", "target_type": "table", "order_by": ["name"]}
        return [(row["name"], row["volume"]) for row in server.call("POST", "/tools/read", body)]

    page.goto(f"/#/executions/{execution}")
    expect(page).to_have_title("Wrong re-run · labdata")
    page.click("text=Preview the revert")
    expect(page.locator("main")).to_contain_text("This will delete 1 row of rerun, restore 1 row.")
    check_accessible(page)
    page.get_by_role("button", name="Delete 1 row of rerun, restore 1 row").click()
    expect(page.locator("main")).to_contain_text("Reverted by")
    assert stored() == [("a", 1), ("b", 2)]
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).to_have_count(0)
    assert stored() == [("a", 9), ("b", 2), ("c", None)]
    # The execution can be reverted once more.
    expect(page.get_by_role("button", name="Preview the revert")).to_be_visible()


def test_a_preview_of_a_revert_counts_what_is_still_there(server, page):
    columns = [{"name": "name", "data_type": "string"}]
    server.call("PUT", "/tables/vessel", {"semantic_category": "curated", "columns": columns})
    rows = [{"name": name} for name in "abc"]
    written = server.call("POST", "/data/write", {"tables": [{"table": "vessel", "rows": rows}]})
    first = written["tables"][0]["ids"][0]
    server.call("POST", "/data/write", {"tables": [{"table": "vessel", "mode": "delete", "rows": [{"id": first}]}]})
    page.goto(f"/#/executions/{written['job_execution_id']}")
    page.click("text=Preview the revert")
    expect(page.locator("main")).to_contain_text(
        "This will delete 2 rows of vessel. 1 row that it created has been deleted since."
    )
    expect(page.get_by_role("button", name="Delete 2 rows of vessel", exact=True)).to_be_visible()


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


def test_executions_are_filtered_and_come_by_themselves(server, page):
    server.call(
        "PUT", "/tables/live", {"semantic_category": "curated", "columns": [{"name": "name", "data_type": "string"}]}
    )
    page.goto("/#/executions")
    expect(page.locator("tbody tr").first).to_be_visible()
    server.call(
        "POST", "/data/write", {"job_name": "Came by itself", "tables": [{"table": "live", "rows": [{"name": "x"}]}]}
    )
    expect(page.locator("td", has_text="Came by itself")).to_be_visible()
    page.get_by_role("combobox", name="Status").select_option("cancelled")
    expect(page.locator("td", has_text="Came by itself")).to_have_count(0)
    page.go_back()
    expect(page.locator("td", has_text="Came by itself")).to_be_visible()


def test_a_script_is_reviewed_and_published(server, page):
    made = server.call("POST", "/jobs", {"name": "to publish", "code": "print(1)\n"})
    page.goto(f"/#/jobs/{made['id']}")
    section = page.locator("section", has=page.get_by_role("heading", name="Publishing"))
    expect(section.locator(".badge")).to_have_text("draft")
    section.get_by_role("button", name="Ask for review").click()
    expect(section.locator(".badge")).to_have_text("in review")
    check_accessible(page)
    section.get_by_role("button", name="Publish version 1").click()
    expect(section.locator(".badge")).to_have_text("published")
    expect(section.get_by_role("button")).to_have_count(0)
    server.call("PATCH", f"/jobs/{made['id']}", {"code": f"print({HOSTILE!r})\n"})
    page.reload()
    expect(section).to_contain_text("Version 1 was published last")
    section.get_by_text("What differs from version 1").click()
    expect(section.locator(".differences .taken").first).to_have_text("print(1)")
    check_plain(page)
    check_accessible(page)
    check_fits_a_phone(page)


def test_the_computer_of_an_instrument_has_a_band_of_its_last_week(server, page):
    instrument = server.call("POST", "/instruments", {"name": "watched reader"})["id"]
    page.goto(f"/#/instruments/{instrument}")
    expect(page.locator("main")).to_contain_text("No computer has reported for this instrument yet.")
    beat = {"status": "online", "app_version": HOSTILE, "is_watching": True, "queued_files": 2}
    server.call("POST", f"/instruments/{instrument}/heartbeat", beat)
    server.call("POST", f"/instruments/{instrument}/heartbeat", {**beat, "status": "error", "detail": {"failing": 2}})
    page.reload()
    expect(page.get_by_role("img", name="Status of the computer over the last 7 days")).to_be_visible()
    expect(page.locator(".band .error")).to_have_count(1)
    expect(page.locator("main")).to_contain_text("2 failing")
    page.get_by_text("Periods").click()
    expect(page.locator("details .badge.failed")).to_have_text("has trouble")
    check_plain(page)
    check_accessible(page)
    check_fits_a_phone(page)
