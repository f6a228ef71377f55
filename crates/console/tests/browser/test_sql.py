"""The page of SQL: statements, their results and charts."""

from __future__ import annotations

from playwright.sync_api import expect

from conftest import check_accessible


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


def test_a_number_that_is_rounded_says_so(page):
    page.goto("/#/sql?q=select+2%3A%3Afloat8%2F3+as+share%2C+2+as+whole")
    rounded = page.locator("td .rounded")
    expect(rounded).to_have_text(["0.666667"])
    expect(rounded).to_have_attribute("title", "0.6666666666666666")
    note = "getComputedStyle(document.querySelector('.scroll'), '::after').content"
    assert "are rounded" in page.evaluate(note)


def test_counts_are_written_alike_in_every_language(server, browser, session):
    # In German the point stands between thousands: 1.234 rows would be a little more than one.
    context = browser.new_context(locale="de-DE", base_url=server.url, storage_state=session)
    page = context.new_page()
    page.goto("/#/sql?q=select+generate_series%281%2C+1234%29+as+n")
    expect(page.locator(".told")).to_contain_text("1,234 rows in", timeout=30_000)
    expect(page.locator(".told")).to_contain_text("of which the first 1,000 are shown")
    context.close()


def test_a_cell_without_room_for_its_text_says_it_under_the_pointer(page):
    page.goto("/#/sql?q=select+repeat%28%27word+%27%2C+60%29+as+long%2C+1+as+short")
    long = page.locator("tbody td").first
    long.hover()
    expect(long).to_have_attribute("title", ("word " * 60))
    short = page.locator("tbody td").last
    short.hover()
    assert short.get_attribute("title") is None
