"""Jobs, keys and the inbox."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from conftest import check_accessible

HOSTILE = "<img src=x onerror=alert(1)><b>bold</b>"


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


def test_a_trigger_is_set_and_removed(job, page):
    page.goto(f"/#/jobs/{job}")
    page.click("text=Run it by itself")
    page.get_by_label("It runs when").select_option("schedule")
    page.get_by_label("Cron").fill("nonsense")
    page.click("button:has-text('Set the trigger')")
    expect(page.get_by_role("alert")).to_contain_text("cron")
    page.get_by_label("Cron").fill("0 6 * * 1-5")
    page.click("button:has-text('Set the trigger')")
    expect(page.locator("main")).to_contain_text("It runs at 0 6 * * 1-5")
    page.click("text=Remove the trigger")
    page.click("button:has-text('Let noise run by hand only')")
    expect(page.locator("main")).to_contain_text("It runs by hand only.")


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
