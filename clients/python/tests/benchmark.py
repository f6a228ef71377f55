"""The client beside httpx alone: `LABDATA_BIN=… python tests/benchmark.py [rows] [curves] [upload]`."""

from __future__ import annotations

import io
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx
import polars as pl
from conftest import KEY, Server, define_tables

import labdata_client as labdata

ROWS = 10_000
CURVES, POINTS = 96, 577
UPLOAD_BYTES = 500_000_000


def seconds(work):
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def compare(name, of_httpx, of_client, rounds):
    """Alternate, so that both meet the same state of the machine."""
    pairs = []
    for number in range(rounds):
        if number % 2:
            client = seconds(of_client)
            pairs.append((seconds(of_httpx), client))
        else:
            pairs.append((seconds(of_httpx), seconds(of_client)))
    alone, client = (statistics.median(side) for side in zip(*pairs))
    best = [min(side) for side in zip(*pairs)]
    print(
        f"{name}: httpx {alone * 1000:.0f} ms, client {client * 1000:.0f} ms, {client / alone:.2f}x"
        f" (best {best[0] * 1000:.0f} and {best[1] * 1000:.0f} ms, {best[1] / best[0]:.2f}x)",
        flush=True,
    )


def write_rows(lab, api):
    tables = define_tables(lab)
    rows = [
        {
            "number": i,
            "value": i / 7,
            "valid": i % 2 == 0,
            "taken_at": "2026-03-01T12:30:00Z",
            "note": f"row {i}",
        }
        for i in range(ROWS)
    ]

    def of_httpx():
        body = {"tables": [{"table": tables.reading, "rows": rows}]}
        api.post("/data/write", json=body).raise_for_status()

    compare(f"{ROWS} rows", of_httpx, lambda: lab.write({tables.reading: rows}), 7)


def read_curves(lab, api):
    tables = define_tables(lab)
    hours = [i / 4 for i in range(POINTS)]
    curves = {f"@s{i}": {"hours": hours, "od600": [hour / (i + 1) for hour in hours]} for i in range(CURVES)}
    samples = [{"_ref": f"s{i}", "name": f"S{i}"} for i in range(CURVES)]
    parents = lab.write({tables.sample: samples}, series={tables.curve: curves}).tables[0]["ids"]
    shapes = set()

    def of_httpx():
        body = {"table": tables.curve, "parents": parents}
        headers = {"Accept": "application/vnd.apache.arrow.stream"}
        answer = api.post("/tools/series", json=body, headers=headers).raise_for_status()
        shapes.add(pl.read_ipc_stream(io.BytesIO(answer.content)).shape)

    def of_client():
        shapes.add(lab.series(tables.curve, parents).to_polars().shape)

    compare(f"{CURVES} curves of {POINTS} points, as a frame of polars", of_httpx, of_client, 15)
    assert {rows for rows, _ in shapes} == {CURVES * POINTS}, shapes


def upload(lab, api, directory):
    path = directory / "large.bin"
    with path.open("wb") as file:
        for _ in range(UPLOAD_BYTES // 1_000_000):
            file.write(os.urandom(1_000_000))
    run = lab.execution("Benchmark").open()
    uploaded = []

    def of_httpx():
        body = {"file_name": "large.bin", "job_execution_id": run.id}
        target = api.post("/files/upload-url", json=body).raise_for_status().json()
        headers = {**target["headers"], "Content-Length": str(path.stat().st_size)}
        with path.open("rb") as file:
            httpx.put(target["upload_url"], content=file, headers=headers, timeout=300).raise_for_status()
        api.post(f"/files/{target['file_id']}/confirm-upload").raise_for_status()
        uploaded.append(target["file_id"])

    def of_client():
        uploaded.append(run.upload(path).file_id)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    compare(f"{UPLOAD_BYTES} bytes", of_httpx, of_client, 5)
    print(f"memory grew by {(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024:.0f} MiB")
    for file_id in uploaded:
        lab.request("DELETE", f"/files/{file_id}")


def main(chosen):
    with tempfile.TemporaryDirectory() as scratch:
        server = Server(Path(scratch))
        server.start()
        headers = {"Authorization": f"Bearer {KEY}"}
        try:
            with (
                labdata.connect(server.url, KEY, progress=False) as lab,
                httpx.Client(base_url=server.url + "/api/v1", headers=headers, timeout=300) as api,
            ):
                if "rows" in chosen:
                    write_rows(lab, api)
                if "curves" in chosen:
                    read_curves(lab, api)
                if "upload" in chosen:
                    upload(lab, api, Path(scratch))
        finally:
            server.stop()


if __name__ == "__main__":
    main(sys.argv[1:] or ["rows", "curves", "upload"])
