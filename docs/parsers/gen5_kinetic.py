# /// script
# dependencies = ["labdata-client"]
# ///
"""Kinetic read of a plate reader: a text export of Gen5 with a column per well and a line per read.

Writes a row per well to `kinetic_well` and its curve to `kinetic_curve`.
"""

import re

import labdata_client as labdata

WELL = re.compile(r"[A-Z]{1,2}[1-9][0-9]?")
NO_VALUE = {"", "OVRFLW", "?????"}


def define(lab):
    """Make the tables, once."""
    lab.define_table(
        "kinetic_well",
        [
            {"name": "plate", "data_type": "string", "is_nullable": False},
            {"name": "well", "data_type": "string", "is_nullable": False},
            {"name": "wavelength", "data_type": "integer", "unit": "nm"},
        ],
        unique_together=[["plate", "well"]],
        ensure=True,
    )
    lab.define_table(
        "kinetic_curve",
        [
            {"name": "kinetic_well", "data_type": "string", "references": "kinetic_well"},
            {"name": "order", "data_type": "integer"},
            {"name": "hours", "data_type": "float", "unit": "h"},
            {"name": "absorbance", "data_type": "float"},
        ],
        semantic_category="raw",
        ensure=True,
    )


def decoded(content):
    """Return the text; exports are UTF-16 with a mark, UTF-8, or bytes of Windows."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252")


def hours(text):
    """Return the hours of a time such as 26:10:00."""
    hour, minute, second = map(int, text.split(":"))
    return (hour * 3600 + minute * 60 + second) / 3600


def number(text):
    """Return a number, or None where the reader had none; anything else stops the run."""
    return None if text in NO_VALUE else float(text.replace(",", "."))


def parse(text):
    """Return the plate's name, the wavelength, the times and the values by well."""
    lines = [[cell.strip() for cell in line.split("\t")] for line in text.splitlines()]
    plate = next(cells[1] for cells in lines if cells[0] == "Plate Number")
    wavelength = next(
        int(cells[1].split(":")[1]) for cells in lines if cells[1:] and "Wavelengths:" in cells[1]
    )
    head = next(
        index for index, cells in enumerate(lines) if cells[0] == "Time" and WELL.fullmatch(cells[-1])
    )
    wells = [cell for cell in lines[head] if WELL.fullmatch(cell)]
    times, values = [], {well: [] for well in wells}
    for cells in lines[head + 1 :]:
        # A read that was planned and not taken is a time without values.
        if not any(cells[1:]):
            break
        times.append(hours(cells[0]))
        for well, cell in zip(wells, cells[-len(wells) :]):
            values[well].append(number(cell))
    return plate, wavelength, times, values


def main():
    """Write what the file of this run contains."""
    lab = labdata.connect()
    define(lab)
    with lab.execution(revert_on_error=True) as run:
        content = lab.download(lab.platform_run.file_id, "export.txt").read_bytes()
        plate, wavelength, times, values = parse(decoded(content))
        rows = [{"_ref": well, "plate": plate, "well": well, "wavelength": wavelength} for well in values]
        curves = {f"@{well}": {"hours": times, "absorbance": column} for well, column in values.items()}
        run.write({"kinetic_well": rows}, {"kinetic_curve": curves}, mode="upsert", key=["plate", "well"])
    print(f"{plate}: {len(values)} wells, {len(times)} reads")


if __name__ == "__main__":
    main()
