"""Pages of an administrator: groups, invitations, webhooks with their deliveries, and the trash."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable

from playwright.sync_api import Page, expect

from conftest import check_accessible, check_fits_a_phone


def section(page: Page, name: str):
    return page.locator("section", has=page.get_by_role("heading", name=name, exact=True, level=2))


def show(page: Page, address: str) -> None:
    """A page from its beginning: after a smaller window it is loaded at its usual size again."""
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto("about:blank")
    page.goto(address)


def wait_for(page: Page, happened: Callable[[], bool]) -> None:
    """Asks again until it has happened, within the time that expectations have."""
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline
        page.wait_for_timeout(200)


def check(page: Page) -> None:
    check_accessible(page)
    check_fits_a_phone(page)


def test_a_group_is_made_gets_members_and_is_deleted(server, page):
    name = f"Group {uuid.uuid4().hex[:8]}"
    show(page, "/#/admin")
    part = section(page, "Groups")
    part.get_by_text("New group").click()
    part.get_by_label("Name").fill(name)
    part.get_by_role("button", name="Add the group").click()
    line = part.locator("tbody tr", has_text=name)
    expect(line).to_be_visible()
    line.get_by_role("button", name="Members").click()
    box = part.get_by_role("group", name=f"Members of {name}").get_by_role("checkbox").first
    box.check()
    check(page)
    part.get_by_role("button", name="Save the members").click()
    expect(line.locator("td").nth(1)).not_to_have_text("")
    made = [it for it in server.call("GET", "/groups") if it["name"] == name]
    assert len(made[0]["members"]) == 1
    line.get_by_role("button", name="Delete", exact=True).click()
    part.get_by_role("button", name=f"Delete the group {name}").click()
    expect(line).to_have_count(0)


def test_a_group_that_a_table_names_stays_and_the_table_is_named(server, page):
    server.call("POST", "/groups", {"name": "Named by a table"})
    columns = [{"name": "name", "data_type": "string"}]
    access = {"read": ["Named by a table"]}
    server.call("PUT", "/tables/kept_table", {"semantic_category": "curated", "columns": columns, "access": access})
    show(page, "/#/admin")
    part = section(page, "Groups")
    line = part.locator("tbody tr", has_text="Named by a table")
    line.get_by_role("button", name="Delete", exact=True).click()
    part.get_by_role("button", name="Delete the group Named by a table").click()
    expect(part.get_by_role("alert")).to_contain_text("kept_table")
    expect(line).to_be_visible()


def test_a_colleague_is_invited_signs_in_once_and_has_the_role(server, page, browser):
    email = f"{uuid.uuid4().hex[:8]}@example.org"
    show(page, "/#/admin")
    part = section(page, "Invitations")
    part.get_by_text("Invite a colleague").click()
    part.get_by_label("E-mail").fill(email)
    part.get_by_label("Role").select_option("viewer")
    part.get_by_role("button", name="Make the invitation").click()
    link = part.locator("code.secret").inner_text()
    assert "#token=" in link
    check(page)
    part.get_by_role("button", name="I have it").click()
    expect(part.locator("tbody tr", has_text=email)).to_contain_text("viewer")
    expect(part.locator("code.secret")).to_have_count(0)
    context = browser.new_context(locale="en-US", base_url=server.url)
    guest = context.new_page()
    guest.goto(f"/{link[link.index('#') :]}")
    expect(guest.locator("nav")).to_be_visible()
    guest.goto("/#/tables")
    expect(guest.get_by_role("heading", name="Tables", exact=True)).to_be_visible()
    expect(guest.get_by_text("Define a table")).to_have_count(0)
    context.close()
    page.reload()
    expect(section(page, "Users").locator("tbody tr", has_text=email)).to_be_visible()
    expect(section(page, "Invitations")).not_to_contain_text(email)


def test_why_an_invitation_was_not_sent_is_shown_beside_its_link(page):
    made = {"id": "1", "email": "ada@example.org", "role": "member", "groups": [], "url": "http://localhost/#token=t"}
    reason = "the mail server refused the e-mail"

    def invite(route) -> None:
        if route.request.method == "POST":
            route.fulfill(json=made | {"email_sent": reason == "", "email_error": reason or None})
        else:
            route.continue_()

    page.route("**/api/v1/invitations", invite)
    show(page, "/#/admin")
    part = section(page, "Invitations")
    part.get_by_text("Invite a colleague").click()
    part.get_by_label("E-mail").fill("ada@example.org")
    part.get_by_role("button", name="Make the invitation").click()
    expect(part.get_by_role("alert")).to_have_text(f"No e-mail was sent: {reason}.")
    expect(part.locator("code.secret")).to_have_text(made["url"])
    check(page)
    reason = ""
    page.set_viewport_size({"width": 1280, "height": 900})
    part.get_by_role("button", name="Make the invitation").click()
    expect(part).to_contain_text("An e-mail with this link is on its way to ada@example.org.")
    expect(part.get_by_role("alert")).to_have_count(0)


def test_an_invitation_is_withdrawn(server, page):
    email = f"{uuid.uuid4().hex[:8]}@example.org"
    server.call("POST", "/invitations", {"email": email, "role": "member"})
    show(page, "/#/admin")
    part = section(page, "Invitations")
    line = part.locator("tbody tr", has_text=email)
    line.get_by_role("button", name="Withdraw", exact=True).click()
    part.get_by_role("button", name=f"Withdraw the invitation of {email}").click()
    expect(line).to_have_count(0)
    assert email not in [it["email"] for it in server.call("GET", "/invitations")]


def test_a_webhook_is_added_tested_disabled_and_deleted(server, page):
    # The address is one that no name server knows: the delivery is tried, and its failure is shown.
    address = f"https://{uuid.uuid4().hex[:8]}.invalid/hook"
    show(page, "/#/admin")
    part = section(page, "Webhooks")
    part.get_by_text("New webhook").click()
    part.get_by_label("Address").fill(address)
    part.get_by_label("Events").fill("file.confirmed, job_execution.failed")
    part.get_by_role("button", name="Add the webhook").click()
    expect(part.locator("code.secret")).to_have_text(re.compile("^whsec_"))
    part.get_by_role("button", name="I have it").click()
    line = part.get_by_role("region").locator("tbody tr", has_text=address)
    expect(line).to_contain_text("file.confirmed, job_execution.failed")
    line.get_by_role("button", name="Test").click()
    sent = part.get_by_role("region", name="Deliveries")
    expect(sent.locator("tbody tr")).to_have_count(1)
    check(page)
    show(page, "/#/admin")
    line.get_by_role("button", name="Deliveries").click()
    sent.get_by_role("button", name="Send again").first.click()
    expect(sent.locator("tbody tr").first).to_be_visible()
    line.get_by_role("button", name="Disable").click()
    expect(line).to_contain_text("disabled")
    line.get_by_role("button", name="New secret").click()
    line.get_by_role("button", name="Make a new secret").click()
    expect(part.locator("code.secret")).to_have_text(re.compile("^whsec_"))
    line.get_by_role("button", name="Delete", exact=True).click()
    line.get_by_role("button", name=f"Delete the webhook to {address}").click()
    expect(line).to_have_count(0)


def test_why_a_delivery_failed_is_shown_at_it(server, page):
    hook = server.call("POST", "/webhooks", {"url": "http://127.0.0.1/hook", "events": ["*"]})
    server.call("POST", f"/webhooks/{hook['id']}/test")
    show(page, "/#/admin")
    part = section(page, "Webhooks")
    line = part.get_by_role("region", name="Webhooks").locator("tbody tr", has_text="127.0.0.1")
    sent = part.get_by_role("region", name="Deliveries")

    def told() -> bool:
        line.get_by_role("button", name="Deliveries").click()
        expect(sent.locator("tbody tr")).to_have_count(1)
        return "not permitted" in sent.inner_text()

    wait_for(page, told)
    server.call("DELETE", f"/webhooks/{hook['id']}")


def test_a_table_comes_back_from_the_trash_and_another_is_purged(server, page):
    columns = [{"name": "name", "data_type": "string"}]
    for name in ("thrown_away", "gone_for_good"):
        server.call("PUT", f"/tables/{name}", {"semantic_category": "curated", "columns": columns})
        server.call("POST", "/data/write", {"tables": [{"table": name, "rows": [{"name": "x"}]}]})
        server.call("DELETE", f"/tables/{name}?force=true")
    show(page, "/#/trash")
    line = page.locator("tbody tr", has_text="thrown_away")
    expect(line).to_contain_text("table")
    check(page)
    show(page, "/#/trash")
    line.get_by_role("button", name="Restore").click()
    expect(line).to_have_count(0)
    read = {"target_name": "thrown_away", "target_type": "table"}
    assert server.call("POST", "/tools/read", read)[0]["name"] == "x"
    other = page.locator("tbody tr", has_text="gone_for_good")
    other.get_by_role("button", name="Purge", exact=True).click()
    page.get_by_role("button", name="Purge gone_for_good for good").click()
    expect(other).to_have_count(0)
    assert "gone_for_good" not in [it["name"] for it in server.call("GET", "/trash")]
