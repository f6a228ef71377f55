"""What idle SQL sessions cost one-row writes.

    LABDATA_BIN=target/release/labdata python3 crates/api/benches/sql_dashboards.py [ROUNDS]

Each round has four short blocks of writes over one server, without idle sessions and with 20 in the order ABBA or BAAB, so that
what grows during a round counts on both sides. The ratio of a round is that of the medians of its writes; the result is the
median of the rounds' ratios with its 95 % interval, which holds for any distribution of the ratios. psql must be on PATH.
"""

import http.client
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

SESSIONS = 20
LOGINS = 4
WRITES = 100
# Writes after sessions were opened or closed, which are not measured.
SETTLING_WRITES = 30


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


def write(api, numbers):
    rows = [{"name": f"s{next(numbers)}"}]
    body = {"job_name": "Bench", "tables": [{"table": "sample", "mode": "insert", "rows": rows}]}
    began = time.perf_counter()
    api.call("POST", "data/write", body)
    return (time.perf_counter() - began) * 1000


def measure_round(api, dsns, numbers, order):
    times = {True: [], False: []}
    sessions = []
    for idle in order:
        if idle != bool(sessions):
            close(sessions)
            sessions = open_sessions(dsns) if idle else []
            for _ in range(SETTLING_WRITES):
                write(api, numbers)
        times[idle] += [write(api, numbers) for _ in range(WRITES)]
    close(sessions)
    return times


def median_with_interval(values):
    """The median, and the order statistics that enclose it with a probability of 95 %."""
    values = sorted(values)
    count = len(values)
    chances = [math.comb(count, k) / 2**count for k in range(count + 1)]
    rank = 0
    while sum(chances[: rank + 1]) <= 0.025:
        rank += 1
    low = max(rank - 1, 0)
    return statistics.median(values), values[low], values[count - 1 - low]


def report(name, pairs, statistic):
    ratios = [statistic(times[True]) / statistic(times[False]) for times in pairs]
    middle, low, high = [(ratio - 1) * 100 for ratio in median_with_interval(ratios)]
    print(f"{name} of a round's writes: {middle:+.1f} % ({low:+.1f} to {high:+.1f} %)")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    with tempfile.TemporaryDirectory(prefix="labdata-bench-") as directory:
        os.chmod(directory, 0o755)
        server, api = serve(directory)
        try:
            columns = [{"name": "name", "data_type": "string"}]
            api.call("PUT", "tables/sample", {"semantic_category": "curated", "columns": columns})
            dsns = [api.call("POST", "sql-logins", {"name": f"d{n}"})["dsn"] for n in range(LOGINS)]
            numbers = iter(range(10**9))
            abba = [False, True, True, False]
            # The first round only warms up.
            measure_round(api, dsns, numbers, abba)
            pairs = []
            for number in range(rounds):
                order = abba if number % 2 == 0 else [not idle for idle in abba]
                pairs.append(measure_round(api, dsns, numbers, order))
            alone = statistics.median(time for times in pairs for time in times[False])
            print(f"a write takes {alone:.2f} ms alone; beside {SESSIONS} idle sessions, in {rounds} rounds:")
            report("median", pairs, statistics.median)
            report("mean", pairs, statistics.mean)
            print("asked: at most +5 %")
        finally:
            server.terminate()
            server.wait(60)


if __name__ == "__main__":
    main()
