"""Compares the trainer with AutoGluon alone, each in a separate process: `just bench-trainer`.

A training may take 10 s longer than `TabularPredictor.fit`. A prediction of one row may take 15 ms
longer than `TabularPredictor.predict` of a predictor in memory, and 10,000 rows 1.5 times as long.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from labdata_trainer import artifact
from tests import support

REPEATS = {1: 50, 10_000: 15}

FIT_ALONE = """
import sys, time
import pandas as pd
data = pd.read_parquet(sys.argv[1])
started = time.monotonic()
from autogluon.tabular import TabularPredictor
imported = time.monotonic() - started
started = time.monotonic()
TabularPredictor(label="target", path=sys.argv[2], verbosity=0).fit(
    data, presets="medium_quality", time_limit=60, num_cpus=1, num_gpus=0)
print(imported, time.monotonic() - started)
"""

PREDICT_ALONE = """
import json, statistics, sys, time
import pandas as pd
from autogluon.tabular import TabularPredictor
predictor = TabularPredictor.load(sys.argv[1], verbosity=0)
predictor.persist(max_memory=None)
data = pd.read_parquet(sys.argv[2]).drop(columns=["target"])
figures = {}
for rows, repeats in json.loads(sys.argv[3]).items():
    frame = data.head(int(rows))
    seconds = []
    predictor.predict(frame)
    for _ in range(repeats):
        started = time.monotonic()
        predictor.predict(frame)
        seconds.append(time.monotonic() - started)
    figures[rows] = statistics.median(seconds)
print(json.dumps(figures))
"""


def alone(program: str, *arguments: Any) -> str:
    """Runs a program in a separate process, and returns the last line that it prints.

    It may use one processor, like the trainer in these tests.
    """
    command = [sys.executable, "-c", program, *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    output = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment
    ).stdout
    return output.splitlines()[-1]


def bench_training(name: str, table: pa.Table, problem_type: str) -> support.Outcome:
    """Prints the seconds of a training and of AutoGluon alone."""
    directory = support.run_directory(table)
    line = alone(FIT_ALONE, directory / "data.parquet", directory / "alone")
    imported, fitted = map(float, line.split())
    started = time.monotonic()
    outcome = support.train(table, problem_type=problem_type)
    whole = time.monotonic() - started
    assert outcome.code == 0, outcome.log
    print(
        f"{name}: training {whole:.1f} s; fit alone {fitted:.1f} s, its import {imported:.1f} s; "
        f"overhead {whole - fitted:.1f} s (limit 10 s)"
    )
    return outcome


def bench_predictions(name: str, table: pa.Table, outcome: support.Outcome) -> None:
    """Prints the milliseconds of predictions through the protocol and of AutoGluon alone."""
    repeated = pa.concat_tables([table] * (10_000 // table.num_rows + 1)).slice(0, 10_000)
    data = outcome.directory / "many.parquet"
    pq.write_table(repeated, data)
    started = time.monotonic()
    client = support.Client(outcome.directory / artifact.NAME)
    ready = time.monotonic() - started
    print(f"{name}: predictor ready after {ready:.1f} s")
    ours = {rows: median_of_requests(client, json_request(repeated, rows)) for rows in REPEATS}
    arrow = median_of_requests(client, arrow_request(repeated))
    client.close()
    predictor = outcome.directory / "predictor"
    theirs = json.loads(alone(PREDICT_ALONE, predictor, data, json.dumps(REPEATS)))
    one, alone_one = ours[1] * 1e3, theirs["1"] * 1e3
    many, alone_many = ours[10_000] * 1e3, theirs["10000"] * 1e3
    print(
        f"{name}: 1 row {one:.1f} ms, alone {alone_one:.1f} ms, "
        f"difference {one - alone_one:.1f} ms (limit 15 ms)"
    )
    print(
        f"{name}: 10,000 rows {arrow * 1e3:.0f} ms, alone {alone_many:.0f} ms, "
        f"ratio {arrow * 1e3 / alone_many:.2f} (limit 1.5); as JSON {many:.0f} ms"
    )


def json_request(table: pa.Table, rows: int) -> bytes:
    """Returns a request in JSON."""
    return support.frame(json.dumps({"id": 1, "columns": support.rows(table, rows)}).encode())


def arrow_request(table: pa.Table) -> bytes:
    """Returns a request as an Arrow stream."""
    features = table.drop_columns(["target"]).replace_schema_metadata({"id": "1"})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, features.schema) as writer:
        writer.write_table(features)
    return support.frame(sink.getvalue().to_pybytes())


def median_of_requests(client: support.Client, request: bytes) -> float:
    """Returns the median seconds from the first byte of a request to the last of its answer."""
    seconds = []
    for _ in range(REPEATS[1] if len(request) < 10_000 else REPEATS[10_000]):
        started = time.monotonic()
        client.send_bytes(request)
        answer = client.receive_bytes()
        seconds.append(time.monotonic() - started)
        assert b'"error"' not in answer, answer
    return statistics.median(seconds[1:])


def main() -> None:
    """Prints all figures."""
    for name, table, problem_type in (
        ("wine", support.wine_table(), "multiclass"),
        ("diabetes", support.diabetes_table(), "regression"),
    ):
        bench_predictions(name, table, bench_training(name, table, problem_type))


if __name__ == "__main__":
    main()
