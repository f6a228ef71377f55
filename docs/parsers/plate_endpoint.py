# /// script
# dependencies = ["labdata-client"]
# ///
"""Endpoint read of a plate: a CSV export with a block of rows A, B, … and columns 01, 02, … per plate.

Writes a row per well to `endpoint_reading`. An empty well has no row; an overflow is null, and `note` has the
word.
"""

import csv
import io

import labdata_client as labdata


def define(lab):
    """Make the table, once."""
    lab.define_table(
        "endpoint_reading",
        [
            {"name": "plate", "data_type": "string", "is_nullable": False},
            {"name": "well", "data_type": "string", "is_nullable": False},
            {"name": "signal", "data_type": "float"},
            {"name": "note", "data_type": "string"},
        ],
        unique_together=[["plate", "well"]],
        ensure=True,
    )


def parse(text):
    """Return the rows of all blocks."""
    lines = list(csv.reader(io.StringIO(text)))
    rows, plate = [], None
    for index, cells in enumerate(lines):
        if cells[:1] == ["Plate"]:
            named = dict(zip(cells, lines[index + 1]))
            plate = named["Barcode"] or f"plate {named['Plate']}"
        elif cells[1:2] == ["01"]:
            rows.extend(block(plate, cells, lines[index + 1 :]))
    return rows


def block(plate, head, lines):
    """Return the rows of one block, which ends at a blank line."""
    for cells in lines:
        if not any(cells):
            return
        for column, cell in zip(head[1:], cells[1:]):
            if column and cell:
                yield {"plate": plate, "well": f"{cells[0]}{int(column)}", **value(cell)}


def value(cell):
    """Return the number of a cell, or the word in its place."""
    try:
        return {"signal": float(cell), "note": None}
    except ValueError:
        return {"signal": None, "note": cell}


def main():
    """Write what the file of this run contains."""
    lab = labdata.connect()
    define(lab)
    with lab.execution(revert_on_error=True) as run:
        rows = parse(lab.download(lab.platform_run.file_id, "export.csv").read_text("utf-8-sig"))
        run.write({"endpoint_reading": rows}, mode="upsert", key=["plate", "well"])
    print(f"{len(rows)} wells of {len({row['plate'] for row in rows})} plates")


if __name__ == "__main__":
    main()
