"""A real server, started by the tests and filled with records of each kind."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

import httpx

KEY = "ldk_abcdefgh_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
START_SECONDS = 180


class Server:
    """`labdata serve` with a data directory and an embedded PostgreSQL.

    Without `worker` no run and no training starts, and no webhook is sent. Variables are settings of the server.
    """

    def __init__(self, directory: Path, *, worker: bool = False, **variables: str) -> None:
        self.directory = directory
        self.options = [] if worker else ["--no-worker"]
        self.variables = variables
        self.log = directory / "server.log"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Server:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LABDATA_")}
        environment.pop("DATABASE_URL", None)
        environment.update(
            LABDATA_BIND=f"127.0.0.1:{self.port}",
            LABDATA_DATA_DIR=str(self.directory / "data"),
            LABDATA_BOOTSTRAP_KEY=KEY,
            **self.variables,
        )
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [os.environ["LABDATA_BIN"], "serve", *self.options],
                env=environment,
                cwd=self.directory,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise RuntimeError("the server did not start:\n" + self.log.read_text())
            time.sleep(0.1)
        return self

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", trust_env=False).is_success
        except httpx.TransportError:
            return False

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(60)


def seed(url: str) -> None:
    """Create tables with rows, and at least one record of each kind."""
    with httpx.Client(base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {KEY}"}, trust_env=False) as http:

        def call(method: str, path: str, **request: object) -> dict:
            answer = http.request(method, path, **request)
            assert answer.is_success, f"{method} {path}: {answer.text}"
            return answer.json() if answer.content else {}

        def define(name: str, category: str, *columns: dict) -> None:
            call("PUT", f"/tables/{name}", json={"semantic_category": category, "columns": columns})

        name = {"name": "name", "data_type": "string", "is_nullable": False, "is_unique": True}
        define("strain", "curated", name)
        define(
            "sample",
            "curated",
            name,
            {"name": "strain", "data_type": "string", "references": "strain"},
            {"name": "volume", "data_type": "float"},
        )
        define(
            "growth_curve",
            "raw",
            {"name": "sample", "data_type": "string", "references": "sample"},
            {"name": "time", "data_type": "float"},
            {"name": "od600", "data_type": "float"},
        )
        measurements = ("alcohol", "color", "hue")
        define(
            "wine",
            "curated",
            *({"name": column, "data_type": "float"} for column in measurements),
            {"name": "cultivar", "data_type": "string"},
        )
        wines = [
            {"alcohol": 11 + number / 4, "color": 2.0 + number, "hue": 1.05, "cultivar": f"cultivar {number % 3}"}
            for number in range(12)
        ]
        strains = {"table": "strain", "rows": [{"name": "BY4741"}, {"name": "W303"}]}
        call("POST", "/data/write", json={"job_name": "Strains", "tables": [strains]})
        samples = {"table": "sample", "rows": [{"_ref": "a1", "name": "A1", "strain": {"name": "BY4741"}}]}
        curve = {"table": "growth_curve", "parent": "@a1", "columns": {"time": [0.0, 600.0], "od600": [0.08, 0.09]}}
        tables = [samples, {"table": "wine", "rows": wines}]
        call("POST", "/data/write", json={"job_name": "Plate import", "tables": tables, "series": [curve]})
        call("POST", "/job-executions", json={"job_name": "Plate import"})
        instrument = call("POST", "/instruments", json={"name": "Reader 1", "instrument_type": "plate_reader"})
        call(
            "POST",
            "/files",
            data={"instrument_id": instrument["id"], "file_name": "plate-12.txt"},
            files={"file": ("plate-12.txt", b"A1\t0.08\n", "text/plain")},
        )
        job = call("POST", "/jobs", json={"name": "Parse plates", "code": "print('parsed')\n"})
        call("POST", f"/jobs/{job['id']}/run", json={})
        query = f"select {', '.join(measurements)}, cultivar from wine"
        call("POST", "/datasets", json={"name": "Wine", "query": query})
        call("POST", "/notifications", json={"title": "Plate 12 is parsed", "body": "96 samples", "dedupe_key": "1"})
        call("POST", "/users", json={"email": "ada@lab.example", "name": "Ada Lovelace"})
        call("POST", "/api-keys", json={"name": "Plate reader", "scopes": ["read"]})
