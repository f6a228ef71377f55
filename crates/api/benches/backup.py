"""A backup while writes continue: `just bench-backup DIRECTORY [GB]`.

Fills a platform below DIRECTORY with points and files, 10 GB unless said otherwise, which needs about three times as much
disk, then prints what a mixed load measures without a backup and beside one, restores the backup next to it, and
compares the restored points and the checksums of all files with what was stored. `LABDATA_BIN` and `LOAD_BIN` name
the programs.
"""

from __future__ import annotations

import atexit
import hashlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

KEY = "ldk_abcdefgh_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
LABDATA, LOAD = os.path.abspath(os.environ["LABDATA_BIN"]), os.path.abspath(os.environ["LOAD_BIN"])

# Values of one write, the most of a request, each of 8 bytes. The order of points is not sent.
POINTS = 250_000
FILE_BYTES = 100_000_000
# Part of the size that is points of curves; the rest is files.
SHARE_OF_POINTS = 0.4
WRITERS = 3
START_SECONDS = 180
# Duration of the load without a backup, and of the load before the backup begins.
QUIET_SECONDS, LEAD_SECONDS = 60, 5
# Seconds of load for each GB of the backup, and a minute more. `LOAD_SECONDS` sets another duration.
SECONDS_OF_GB = 60
CHECK = (
    "SELECT count(*), round(sum(value)::numeric, 3)::text FROM backup_curve c"
    " JOIN backup_sample s ON s.id = c.sample_id WHERE s.name = %s"
)


class Server:
    """`labdata serve` on a data directory, with an embedded PostgreSQL."""

    def __init__(self, data: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("LABDATA_")}
        self.environment.pop("DATABASE_URL", None)
        self.environment.update(
            LABDATA_BIND=f"127.0.0.1:{self.port}",
            LABDATA_DATA_DIR=str(data),
            LABDATA_BOOTSTRAP_KEY=KEY,
            LABDATA_JOB_ISOLATION="none",
            LABDATA_NOTIFICATIONS_PER_HOUR="1000000",
            LABDATA_NOTIFICATIONS_PER_DAY="1000000",
            LABDATA_LOG="warn",
        )
        self.process = subprocess.Popen([LABDATA, "serve"], env=self.environment, stdout=subprocess.DEVNULL)
        atexit.register(self.process.terminate)
        deadline = time.monotonic() + START_SECONDS
        while not self.is_ready():
            assert self.process.poll() is None and time.monotonic() < deadline, "the server did not start"
            time.sleep(0.1)

    def is_ready(self) -> bool:
        try:
            return self.request("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def request(self, method: str, path: str, body: object = None, headers: dict | None = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content

    def call(self, method: str, path: str, body: object = None):
        """The body of an answer of the API."""
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        status, content = self.request(method, f"/api/v1{path}", text, headers)
        assert status in (200, 204), f"{method} {path}: {status} {content[:2000]!r}"
        return json.loads(content) if content else None

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(120)


def points_of(server: Server, curve: int) -> object:
    """Number and sum of a curve's points."""
    return server.call("POST", "/tools/query", {"query": CHECK, "params": [f"S{curve}"]})["data"]


def fill(server: Server, size: float) -> tuple[int, dict[str, str]]:
    """Stores curves and files; the number of curves, and the SHA-256 of each file by its id."""
    columns = [{"name": "name", "data_type": "string", "is_unique": True}]
    server.call("PUT", "/tables/backup_sample", {"semantic_category": "curated", "columns": columns})
    columns = [
        {"name": "sample", "data_type": "string", "references": "backup_sample"},
        {"name": "value", "data_type": "float"},
    ]
    server.call("PUT", "/tables/backup_curve", {"semantic_category": "raw", "columns": columns})
    instrument = server.call("POST", "/instruments", {"name": "Backup"})["id"]
    generator = random.Random(1)
    bodies = [",".join(f"{generator.random():.12f}" for _ in range(POINTS)) for _ in range(WRITERS)]

    def write(number: int) -> None:
        series = f'[{{"table":"backup_curve","parent":"@s","columns":{{"value":[{bodies[number % WRITERS]}]}}}}]'
        tables = json.dumps([{"table": "backup_sample", "rows": [{"_ref": "s", "name": f"S{number}"}]}])
        server.call("POST", "/data/write", f'{{"tables":{tables},"series":{series}}}')

    def upload(number: int) -> tuple[str, str]:
        content = random.Random(number).randbytes(FILE_BYTES)
        body = {"file_name": f"backup/{number}.raw", "instrument_id": instrument}
        place = server.call("POST", "/files/upload-url", body)
        url = urllib.parse.urlsplit(place["upload_url"])
        status, answer = server.request("PUT", f"{url.path}?{url.query}", content, place["headers"])
        assert status == 200, answer
        server.call("POST", f"/files/{place['file_id']}/confirm-upload")
        return place["file_id"], hashlib.sha256(content).hexdigest()

    curves = round(size * SHARE_OF_POINTS / (POINTS * 8))
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(curves)))
        return curves, dict(pool.map(upload, range(round(size * (1 - SHARE_OF_POINTS) / FILE_BYTES))))


