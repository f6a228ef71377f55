"""What idle SQL sessions cost one-row writes.

    LABDATA_BIN=target/release/labdata python3 crates/api/benches/sql_dashboards.py [ROUNDS]

Pairs of blocks, with 20 idle sessions and without, in random order, over one server; the ratio is the median of the
pairs' ratios. psql must be on PATH.
"""

import http.client
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

SESSIONS = 20
LOGINS = 4
WRITES = 300


class Api:
    def __init__(self, url, key):
        self.connection = http.client.HTTPConnection(url.removeprefix("http://"))
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def call(self, method, path, body=None):
        self.connection.request(method, "/api/v1/" + path, json.dumps(body), self.headers)
        response = self.connection.getresponse()
        data = response.read()
        assert response.status < 300, (response.status, data)
        return json.loads(data or b"null")


def serve(directory):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LABDATA_")}
    environment.pop("DATABASE_URL", None)
    environment["LABDATA_SQL_BIND"] = "127.0.0.1:0"
    program = [os.path.abspath(os.environ["LABDATA_BIN"]), "serve", "--bind", "127.0.0.1:0"]
    quiet = subprocess.DEVNULL
    server = subprocess.Popen(
        program, cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=quiet, text=True
    )
    key = None
    for line in server.stdout:
        key = key or (re.fullmatch(r"(ldk_\S+)\n", line) or [None, None])[1]
        if found := re.match(r"labdata serves on (\S+)", line):
            return server, Api(found[1], key)
    raise SystemExit("the server did not start")


def open_sessions(dsns):
    sessions = []
    for number in range(SESSIONS):
        psql = ["psql", "-XAtq", "-d", dsns[number % len(dsns)]]
        session = subprocess.Popen(psql, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        session.stdin.write("SELECT count(*) FROM sample;\n")
        session.stdin.flush()
        session.stdout.readline()
        sessions.append(session)
    return sessions


def close(sessions):
    for session in sessions:
        session.stdin.close()
    for session in sessions:
        session.wait()


def block(api, numbers):
    began = time.perf_counter()
    for _ in range(WRITES):
        rows = [{"name": f"s{next(numbers)}"}]
        body = {"job_name": "Bench", "tables": [{"table": "sample", "mode": "insert", "rows": rows}]}
        api.call("POST", "data/write", body)
    return (time.perf_counter() - began) / WRITES * 1000


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    with tempfile.TemporaryDirectory(prefix="labdata-bench-") as directory:
        os.chmod(directory, 0o755)
        server, api = serve(directory)
        try:
            columns = [{"name": "name", "data_type": "string"}]
            api.call("PUT", "tables/sample", {"semantic_category": "curated", "columns": columns})
            dsns = [api.call("POST", "sql-logins", {"name": f"d{n}"})["dsn"] for n in range(LOGINS)]
            numbers = iter(range(10**9))
            block(api, numbers)
            pairs = []
            for _ in range(rounds):
                pair = {}
                for idle in random.sample([True, False], 2):
                    sessions = open_sessions(dsns) if idle else []
                    pair[idle] = block(api, numbers)
                    close(sessions)
                pairs.append(pair)
            ratio = statistics.median(pair[True] / pair[False] for pair in pairs)
            with_idle = statistics.median(pair[True] for pair in pairs)
            without = statistics.median(pair[False] for pair in pairs)
            print(f"a write: {without:.2f} ms alone, {with_idle:.2f} ms beside {SESSIONS} idle sessions")
            print(f"median of {rounds} paired ratios: {(ratio - 1) * 100:+.1f} % (asked: at most +5 %)")
        finally:
            server.terminate()
            server.wait(60)


if __name__ == "__main__":
    main()
