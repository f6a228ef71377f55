"""Read a file of an instrument, and write what is in it to instrument_measurement and instrument_curve.

The platform reads the file, in a process of its own without network; this script writes the result under the
run's execution. What is there already, from this file or from another with the same content, stays as it is.
"""

import json
import os
import time
import urllib.error
import urllib.request

BASE = os.environ["LABDATA_BASE_URL"] + "/api/v1"
KEY = os.environ["LABDATA_API_KEY"]
EXECUTION = os.environ["LABDATA_JOB_EXECUTION_ID"]

# What one write holds at most: rows, points, and bytes of JSON. The platform takes some more.
ROWS, POINTS, BYTES = 5_000, 100_000, 3_000_000

# Minutes during which the script waits for its turn, or for the readers' packages.
PATIENCE = 15


class Refused(Exception):
    """A response that is no success."""

    def __init__(self, status, body):
        self.status = status
        self.body = body
        super().__init__(self.detail())

    def detail(self):
        """Return what the platform says."""
        if isinstance(self.body, dict):
            errors = [str(error.get("message", error)) for error in self.body.get("errors", [])]
            return "; ".join(errors) or str(self.body.get("detail", self.body))
        return str(self.body)


def call(method, path, body=None):
    """Call the platform, again while it is busy."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": "Bearer " + KEY, "Content-Type": "application/json"}
    end = time.monotonic() + PATIENCE * 60
    pause = 1
    while True:
        request = urllib.request.Request(BASE + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request) as response:
                content = response.read()
                return json.loads(content) if content else None
        except urllib.error.HTTPError as error:
            content = error.read().decode("utf-8", "replace")
            try:
                refused = Refused(error.code, json.loads(content))
            except ValueError:
                refused = Refused(error.code, content)
            if error.code not in (429, 503) or time.monotonic() > end:
                raise refused from None
        time.sleep(pause)
        pause = min(2 * pause, 10)


def read(file_id, reader):
    """Return the reading of the file."""
    body = {"dry_run": True, "complete": True}
    if reader:
        body["reader"] = reader
    reading = call("POST", f"/files/{file_id}/read", body)
    for doubt in reading["doubts"]:
        print(doubt)
    if reading["reader"] is None:
        raise SystemExit(reading["doubts"][0])
    print(f"{reading['reader']}: {reading['measurements']} measurements, {reading['curves']} of them curves")
    return reading["result"]


def keep_document(name, document):
    """Store the ASM document as a file of the execution."""
    body = {"file_name": name + ".asm.json", "content_type": "application/json", "job_execution_id": EXECUTION}
    begun = call("POST", "/files/upload-url", body)
    data = json.dumps(document, ensure_ascii=False).encode()
    request = urllib.request.Request(begun["upload_url"], data=data, headers=begun["headers"], method="PUT")
    with urllib.request.urlopen(request):
        pass
    call("POST", f"/files/{begun['file_id']}/confirm-upload")


def found(table, column, values):
    """Return the ids of the rows that have one of the values, by value."""
    rows = {}
    for start in range(0, len(values), 500):
        query = {
            "target_name": table,
            "target_type": "core-table",
            "filters": {column + "__in": values[start : start + 500]},
            "columns": ["id", column],
            "limit": 1000,
        }
        rows.update({row[column]: row["id"] for row in call("POST", "/tools/read", query)})
    return rows


def batches(measurements, curves):
    """Yield what is written together: rows with their curves."""
    rows, series, points, size = [], [], 0, 0
    for index, measurement in measurements:
        own = curves.get(index, [])
        row = {"_ref": f"m{index}", **measurement}
        new = [
            {
                "table": "instrument_curve",
                "parent": f"@m{index}",
                "columns": {"x": curve["x"], "y": curve["y"]},
            }
            for curve in own
        ]
        more = sum(len(curve["x"]) for curve in own)
        length = len(json.dumps(row)) + len(json.dumps(new))
        if rows and (len(rows) >= ROWS or points + more > POINTS or size + length > BYTES):
            yield rows, series
            rows, series, points, size = [], [], 0, 0
        rows.append(row)
        series.extend(new)
        points, size = points + more, size + length
    if rows:
        yield rows, series


def write(result):
    """Write what is not there yet; return the number of rows."""
    measurements, curves = result["measurements"], {}
    for curve in result["curves"]:
        curves.setdefault(curve["measurement"], []).append(curve)
    known = found("instrument_measurement", "key", [row["key"] for row in measurements])
    plates = sorted({row["metadata"]["plate"] for row in measurements if row["metadata"].get("plate")})
    carriers = found("carrier", "name", plates)
    missing = []
    for index, row in enumerate(measurements):
        if row["key"] not in known:
            missing.append((index, {**row, "carrier": carriers.get(row["metadata"].get("plate"))}))
    for rows, series in batches(missing, curves):
        tables = [{"table": "instrument_measurement", "rows": rows}]
        call("POST", "/data/write", {"tables": tables, "series": series, "job_execution_id": EXECUTION})
    return len(missing)


def main():
    """Read the file of this run."""
    file_id = os.environ["LABDATA_FILE_ID"]
    if not file_id:
        raise SystemExit("this job reads the file of its run: start it with a file_id")
    reader = json.loads(os.environ["LABDATA_PARAMETERS"]).get("reader")
    try:
        name = call("GET", f"/files/{file_id}")["file_name"]
        result = read(file_id, reader)
        try:
            written = write(result)
        except Refused as refused:
            call("POST", f"/job-executions/{EXECUTION}/revert")
            # Another run may have written the same content at this moment.
            if refused.status != 400:
                raise
            print(f"trying once more: {refused}")
            written = write(result)
        keep_document(name, result["document"])
    except Refused as refused:
        call("POST", f"/job-executions/{EXECUTION}/revert")
        raise SystemExit(str(refused)) from None
    there = len(result["measurements"]) - written
    print(f"{written} measurements written" + (f", {there} were there already" if there else ""))


if __name__ == "__main__":
    main()
