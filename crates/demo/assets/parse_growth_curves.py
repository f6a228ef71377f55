"""Parses a Gen5 kinetic export on the platform, with the standard library only.

The platform gives the script the file and a key of its own; whatever it writes belongs to its execution.
"""

import json
import os
import re
import urllib.error
import urllib.request

BASE = os.environ["LABDATA_BASE_URL"] + "/api/v1"
KEY = os.environ["LABDATA_API_KEY"]
WELL = re.compile(r"[A-Z]{1,2}[1-9][0-9]?$")
NO_VALUE = {"", "OVRFLW", "?????", "*****", "-----", "NaN"}


def call(path, body=None):
    request = urllib.request.Request(
        BASE + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": "Bearer " + KEY, "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{path} answers {error.code}: {error.read().decode()}")


def decoded(content):
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252")


def parse(text):
    """The hours of the reads, and the values of each well."""
    lines = [line.split("\t") for line in text.splitlines()]
    found = lambda cells: [(place, name.strip()) for place, name in enumerate(cells) if WELL.match(name.strip())]
    start = next(place for place, cells in enumerate(lines) if cells[0].strip() == "Time" and found(cells))
    columns = found(lines[start])
    hours, wells = [], {name: [] for _, name in columns}
    for cells in lines[start + 1 :]:
        parts = cells[0].strip().split(":")
        if len(parts) != 3:
            break
        h, m, s = map(int, parts)
        at = (h * 3600 + m * 60 + s) / 3600
        if at == 0 and not any(cell.strip() for cell in cells[1:]):
            continue
        hours.append(at)
        for place, name in columns:
            cell = cells[place].strip() if place < len(cells) else ""
            wells[name].append(None if cell in NO_VALUE else float(cell.replace(",", ".")))
    return hours, wells


content = call("/files/" + os.environ["LABDATA_FILE_ID"] + "/content")
with urllib.request.urlopen(content["download_url"]) as download:
    hours, wells = parse(decoded(download.read()))
print(f"{content['file_name']}: {len(wells)} wells, {len(hours)} reads")
plate = os.path.splitext(os.path.basename(content["file_name"]))[0]
# Found again by their names, so that parsing the same plate twice does not double it.
written = call(
    "/data/write",
    {
        "tables": [
            {
                "table": "carrier",
                "mode": "upsert",
                "key": ["name"],
                "rows": [{"_ref": "plate", "name": plate, "carrier_type": "plate"}],
            },
            {
                "table": "sample",
                "mode": "upsert",
                "key": ["name"],
                "rows": [
                    {"_ref": well, "name": f"{plate} {well}", "well": well, "plate": "@plate"} for well in wells
                ],
            },
        ],
        "series": [
            {"table": "growth_curve", "parent": "@" + well, "columns": {"time_h": hours, "od600": values}}
            for well, values in wells.items()
        ],
    },
)
points = sum(series["points_written"] for series in written["series"])
print(f"{plate}: {points} points written under {written['job_execution_id']}")