def start_load(server: Server, seconds: int) -> subprocess.Popen:
    # Tables cannot be changed while a backup copies the database: clients that wait for it would load nothing.
    arguments = ["--url", server.url, "--key", KEY, "--seconds", str(seconds), "--mix", "table=0"]
    arguments += ["--pid", str(server.process.pid)]
    return subprocess.Popen([LOAD, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish_load(load: subprocess.Popen) -> None:
    printed, _ = load.communicate()
    print(printed, flush=True)
    assert load.returncode == 0, "the load found something wrong"


def below(directory: Path) -> str:
    return subprocess.run(["du", "-sh", directory], capture_output=True, text=True, check=True).stdout.split()[0]


def check(server: Server, expected: list[object], files: dict[str, str]) -> None:
    """Compares the restored platform with what was stored."""
    for curve in range(len(expected)):
        found = points_of(server, curve)
        assert found == expected[curve], f"curve {curve}: {found} is not {expected[curve]}"

    def is_the_same(of: tuple[str, str]) -> bool:
        content = server.call("GET", f"/files/{of[0]}/content")
        url = urllib.parse.urlsplit(content["download_url"])
        return hashlib.sha256(server.request("GET", f"{url.path}?{url.query}")[1]).hexdigest() == of[1]

    with ThreadPoolExecutor(WRITERS) as pool:
        assert all(pool.map(is_the_same, files.items())), "a file is not what was stored"


def main() -> None:
    place = Path(sys.argv[1])
    place.mkdir(mode=0o755)
    size = float(sys.argv[2] if len(sys.argv) > 2 else 10) * 1e9
    server = Server(place / "data")
    started = time.monotonic()
    curves, files = fill(server, size)
    took = time.monotonic() - started
    print(f"stored {below(place / 'data')} in {took:.0f} s: {curves} curves, {len(files)} files", flush=True)
    expected = [points_of(server, curve) for curve in range(curves)]
    assert all(found[0][0] == POINTS for found in expected)
    print("\nwithout a backup:", flush=True)
    finish_load(start_load(server, QUIET_SECONDS))

    print("\nbeside a backup:", flush=True)
    arguments = [LABDATA, "backup", place / "backup"]
    seconds = int(os.environ.get("LOAD_SECONDS", "0")) or round(size / 1e9 * SECONDS_OF_GB) + 60
    load = start_load(server, seconds)
    time.sleep(LEAD_SECONDS)
    started = time.monotonic()
    subprocess.run(arguments, env=server.environment, check=True)
    took = time.monotonic() - started
    assert load.poll() is None, "the load ended before the backup: set LOAD_SECONDS"
    print(f"backup of {below(place / 'backup')}: {took:.0f} s of {seconds} s of load")
    finish_load(load)
    server.stop()

    environment = {**server.environment, "LABDATA_DATA_DIR": str(place / "restored")}
    started = time.monotonic()
    subprocess.run([LABDATA, "restore", place / "backup"], env=environment, check=True)
    print(f"restored in {time.monotonic() - started:.0f} s")
    restored = Server(place / "restored")
    check(restored, expected, files)
    restored.stop()
    print("the restored copy has all points and files")


if __name__ == "__main__":
    main()
