"""Parse a kinetic export of Gen5, the software of Agilent's plate readers, with the standard library only.

As a job on the platform, this parses the uploaded file and writes plate, samples and curves.
`growth_curves.py` beside it imports the parser.
"""

import json
import math
import os
import re
import urllib.error
import urllib.request
from typing import NamedTuple

# Plates have up to 1,536 wells: A1 to AF48.
WELL = re.compile(r"[A-Z]{1,2}[1-9][0-9]?")
TIME = re.compile(r"([0-9]{1,6}):([0-5][0-9]):([0-5][0-9])")
NUMBER = re.compile(r"[0-9+\-.,eE]+")
NO_VALUE = {"", "OVRFLW", "?????", "*****", "-----", "NaN"}


class KineticExport(NamedTuple):
    """One measurement of a plate: the header, the hours of the reads, and the values of each well."""

    header: dict
    hours: list
    wells: dict


class NotAnExport(ValueError):
    """The file is not a kinetic export; the text names the line."""


def parse(content):
    """Parse an export in UTF-8, UTF-16 with a byte order mark, or a single-byte encoding.

    The header has lines of `name<TAB>value`. The table begins with `Time<TAB>T° 600<TAB>A1<TAB>A2…` and has
    one line per read, until a blank line.
    """
    lines = [[cell.strip() for cell in line.split("\t")] for line in decode(content).split("\n")]
    header = {}
    for number, cells in enumerate(lines, 1):
        first = next((index for index, cell in enumerate(cells) if WELL.fullmatch(cell)), None)
        # The time is followed by the wells, or by a temperature and the wells.
        if cells[0] == "Time" and first in (1, 2):
            hours, wells = parse_table(lines, number, first)
            return KineticExport(header, hours, wells)
        if len(cells) == 2 and all(cells):
            header[cells[0].rstrip(":")] = cells[1]
    raise NotAnExport(
        "no kinetic table was found: it begins with a line of Time, T° and the wells, separated by tabs"
    )


def decode(content):
    """Decode UTF-16 by its byte order mark, else UTF-8 if valid, else one byte per character."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16", errors="replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def parse_table(lines, head, first):
    """Return the hours of the reads and the values by well; `head` numbers the table's first line."""
    wells = well_columns(lines[head - 1][first:], head)
    hours = []
    for number, cells in enumerate(lines[head:], head + 1):
        if not any(cells):
            break
        time = hours_of(cells[0], number)
        # Reads that were planned but not taken.
        if time == 0 and not any(cells[1:]):
            continue
        if hours and time <= hours[-1]:
            raise NotAnExport(f"line {number}: the read at {cells[0]} does not come after the one before it")
        values = cells[first:]
        if len(values) < len(wells) or any(values[len(wells) :]):
            raise NotAnExport(f"line {number}: {len(values)} values for {len(wells)} wells")
        for (well, column), cell in zip(wells.items(), values):
            column.append(value_of(cell, well, number))
        hours.append(time)
    if not hours:
        raise NotAnExport("the kinetic table has no reads")
    return hours, wells


def well_columns(names, number):
    """Return an empty list for each well."""
    while not names[-1]:
        names = names[:-1]
    wells = {}
    for name in names:
        if not WELL.fullmatch(name):
            raise NotAnExport(f'line {number}: "{name}" is no well such as A1')
        if name in wells:
            raise NotAnExport(f"line {number}: the well {name} stands there twice")
        wells[name] = []
    return wells


def hours_of(text, number):
    """Parse a time such as 0:10:00."""
    match = TIME.fullmatch(text)
    if match is None:
        raise NotAnExport(f'line {number}: "{text}" is no time such as 0:10:00')
    hours, minutes, seconds = map(int, match.groups())
    return (hours * 3600 + minutes * 60 + seconds) / 3600


def value_of(text, well, number):
    """Return a number with a decimal point or comma; None where the reader gave none."""
    if text in NO_VALUE:
        return None
    try:
        value = float(text.replace(",", ".")) if NUMBER.fullmatch(text) else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise NotAnExport(f'line {number}: {well} holds "{text}", which is no number')
    return value


def call(path, body=None):
    """Call the platform with the address and the key that it gave to this run."""
    request = urllib.request.Request(
        os.environ["LABDATA_BASE_URL"] + "/api/v1" + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": "Bearer " + os.environ["LABDATA_API_KEY"],
            "Content-Type": "application/json",
        },
    )
    try:
        with urllib.request.urlopen(request) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{path}: {error.code} {error.read().decode()}") from None


def main():
    """Write what the file of this run contains."""
    content = call("/files/" + os.environ["LABDATA_FILE_ID"] + "/content")
    with urllib.request.urlopen(content["download_url"]) as download:
        export = parse(download.read())
    print(f"{content['file_name']}: {len(export.wells)} wells, {len(export.hours)} reads")
    plate = os.path.splitext(os.path.basename(content["file_name"]))[0]
    samples = [
        {"_ref": well, "name": f"{plate} {well}", "well": well, "plate": "@plate"} for well in export.wells
    ]
    curves = [
        {"table": "growth_curve", "parent": f"@{well}", "columns": {"time_h": export.hours, "od600": values}}
        for well, values in export.wells.items()
    ]
    # Upserts by name: parsing the same plate twice does not duplicate it.
    upsert = {"mode": "upsert", "key": ["name"]}
    carriers = [{"_ref": "plate", "name": plate, "carrier_type": "plate"}]
    written = call(
        "/data/write",
        {
            "tables": [
                {"table": "carrier", **upsert, "rows": carriers},
                {"table": "sample", **upsert, "rows": samples},
            ],
            "series": curves,
        },
    )
    points = sum(series["points_written"] for series in written["series"])
    print(f"{plate}: {points} points written under {written['job_execution_id']}")


if __name__ == "__main__":
    main()
