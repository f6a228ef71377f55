"""A server, a browser, and pages that fail the test on any violation of their policy.

`LABDATA_BIN` names the server's program, `AGENT_STUB_BIN` that of the agent's stub, `CHROMIUM_BIN` the browser's.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
import urllib.error
import urllib.request
import uuid
import zlib
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect, sync_playwright

KEY = "ldk_abcdefgh_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
START_SECONDS = 180

# Runs, or makes other text bold, if any page ever reads it as markup.
HOSTILE = "<img src=x onerror=alert(1)><b>bold</b>"

# Machines of CI are shared: what takes a second here may take many there.
expect.set_options(timeout=30_000)

# What a page must not do, told to the test by the page itself.
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""


class Model:
    """The agent's stub in place of a language model. It calls the tool that a question names: `call:TOOL {…}`."""

    def __init__(self) -> None:
        program = os.path.abspath(os.environ["AGENT_STUB_BIN"])
        self.process = subprocess.Popen([program, "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        printed = ""
        while not (found := re.search(r"LABDATA_LLM_BASE_URL=(\S+)", printed)):
            line = self.process.stdout.readline()
            assert line, f"the stub did not start: {printed}"
            printed += line
        self.settings = {
            "LABDATA_LLM_PROVIDER": "openai",
            "LABDATA_LLM_BASE_URL": found[1],
            "LABDATA_LLM_API_KEY": "stub",
            "LABDATA_LLM_MODEL": "stub",
        }

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)
        self.process.stdout.close()


class Server:
    """`labdata serve` with a data directory and an embedded PostgreSQL."""

    def __init__(self, directory: Path, settings: dict[str, str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LABDATA_")}
        environment.pop("DATABASE_URL", None)
        environment.update(
            LABDATA_BIND=f"127.0.0.1:{port}",
            LABDATA_DATA_DIR=str(directory / "data"),
            LABDATA_BOOTSTRAP_KEY=KEY,
            LABDATA_JOB_ISOLATION="none",
            **settings,
        )
        self.log = directory / "server.log"
        self.program = os.path.abspath(os.environ["LABDATA_BIN"])
        self.surroundings = {"env": environment, "cwd": directory}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([self.program, "serve"], **self.surroundings, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                pytest.fail("the server did not start:\n" + self.log.read_text())
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz") as response:
                return response.status == 200
        except OSError:
            return False

    def call(self, method: str, path: str, body: object = None):
        """The body of an answer of the API."""
        request = urllib.request.Request(
            f"{self.url}/api/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request) as response:
                text = response.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()[:2000]}") from None
        return json.loads(text) if text else None

    def upload(self, name: str, content: bytes, instrument: str) -> str:
        """Uploads a file of an instrument; its id."""
        mark = uuid.uuid4().hex
        head = (
            f'--{mark}\r\nContent-Disposition: form-data; name="instrument_id"\r\n\r\n{instrument}\r\n'
            f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        )
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": f"multipart/form-data; boundary={mark}"}
        body = head.encode() + content + f"\r\n--{mark}--\r\n".encode()
        request = urllib.request.Request(f"{self.url}/api/v1/files", body, headers, method="POST")
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read())["file_id"]

    def key_of(self, organization: str, scopes: str = "read,write") -> str:
        """A key of an organization, which is made where it is missing."""
        arguments = ["--organization", organization, "--user", f"{organization}@example.com", "--scopes", scopes]
        return json.loads(self.command("api-key", "create", "--json", *arguments))["key"]

    def sign_in_link(self) -> str:
        """A new link that signs the administrator in."""
        return self.command("sign-in").strip()

    def command(self, *arguments: str) -> str:
        """What a command of the program prints, beside the server."""
        command = [self.program, *arguments]
        done = subprocess.run(command, **self.surroundings, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


@pytest.fixture(scope="session")
def model():
    model = Model()
    yield model
    model.stop()


@pytest.fixture(scope="session")
def server(model, tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"), model.settings)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        # Without a sandbox of its own, as tests may run as root.
        browser = playwright.chromium.launch(executable_path=os.environ["CHROMIUM_BIN"], args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def session(server, browser):
    """The cookie of a session, signed in by a pasted key."""
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    page.goto(server.url)
    page.fill("#key", KEY)
    page.click("text=Sign in")
    page.wait_for_selector("nav")
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def page(server, browser, session):
    """A page, signed in. The test fails if a script fails, a dialog opens or the policy is violated."""
    context = browser.new_context(
        locale="en-US", base_url=server.url, storage_state=session, viewport={"width": 1280, "height": 900}
    )
    page = context.new_page()
    page.set_default_timeout(30_000)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(f"script: {error}"))
    page.on("dialog", lambda dialog: (problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.add_init_script(WATCH)
    yield page
    problems += page.evaluate("window.violations ?? []")
    context.close()
    assert problems == []


@pytest.fixture(scope="session")
def tables(server):
    """Strains, and wells that refer to them."""
    strain = [{"name": "name", "data_type": "string", "is_unique": True, "is_nullable": False}]
    server.call("PUT", "/tables/strain", {"semantic_category": "curated", "columns": strain, "description": HOSTILE})
    well = [
        {"name": "name", "data_type": "string", "is_nullable": False},
        {"name": "strain", "data_type": "string", "references": "strain"},
        {"name": "volume", "data_type": "float"},
        {"name": "is_blank", "data_type": "boolean"},
        {"name": "note", "data_type": "text"},
    ]
    server.call("PUT", "/tables/well", {"semantic_category": "curated", "columns": well})
    write = [
        {"table": "strain", "rows": [{"name": "BY4741"}, {"name": "W303"}, {"name": HOSTILE}]},
        {"table": "well", "rows": [{"name": f"A{n}", "strain": {"name": "W303"}, "volume": n} for n in range(1, 13)]},
    ]
    server.call("POST", "/data/write", {"tables": write[:1]})
    server.call("POST", "/data/write", {"tables": write[1:]})


@pytest.fixture(scope="session")
def three_plates(server):
    """Three plates of 6 wells: two strains, a blank on each, and a curve below zero."""
    name = {"name": "name", "data_type": "string", "is_unique": True, "is_nullable": False}
    server.call("PUT", "/tables/assay_plate", {"semantic_category": "curated", "columns": [name]})
    columns = [
        name,
        {"name": "plate", "data_type": "string", "references": "assay_plate"},
        {"name": "well", "data_type": "string"},
        {"name": "dose", "data_type": "float", "unit": "mmol/L"},
        {"name": "is_blank", "data_type": "boolean"},
    ]
    server.call("PUT", "/tables/assay", {"semantic_category": "curated", "columns": columns})
    owner = {"name": "assay", "data_type": "string", "references": "assay", "is_nullable": False}
    signal = [owner, {"name": "time", "data_type": "float", "unit": "s"}, {"name": "signal", "data_type": "float"}]
    server.call("PUT", "/tables/assay_curve", {"semantic_category": "raw", "columns": signal})
    plates = [f"Plate {n}" for n in (1, 2, 10)]
    server.call("POST", "/data/write", {"tables": [{"table": "assay_plate", "rows": [{"name": it} for it in plates]}]})
    rows = [
        {"name": f"{plate} {well}", "plate": {"name": plate}, "well": well, "dose": dose, "is_blank": well == "B3"}
        for plate in plates
        for well, dose in zip(["A1", "A2", "A3", "B1", "B2", "B3"], [10, 1, 0, 10, 1, None], strict=True)
    ]
    ids = server.call("POST", "/data/write", {"tables": [{"table": "assay", "rows": rows}]})["tables"][0]["ids"]
    series = [
        {"table": "assay_curve", "parent": id, "columns": {"time": [0, 10, 20], "signal": signal_of(row, n)}}
        for n, (id, row) in enumerate(zip(ids, rows, strict=True))
    ]
    server.call("POST", "/data/write", {"series": series})
    return plates


def signal_of(row: dict, number: int) -> list[float]:
    if row["is_blank"]:
        return [0.5, 0.5, -0.5]
    return [1, 2, 3 + row["dose"] + (number % 6) / 10]


def png(width: int, height: int, color: tuple[int, int, int]) -> bytes:
    """An image of one color."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    lines = (b"\0" + bytes(color) * width) * height
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")]
    framed = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


def wait_until(page: Page, condition: str) -> None:
    """Waits until an expression holds in the page.

    Playwright's own `wait_for_function` asks again by `eval` in the page, which the pages' policy
    refuses: it would succeed only where the condition holds at once.
    """
    deadline = time.monotonic() + 30
    while not page.evaluate(condition):
        assert time.monotonic() < deadline, f"{condition} never held"
        page.wait_for_timeout(50)


def wait_until_counted(server, page: Page, name: str, count: int) -> None:
    """Waits until PostgreSQL's statistics have that number of rows of a table."""
    for _ in range(300):
        found = next(it for it in server.call("GET", "/tools/schema") if it["name"] == name)
        if found["row_count_estimate"] == count:
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"{name} has {found['row_count_estimate']} rows")


def check_fits_a_phone(page: Page) -> None:
    """Nothing of the page is wider than a phone."""
    page.set_viewport_size({"width": 390, "height": 800})
    # The page learns of its new size a moment later.
    wait_until(page, "document.documentElement.scrollWidth <= 390")


def check_accessible(page: Page) -> None:
    """Runs axe over the page as it is, light and dark."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]})
        assert found.violations_count == 0, f"{scheme}: {found.generate_report()}"
    page.emulate_media(color_scheme="light")
