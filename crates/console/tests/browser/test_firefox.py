"""The main pages in Firefox, where there is one: Debian's, driven by WebDriver BiDi over a socket of its own.

Playwright has commands that this Firefox does not know, and its own Firefox cannot be had everywhere.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import time
from itertools import count
from pathlib import Path

import pytest

from conftest import WATCH

SECONDS = 90

# Of other systems' packages some see no profile below /tmp.
PROGRAM = os.environ.get("FIREFOX_BIN") or shutil.which("firefox-esr")


class Firefox:
    """A Firefox without a window, with one page."""

    def __init__(self, directory: Path) -> None:
        log = directory / "firefox.log"
        (directory / "profile").mkdir()
        arguments = [
            "--headless",
            "--no-remote",
            "--profile",
            str(directory / "profile"),
            "--remote-debugging-port",
            "0",
        ]
        environment = os.environ | {"HOME": str(directory), "MOZ_DISABLE_CONTENT_SANDBOX": "1"}
        with log.open("wb") as out:
            self.process = subprocess.Popen([PROGRAM, *arguments], env=environment, stdout=out, stderr=out)
        deadline = time.monotonic() + SECONDS
        while not (port := re.search(r"BiDi listening on ws://[^:]+:(\d+)", log.read_text(errors="replace"))):
            assert self.process.poll() is None and time.monotonic() < deadline, log.read_text(errors="replace")
            time.sleep(0.1)
        self.connection = socket.create_connection(("127.0.0.1", int(port[1])), timeout=SECONDS)
        self.stream = self.connection.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        head = f"GET /session HTTP/1.1\r\nHost: 127.0.0.1:{port[1]}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        self.connection.sendall(f"{head}Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        assert b" 101 " in self.stream.readline()
        while self.stream.readline() != b"\r\n":
            pass
        self.numbers = count(1)
        self.errors: list[str] = []
        self.call("session.new", {"capabilities": {}})
        self.call("session.subscribe", {"events": ["log.entryAdded"]})
        self.call("script.addPreloadScript", {"functionDeclaration": f"() => {{ {WATCH} }}"})
        self.page = self.call("browsingContext.getTree", {})["contexts"][0]["context"]

    def send(self, opcode: int, content: bytes) -> None:
        """Sends a frame, masked as those of clients have to be."""
        mask = os.urandom(4)
        size = len(content)
        length = bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack(">H", size)
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(content))
        self.connection.sendall(bytes([0x80 | opcode]) + length + mask + masked)

    def message(self) -> dict:
        """The next message; its frames are put together, and pings answered."""
        parts = []
        while True:
            first, size = self.stream.read(2)
            if size in (126, 127):
                size = int.from_bytes(self.stream.read(2 if size == 126 else 8), "big")
            content = self.stream.read(size)
            if first & 0x0F == 9:
                self.send(10, content)
                continue
            parts.append(content)
            if first & 0x80:
                return json.loads(b"".join(parts))

    def call(self, method: str, params: dict) -> dict:
        number = next(self.numbers)
        self.send(1, json.dumps({"id": number, "method": method, "params": params}).encode())
        while True:
            found = self.message()
            if found.get("method") == "log.entryAdded" and found["params"]["level"] == "error":
                self.errors.append(found["params"]["text"])
            if found.get("id") == number:
                assert found["type"] == "success", found
                return found["result"]

    def open(self, address: str) -> None:
        self.call("browsingContext.navigate", {"context": self.page, "url": address, "wait": "complete"})

    def evaluate(self, expression: str) -> object:
        target = {"target": {"context": self.page}, "awaitPromise": True}
        result = self.call("script.evaluate", {"expression": f"JSON.stringify({expression})", **target})
        assert result["type"] == "success", result
        return json.loads(result["result"].get("value", "null"))

    def wait(self, expression: str) -> None:
        """Waits until an expression holds in the page."""
        deadline = time.monotonic() + SECONDS
        while not self.evaluate(expression):
            assert time.monotonic() < deadline, (expression, self.evaluate("document.body.innerText"), self.errors)
            time.sleep(0.1)

    def stop(self) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.wait(60)


@pytest.fixture
def firefox(tmp_path):
    if PROGRAM is None:
        pytest.skip("NOT CHECKED: there is no Firefox on this machine (Debian: apt-get install firefox-esr)")
    firefox = Firefox(tmp_path)
    yield firefox
    firefox.stop()


def test_firefox_signs_in_shows_tables_and_draws_plots(server, firefox):
    name = {"name": "name", "data_type": "string", "is_unique": True, "is_nullable": False}
    server.call("PUT", "/tables/fox_well", {"semantic_category": "curated", "columns": [name]})
    owner = {"name": "fox_well", "data_type": "string", "references": "fox_well", "is_nullable": False}
    columns = [owner, {"name": "time", "data_type": "float"}, {"name": "signal", "data_type": "float"}]
    server.call("PUT", "/tables/fox_curve", {"semantic_category": "raw", "columns": columns})
    rows = [{"name": "A1"}, {"name": "A2"}]
    ids = server.call("POST", "/data/write", {"tables": [{"table": "fox_well", "rows": rows}]})["tables"][0]["ids"]
    points = {"time": [0, 1, 2], "signal": [1, 4, 9]}
    series = [{"table": "fox_curve", "parent": id, "columns": points} for id in ids]
    server.call("POST", "/data/write", {"series": series})

    firefox.open(server.url)
    firefox.wait("document.querySelector('#key') !== null")
    firefox.open(server.sign_in_link())
    firefox.wait("document.querySelector('nav') !== null")
    firefox.open(f"{server.url}/#/tables")
    firefox.wait("[...document.querySelectorAll('.picture a')].some((it) => it.textContent.includes('fox_well'))")
    firefox.open(f"{server.url}/#/tables/fox_well")
    firefox.wait("document.querySelectorAll('tbody tr').length === 2")
    for layout in ("overlaid", "as+a+plate"):
        firefox.open(f"{server.url}/#/plates/fox_curve?_all=1&_layout={layout}")
        firefox.wait("document.querySelectorAll('lab-plot .scatterlayer .js-line').length === 2")
    firefox.open(f"{server.url}/#/plates/fox_curve?_all=1&_layout=heat+map")
    firefox.wait("document.querySelectorAll('svg.heat a').length === 2")
    assert firefox.evaluate("window.violations") == []
    assert firefox.errors == []
