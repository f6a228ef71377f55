"""Run directories, datasets, a server of signed URLs and a client of the prediction protocol."""

from __future__ import annotations

import atexit
import functools
import http.server
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

TRAINER = Path(__file__).resolve().parent.parent
TABULAR = TRAINER / "tabular.py"
SCRATCH = Path(tempfile.mkdtemp(prefix="labdata-trainer-test-"))
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)


def manifest(**changes: Any) -> dict[str, Any]:
    """Returns a valid manifest of a tabular training."""
    return {
        "training_id": "t1",
        "attempt": 1,
        "task_type": "tabular",
        "quality_preset": "medium_quality",
        "problem_type": "multiclass",
        "target_column": "target",
        "feature_columns": None,
        "image_columns": None,
        "seed": 42,
        # Enough on a busy machine: a limit that cuts models off would change the results.
        "time_limit_seconds": 600,
        "cpus": 1,
        "memory_bytes": 8 * 1024**3,
        "gpus": 0,
        "inputs": {"dataset": "data.parquet", "images": {}},
        "outputs": None,
        **changes,
    }


def run_directory(table: pa.Table | None, **changes: Any) -> Path:
    """Creates a run directory with a dataset and a manifest."""
    directory = Path(tempfile.mkdtemp(dir=SCRATCH))
    if table is not None:
        pq.write_table(table, directory / "data.parquet")
    (directory / "manifest.json").write_text(json.dumps(manifest(**changes)))
    return directory


@dataclass(frozen=True)
class Outcome:
    """Files and exit code of a training."""

    directory: Path
    code: int
    log: str

    def file(self, name: str) -> Any:
        """Returns a JSON file; none if it does not exist."""
        path = self.directory / name
        return json.loads(path.read_text()) if path.exists() else None

    @property
    def result(self) -> Any:
        """Content of `result.json`."""
        return self.file("result.json")

    @property
    def error(self) -> Any:
        """Content of `error.json`."""
        return self.file("error.json")

    @property
    def events(self) -> list[dict[str, Any]]:
        """Events in their order."""
        lines = (self.directory / "events.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


def start(
    command: str, directory: Path, script: Path = TABULAR, **options: Any
) -> subprocess.Popen:
    """Starts the trainer or a predictor in an empty environment, as the sandbox does."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "TMPDIR": str(directory)}
    environment.update(options.pop("environment", {}))
    return subprocess.Popen(
        [sys.executable, str(script), command, str(directory)],
        env=environment,
        cwd="/",
        **options,
    )


def train(table: pa.Table | None, script: Path = TABULAR, **changes: Any) -> Outcome:
    """Runs a training to its end."""
    directory = run_directory(table, **changes)
    process = start(
        "train",
        directory,
        script,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    log, _ = process.communicate(timeout=300)
    return Outcome(directory, process.returncode, log)


def wine_table() -> pa.Table:
    """Returns scikit-learn's wine data, with the class as a text."""
    from sklearn.datasets import load_wine

    frame = load_wine(as_frame=True).frame
    frame["target"] = frame["target"].map({0: "barolo", 1: "grignolino", 2: "barbera"})
    return pa.Table.from_pandas(frame, preserve_index=False)


def diabetes_table() -> pa.Table:
    """Returns scikit-learn's diabetes data."""
    from sklearn.datasets import load_diabetes

    return pa.Table.from_pandas(load_diabetes(as_frame=True).frame, preserve_index=False)


@functools.cache
def wine() -> Outcome:
    """Trains on wine, once for all tests."""
    return train(wine_table())


@functools.cache
def diabetes() -> Outcome:
    """Trains on diabetes, once for all tests."""
    return train(diabetes_table(), problem_type="regression")


class Client:
    """Client of one predictor process."""

    def __init__(self, artifact: Path, script: Path = TABULAR, **order: Any) -> None:
        self.directory = Path(tempfile.mkdtemp(dir=SCRATCH))
        order = {"artifact": str(artifact), "cpus": 1, **order}
        (self.directory / "manifest.json").write_text(json.dumps(order))
        self.log = (self.directory / "log").open("wb")
        self.process = start(
            "predict",
            self.directory,
            script,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
        )
        self.first = self.receive()

    def send(self, message: Any) -> None:
        """Sends a request without waiting for its answer."""
        self.send_bytes(frame(json.dumps(message).encode()))

    def send_bytes(self, data: bytes) -> None:
        """Sends raw bytes."""
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self) -> Any:
        """Receives a message; none at the end of the output."""
        body = self.receive_bytes()
        return json.loads(body) if body else None

    def receive_bytes(self) -> bytes:
        """Receives the JSON of a message; nothing at the end of the output."""
        header = self.process.stdout.read(4)
        return self.process.stdout.read(struct.unpack(">I", header)[0]) if header else b""

    def ask(self, columns: dict[str, list[Any]], request: Any = 1) -> Any:
        """Sends a request and receives its answer."""
        self.send({"id": request, "columns": columns})
        return self.receive()

    def close(self) -> int:
        """Ends the input, and returns the exit code."""
        self.process.stdin.close()
        code = self.process.wait(timeout=30)
        self.process.stdout.close()
        self.log.close()
        return code


def frame(body: bytes) -> bytes:
    """Returns a frame of the protocol."""
    return struct.pack(">I", len(body)) + body


def rows(table: pa.Table, count: int) -> dict[str, list[Any]]:
    """Returns the first rows without the target, as columns of a request."""
    data: pd.DataFrame = table.to_pandas().drop(columns=["target"]).head(count)
    return {name: data[name].tolist() for name in data}


class Refused(Exception):
    """Makes a server answer with a status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass
class FileServer:
    """HTTP server with files to GET, and a record of PUTs and POSTs. `statuses` are answered first."""

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    stored: dict[str, tuple[bytes, dict[str, str]]] = field(default_factory=dict)
    posted: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    answers: dict[str, Callable[[Any], Any]] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextmanager
def file_server() -> Iterator[FileServer]:
    """Runs a server on a free port of this machine."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self, status: int, body: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def is_refused(self) -> bool:
            state.requests.append(f"{self.command} {self.path}")
            if not state.statuses:
                return False
            status = state.statuses.pop(0)
            if status == 0:
                # Announces more than it sends.
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.close_connection = True
            else:
                self.answer(status)
            return True

        def do_GET(self) -> None:
            if not self.is_refused():
                body = state.files.get(self.path.split("?")[0])
                self.answer(404 if body is None else 200, body or b"")

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if not self.is_refused():
                state.stored[self.path.split("?")[0]] = (
                    body,
                    {name.lower(): value for name, value in self.headers.items()},
                )
                self.answer(200)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not self.is_refused():
                headers = {name.lower(): value for name, value in self.headers.items()}
                state.posted.append((self.path, headers, body))
                try:
                    answer = state.answers.get(self.path, lambda _: {})(body)
                except Refused as refused:
                    self.answer(refused.status)
                else:
                    self.answer(200, json.dumps(answer).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state = FileServer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
