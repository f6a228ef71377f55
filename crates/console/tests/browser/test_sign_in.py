"""Sign-in with an OpenID provider: a certified one, in a real browser."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from conftest import WATCH, Server, check_accessible

PROVIDER = Path(__file__).parent / "oidc-provider"


def cannot(reason: str) -> None:
    """Skips the tests, but under `CHROMIUM=required` fails them: CI has what they need."""
    if os.environ.get("CHROMIUM") == "required":
        pytest.fail(reason)
    pytest.skip(f"NOT CHECKED: {reason}")


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> Path:
    """A directory with the provider and its packages, as the lock file pins them."""
    if not (shutil.which("node") and shutil.which("npm")):
        cannot("sign-in needs node and npm, and one is missing")
    directory = tmp_path_factory.mktemp("provider")
    for file in PROVIDER.iterdir():
        shutil.copy(file, directory)
    install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]
    done = subprocess.run(install, cwd=directory, capture_output=True, text=True)
    if done.returncode != 0:
        cannot(f"npm cannot install the OpenID provider: {done.stderr[-500:]}")
    return directory


@pytest.fixture(scope="module")
def lab(packages, tmp_path_factory):
    """A server whose people sign in with the provider."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "LABDATA_OIDC_ISSUER": f"http://127.0.0.1:{port}",
        "LABDATA_OIDC_CLIENT_ID": "labdata",
        "LABDATA_OIDC_CLIENT_SECRET": "a secret of the test",
        "LABDATA_OIDC_SCOPES": "openid email profile groups",
        "LABDATA_OIDC_ROLES": "lab=member,guests=viewer",
        "LABDATA_OIDC_CREATE_USERS": "example.org",
    }
    server = Server(tmp_path_factory.mktemp("server"), settings)
    command = ["node", "provider.mjs", str(port), f"{server.url}/api/v1/session/oidc/callback"]
    with (packages / "provider.log").open("w") as log:
        provider = subprocess.Popen(command, cwd=packages, stdout=subprocess.PIPE, stderr=log, text=True)
    line = provider.stdout.readline()
    assert "listening" in line, (packages / "provider.log").read_text()
    yield server
    provider.terminate()
    provider.wait(60)
    provider.stdout.close()
    server.stop()


@pytest.fixture
def visitor(lab, browser):
    """A page of a browser that nobody has signed in with."""
    context = browser.new_context(locale="en-US", base_url=lab.url)
    page = context.new_page()
    page.set_default_timeout(30_000)
    page.add_init_script(WATCH)
    yield page
    assert page.evaluate("window.violations ?? []") == []
    context.close()


def sign_in(page: Page, name: str) -> None:
    """Goes from the sign-in page to the provider, and back with its consent."""
    page.get_by_role("link", name="Sign in with your institute").click()
    page.fill("input[name=login]", name)
    page.fill("input[name=password]", "any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def status(page: Page, method: str, path: str, body: str | None = None) -> int:
    """The status of a request that the page sends in the name of its session."""
    script = """async ([method, path, body]) =>
      (await fetch(path, { method, body, headers: { "Content-Type": "application/json" } })).status"""
    return page.evaluate(script, [method, path, body])


def roles(lab: Server) -> dict[str, str]:
    return {user["email"]: user["role"] for user in lab.call("GET", "/users")}


def test_a_member_signs_in_returns_to_the_page_and_signs_out(lab, visitor):
    visitor.goto("/#/tables")
    expect(visitor.get_by_role("link", name="Sign in with your institute")).to_be_focused()
    expect(visitor.locator("button.primary")).to_have_count(0)
    check_accessible(visitor)
    sign_in(visitor, "mia")
    visitor.wait_for_selector("nav")
    assert visitor.url == f"{lab.url}/#/tables"
    expect(visitor.locator(".who")).to_contain_text("Mia")
    assert roles(lab)["mia@example.org"] == "member"
    assert status(visitor, "POST", "/api/v1/instruments", '{"name": "Reader"}') == 403
    names = {cookie["name"] for cookie in visitor.context.cookies(lab.url)}
    assert "labdata-session" in names and "labdata-sign-in" not in names
    visitor.get_by_role("button", name="Sign out").click()
    expect(visitor.locator("#key")).to_be_visible()
    assert status(visitor, "GET", "/api/v1/me") == 401


def test_a_viewer_reads_and_does_not_write(lab, visitor):
    visitor.goto("/")
    sign_in(visitor, "vera")
    visitor.wait_for_selector("nav")
    assert roles(lab)["vera@example.org"] == "viewer"
    assert status(visitor, "GET", "/api/v1/tools/schema") == 200
    assert status(visitor, "POST", "/api/v1/data/write", '{"tables": []}') == 403


@pytest.mark.parametrize(
    ("name", "reason"),
    [("eve", "None of your groups has a role on this platform"), ("una", "that your e-mail address is verified")],
)
def test_a_refused_person_reads_why(lab, visitor, name, reason):
    visitor.goto("/")
    sign_in(visitor, name)
    expect(visitor.get_by_role("heading", name="Not signed in")).to_be_visible()
    expect(visitor.get_by_role("alert")).to_contain_text(reason)
    check_accessible(visitor)
    assert f"{name}@example.org" not in roles(lab)
    visitor.get_by_role("link", name="Sign in with an API key").click()
    expect(visitor.locator("#key")).to_be_visible()


def test_a_person_who_gives_up_at_the_provider_is_not_signed_in(visitor):
    visitor.goto("/")
    visitor.get_by_role("link", name="Sign in with your institute").click()
    visitor.get_by_role("link", name="Cancel").click()
    expect(visitor.get_by_role("alert")).to_contain_text("access_denied")
    assert status(visitor, "GET", "/api/v1/me") == 401


def test_doctor_names_the_provider_and_its_redirect_uri(lab):
    line = next(line for line in lab.command("doctor").splitlines() if "OpenID" in line)
    assert line.startswith("ok"), line
    assert f"{lab.url}/api/v1/session/oidc/callback" in line
