"""Two organizations in two browsers, and one after the other in one."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from conftest import KEY

SECRET = "select 'a secret of ours'"


@pytest.fixture(scope="module")
def other_key(server):
    return server.key_of("others")


def sign_in(page, key: str) -> None:
    page.goto("/")
    page.fill("#key", key)
    page.keyboard.press("Enter")
    expect(page.locator("nav")).to_be_visible()


def test_organizations_see_nothing_of_each_other(server, browser, page, other_key):
    columns = [{"name": "name", "data_type": "string"}]
    server.call("PUT", "/tables/ours", {"semantic_category": "curated", "columns": columns})
    written = server.call("POST", "/data/write", {"tables": [{"table": "ours", "rows": [{"name": "x"}]}]})
    row = written["tables"][0]["ids"][0]
    context = browser.new_context(locale="en-US", base_url=server.url)
    other = context.new_page()
    sign_in(other, other_key)
    page.goto("/#/tables")
    other.goto("/#/tables")
    expect(page.locator(".picture a", has_text="ours")).to_be_visible()
    expect(other.locator("main")).to_contain_text("No table yet")
    for address in ("tables/ours", f"tables/ours%2F{row}", "plates/ours"):
        other.goto(f"/#/{address}")
        expect(other.get_by_role("alert")).to_contain_text('There is no table "ours"')
    page.goto(f"/#/executions/{written['job_execution_id']}")
    expect(page.locator("h1")).to_be_visible()
    other.goto(f"/#/executions/{written['job_execution_id']}")
    expect(other.get_by_role("alert").first).to_contain_text("not found")
    context.close()


def test_statements_stay_with_their_organization(server, browser, other_key):
    context = browser.new_context(locale="en-US", base_url=server.url)
    page = context.new_page()
    sign_in(page, KEY)
    page.goto("/#/sql")
    page.fill("textarea", SECRET)
    page.keyboard.press("Control+Enter")
    expect(page.locator("td")).to_have_text("a secret of ours")
    page.click("text=Sign out")
    page.fill("#key", other_key)
    page.keyboard.press("Enter")
    expect(page.locator("nav")).to_be_visible()
    assert "secret" not in page.url
    page.goto("/#/sql")
    expect(page.locator("textarea")).to_be_visible()
    page.click("text=History")
    expect(page.locator("details", has_text="History")).to_contain_text("None yet.")
    assert SECRET not in page.input_value("textarea")
    context.close()
