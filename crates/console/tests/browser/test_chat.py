"""The chat, with a stub in place of the model: it calls the tool that a question names."""

from __future__ import annotations

import json
import re
import time
from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from conftest import Server, check_accessible, check_fits_a_phone, wait_until

# Sets a mark on the page if any of it is ever read as markup.
HOSTILE = "<img src=x onerror=window.hacked=1>"

# Seconds in which the packages of the agent's Python are installed.
INSTALL_SECONDS = 400

# The texts that the last answer showed, one after the other.
WATCH_ANSWER = """() => {
  window.told = [];
  new MutationObserver(() => {
    const text = [...document.querySelectorAll(".assistant .answer")].at(-1)?.textContent;
    if (text && text !== told.at(-1)) {
      told.push(text);
    }
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""

FIGURES = f"""
import matplotlib.pyplot as plt
import plotly.graph_objects as go

plt.plot([1, 2, 3])
go.Figure(go.Scatter(x=[1, 2, 3], y=[1, 4, 9], name="{HOSTILE}"), layout={{"title": "{HOSTILE}"}})
"""


ANSWER = f"""The fastest is **WT_37**, as [a paper](https://example.com/a_b) and [this](javascript:alert(1)) tell.
{HOSTILE}

| Strain | `mu` |
|---|---:|
| WT | 0.5 |

1. measure
   - at 37 °C
"""


def asking(tool: str, **arguments: object) -> str:
    """A question for which the stub calls a tool."""
    return f"call:{tool} {json.dumps(arguments)}"


def ask(page: Page, question: str) -> None:
    page.get_by_role("textbox", name="Question").fill(question)
    page.click("button:has-text('Ask')")


def notes(server: Server) -> list[str]:
    """The rows of the table that the agent writes into."""
    wanted = {"target_type": "table", "target_name": "chat_note"}
    return [row["note"] for row in server.call("POST", "/tools/read", wanted)]


def check_harmless(page: Page) -> None:
    assert page.evaluate("window.hacked") is None
    assert page.locator("img[src=x]").count() == 0


def test_an_answer_appears_piece_by_piece_and_what_the_agent_did_is_folded(page):
    page.goto("/#/chat")
    expect(page.locator("h1")).to_be_visible()
    page.evaluate(WATCH_ANSWER)
    # Of many words, so that some are painted apart from each other however busy the machine is.
    query = f"SELECT '{HOSTILE}' AS \"{HOSTILE}\", 42 AS answer, repeat('a ', 100) AS words"
    query = asking("query_data", query=query)
    ask(page, f"{HOSTILE} {query}")
    expect(page).to_have_url(re.compile(r"#/chat/[0-9a-f-]+$"))
    # Of the answer as it came, without the words that stand for one that has not begun.
    pieces = [text for text in page.evaluate("told") if text.startswith("Calling")]
    assert len(pieces) > 4
    # Only the complete answer, which is stored in parts, may differ from what came before.
    assert all(later.startswith(earlier) for earlier, later in pairwise(pieces[:-1])), pieces

    expect(page.locator("h1")).to_contain_text(HOSTILE)
    expect(page.get_by_label("You")).to_contain_text(HOSTILE)
    expect(page.get_by_label("The agent").last).to_contain_text(HOSTILE)
    # Words before a call say what it is for.
    expect(page.locator(".assistant").first).to_contain_text(re.compile(r"^Calling it\. *query_data"))
    call = page.locator("details.tool")
    expect(call.get_by_role("table")).to_be_hidden()
    call.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(call.locator("summary")).to_have_text("query_data")
    expect(call.locator("pre").first).to_contain_text("SELECT")
    assert call.locator("pre").first.evaluate("(it) => it.scrollWidth <= it.clientWidth")
    expect(call.get_by_role("columnheader")).to_have_text([HOSTILE, "answer", "words"])
    expect(call.get_by_role("cell")).to_have_text([HOSTILE, "42", re.compile("^a a")])
    check_harmless(page)
    check_accessible(page)
    check_fits_a_phone(page)


def test_an_answer_does_not_call_back_who_has_left_the_page(page):
    page.goto("/#/chat")
    expect(page.locator("h1")).to_be_visible()
    page.evaluate(WATCH_ANSWER)
    # An answer of half a minute, which is not over before the page is left.
    ask(page, f"say:{'word ' * 1000}")
    wait_until(page, "told.some((text) => !text.startsWith('The agent thinks'))")
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/agent/runs")):
        page.get_by_role("navigation").get_by_role("link", name="Files").click()
    expect(page.locator("h1")).to_have_text("Files")
    assert page.url.endswith("#/files")


def test_an_answer_is_formatted_and_only_addresses_of_the_web_become_links(page):
    page.goto("/#/chat")
    ask(page, f"say:{ANSWER}")
    expect(page).to_have_url(re.compile(r"#/chat/[0-9a-f-]+$"))
    answer = page.locator(".answer")
    expect(answer.locator("strong")).to_have_text("WT_37")
    expect(answer.get_by_role("link")).to_have_attribute("href", "https://example.com/a_b")
    expect(answer).to_contain_text("a paper (example.com)")
    expect(answer).to_contain_text(f"[this](javascript:alert(1)) tell. {HOSTILE}")
    expect(answer.get_by_role("columnheader")).to_have_text(["Strain", "mu"])
    expect(answer.get_by_role("cell")).to_have_text(["WT", "0.5"])
    # Of the columns whose line says so.
    expect(answer.locator(".number")).to_have_text(["mu", "0.5"])
    expect(answer.locator("ol > li > ul > li")).to_have_text("at 37 °C")
    check_harmless(page)
    check_accessible(page)
    check_fits_a_phone(page)


def test_what_is_typed_while_the_first_answer_comes_is_of_the_same_chat(page):
    page.goto("/#/chat")
    ask(page, f"say:{'word ' * 20}")
    question = page.get_by_role("textbox", name="Question")
    question.fill("and the next one")
    expect(page).to_have_url(re.compile(r"#/chat/[0-9a-f-]+$"))
    # Nobody is asked about it, and the next letter goes where the last one went.
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(question).to_have_value("and the next one")
    expect(question).to_be_focused()
    address = page.url
    page.keyboard.press("Control+Enter")
    expect(page.get_by_label("You")).to_have_count(2)
    expect(page.get_by_role("button", name="Ask")).to_be_enabled()
    assert page.url == address


def test_a_chat_is_continued_and_deleted_by_its_name(page):
    page.goto("/#/chat")
    ask(page, f"{HOSTILE} first")
    expect(page).to_have_url(re.compile(r"#/chat/[0-9a-f-]+$"))
    ask(page, "and second")
    expect(page.get_by_label("You")).to_have_count(2)
    expect(page.get_by_role("button", name="Ask")).to_be_enabled()
    page.reload()
    expect(page.get_by_label("You")).to_have_text([f"{HOSTILE} first", "and second"])
    page.click("text=← Chats")
    row = page.get_by_role("row", name=f"{HOSTILE} first")
    row.get_by_role("button", name="Delete").click()
    row.get_by_role("button", name=f"Delete the chat “{HOSTILE} first” and its files").click()
    expect(row).to_have_count(0)
    check_harmless(page)


def test_a_call_and_an_answer_that_fail_are_told_in_words(page):
    page.goto("/#/chat")
    ask(page, asking("query_data", query=f'SELECT "{HOSTILE}"'))
    expect(page).to_have_url(re.compile(r"#/chat/[0-9a-f-]+$"))
    expect(page.locator("summary")).to_have_text("query_data failed")
    page.locator("summary").click()
    expect(page.locator("details.tool")).to_contain_text(HOSTILE)
    ask(page, "fault:error-event")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("button", name="Ask")).to_be_enabled()
    expect(page.get_by_role("textbox", name="Question")).to_have_value("fault:error-event")
    check_harmless(page)
    check_accessible(page)


def test_what_a_run_wrote_is_reverted_by_naming_what_is_destroyed(server, page):
    columns = [{"name": "note", "data_type": "string"}]
    server.call("PUT", "/tables/chat_note", {"semantic_category": "curated", "columns": columns})
    rows = [{"note": HOSTILE}, {"note": "second"}]
    page.goto("/#/chat")
    ask(page, asking("write_data", tables=[{"table": "chat_note", "rows": rows}]))
    expect(page).to_have_url(re.compile(r"#/chat/[0-9a-f-]+$"))
    assert sorted(notes(server)) == [HOSTILE, "second"]
    page.click("button:has-text('Revert what this run wrote')")
    sure = page.get_by_role("button", name="Delete 2 rows of chat_note")
    expect(sure).to_be_visible()
    check_accessible(page)
    sure.click()
    expect(page.get_by_text("Reverted by")).to_be_visible()
    assert notes(server) == []
    page.reload()
    expect(page.get_by_text("Reverted by")).to_be_visible()
    expect(page.get_by_role("button", name="Revert")).to_have_count(0)


@pytest.fixture(scope="module")
def python(server: Server) -> None:
    """The packages of the agent's Python, which its first snippet installs."""
    deadline = time.monotonic() + INSTALL_SECONDS
    while True:
        question = {"prompt": asking("run_python", code="1 + 1"), "stream": False}
        (run,) = server.call("POST", "/agent/runs", question)["tool_calls"]
        if not run["is_error"]:
            return
        assert time.monotonic() < deadline, run
        time.sleep(1)


def test_figures_that_the_agent_drew_are_shown(python, page):
    page.goto("/#/chat")
    ask(page, asking("run_python", code=FIGURES))
    expect(page).to_have_url(re.compile(r"#/chat/[0-9a-f-]+$"))
    picture = page.locator(".chat figure > img")
    expect(picture).to_be_visible()
    assert picture.evaluate("(it) => it.decode().then(() => it.naturalWidth)") > 100
    chart = page.locator(".chat figure [role=img]")
    expect(chart.locator(".main-svg").first).to_be_visible()
    assert chart.evaluate("(it) => it.data.map((trace) => [...trace.y])") == [[1, 4, 9]]
    check_harmless(page)
    check_accessible(page)
