"""A real server for the tests: `LABDATA_BIN` names its program."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import uuid
from pathlib import Path

import httpx
import pytest
from proxy import Proxy

import labdata_client as labdata

KEY = "ldk_abcdefgh_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
START_SECONDS = 180


class Server:
    """`labdata serve` with a data directory and an embedded PostgreSQL."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = os.environ.get("LABDATA_BIN")
        if not program:
            pytest.fail("LABDATA_BIN is not set: it names the labdata program, such as target/debug/labdata")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LABDATA_")}
        environment.pop("DATABASE_URL", None)
        environment.update(
            LABDATA_BIND=f"127.0.0.1:{self.port}",
            LABDATA_DATA_DIR=str(self.directory / "data"),
            LABDATA_BOOTSTRAP_KEY=KEY,
            LABDATA_JOB_ISOLATION="none",
            LABDATA_WEBHOOK_ALLOW="127.0.0.0/8",
            LABDATA_SQL_BIND="127.0.0.1:0",
            LABDATA_SQL_SHARED="true",
        )
        with (self.directory / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [os.path.abspath(program), "serve"],
                env=environment,
                cwd=self.directory,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                pytest.fail("the server did not start:\n" + (self.directory / "server.log").read_text())
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", trust_env=False).is_success
        except httpx.TransportError:
            return False

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(60)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def own_server(tmp_path):
    """A server for a test that kills it."""
    server = Server(tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith("LABDATA_") and name != "LABDATA_BIN":
            monkeypatch.delenv(name)


@pytest.fixture
def lab(server):
    with labdata.connect(server.url, KEY) as lab:
        yield lab


@pytest.fixture
def tables(lab):
    return define_tables(lab)


class Tables:
    """Names of tables that only one test uses."""

    def __init__(self) -> None:
        suffix = uuid.uuid4().hex[:8]
        self.sample = f"sample_{suffix}"
        self.reading = f"reading_{suffix}"
        self.curve = f"curve_{suffix}"


def define_tables(lab) -> Tables:
    names = Tables()
    lab.define_table(
        names.sample,
        [
            {"name": "name", "data_type": "string", "is_nullable": False, "is_unique": True},
            {"name": "strain", "data_type": "string"},
            {"name": "parent", "data_type": "string", "references": names.sample},
        ],
    )
    lab.define_table(
        names.reading,
        [
            {"name": "sample", "data_type": "string", "references": names.sample},
            {"name": "number", "data_type": "integer"},
            {"name": "value", "data_type": "float"},
            {"name": "valid", "data_type": "boolean"},
            {"name": "taken_at", "data_type": "datetime"},
            {"name": "day", "data_type": "date"},
            {"name": "settings", "data_type": "json"},
            {"name": "note", "data_type": "text"},
        ],
    )
    lab.define_table(
        names.curve,
        [
            {"name": "sample", "data_type": "string", "references": names.sample},
            {"name": "order", "data_type": "integer"},
            {"name": "hours", "data_type": "float"},
            {"name": "od600", "data_type": "float"},
        ],
        semantic_category="raw",
    )
    return names


@pytest.fixture
def proxy(server):
    proxy = Proxy(server.url)
    yield proxy
    proxy.close()


@pytest.fixture
def shaky(proxy):
    with labdata.connect(proxy.url, KEY) as lab:
        yield lab
