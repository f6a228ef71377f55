"""Texts of others stay texts on every page, and a session ends when it should."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from conftest import KEY, check_accessible

# Sets a mark on the page if any of it is ever read as markup.
HOSTILE = "<img src=x onerror=window.hacked=1>"


@pytest.fixture(scope="module")
def hostile_places(server):
    """Pages on which the text stands, made by way of the API."""
    columns = [{"name": "note", "data_type": "string"}]
    server.call("PUT", "/tables/hostile", {"semantic_category": "curated", "columns": columns})
    execution = server.call("POST", "/job-executions", {"job_name": HOSTILE})["job_execution_id"]
    rows = [{"table": "hostile", "rows": [{"note": HOSTILE}]}]
    server.call("POST", "/data/write", {"job_execution_id": execution, "tables": rows})
    instrument = server.call("POST", "/instruments", {"name": HOSTILE})["id"]
    file = server.upload(f"{HOSTILE}.csv", HOSTILE.encode(), instrument)
    job = server.call("POST", "/jobs", {"name": f"{HOSTILE}!", "code": f"print({HOSTILE!r})\n"})["id"]
    run = server.call("POST", f"/jobs/{job}/run", {})["job_execution_id"]
    notice = {"title": HOSTILE, "body": HOSTILE, "dedupe_key": "safety", "action_url": f"/jobs/{job}"}
    server.call("POST", "/notifications", notice)
    lists = ["home", "tables/hostile", "files", "executions", "jobs", "admin"]
    return [*lists, f"files/{file}", f"executions/{execution}", f"jobs/{job}", f"executions/{run}"]


def test_hostile_text_is_shown_as_it_is_on_every_page(page, hostile_places):
    for place in hostile_places:
        page.goto(f"/#/{place}")
        expect(page.locator("main")).to_contain_text(HOSTILE)
        expect(page.get_by_role("status").filter(has_text="…")).to_have_count(0)
        assert page.evaluate("window.hacked") is None, place
        assert page.locator("img[src=x]").count() == 0, place


def test_a_log_is_shown_as_it_was_printed(page, hostile_places):
    page.goto(f"/#/{hostile_places[-1]}")
    expect(page.get_by_label("Log")).to_contain_text(HOSTILE)
    expect(page.locator("h1 .badge.completed")).to_be_visible()
    assert page.locator("img").count() == 0


def test_signing_out_ends_the_session_wherever_its_cookie_is(server, browser):
    context = browser.new_context(locale="en-US", base_url=server.url)
    page = context.new_page()
    page.goto(server.sign_in_link())
    expect(page.locator("nav")).to_be_visible()
    assert "token" not in page.url
    cookies = context.cookies()
    assert [it["httpOnly"] for it in cookies] == [True]
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("#key")).to_be_visible()
    context.add_cookies(cookies)
    page.reload()
    expect(page.locator("#key")).to_be_visible()
    context.close()


def test_a_link_is_good_once(server, browser):
    link = server.sign_in_link()
    for shown in ("nav", "#key"):
        context = browser.new_context(locale="en-US")
        page = context.new_page()
        page.goto(link)
        expect(page.locator(shown)).to_be_visible()
        context.close()


def test_a_link_is_taken_by_the_open_page_that_asks_for_a_key(server, browser):
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    page.goto(server.url)
    expect(page.locator("#key")).to_be_visible()
    page.goto(server.sign_in_link())
    expect(page.locator("nav")).to_be_visible()
    assert "token" not in page.url
    context.close()


def test_an_ended_session_is_renewed_over_the_page(server, browser):
    context = browser.new_context(locale="en-US", base_url=server.url)
    page = context.new_page()
    page.goto(server.sign_in_link())
    page.goto("/#/sql")
    expect(page.locator("textarea")).to_be_visible()
    page.fill("textarea", "select 42 as answer")
    context.clear_cookies()
    page.click("button:has-text('Run')")
    dialog = page.get_by_role("dialog", name="Sign in again")
    expect(dialog).to_contain_text("has ended")
    check_accessible(page)
    dialog.get_by_label("API key").fill(KEY)
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    # What was asked before is answered now, and nothing was lost.
    expect(page.locator("td")).to_have_text("42")
    assert page.input_value("textarea") == "select 42 as answer"
    context.clear_cookies()
    page.click("button:has-text('Run')")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("alert")).to_contain_text("no longer signed in")
    context.close()
