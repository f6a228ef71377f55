# /// script
# dependencies = ["labdata-client"]
# ///
"""Chromatogram: a text export with `name: value` lines, a table of peaks and the trace of the detector.

Writes the injection to `chromatogram`, its peaks to `chromatogram_peak`, its trace to `chromatogram_trace`.
The clock of the instrument has no time zone: the parameter `timezone` of the job names it.
"""

import datetime
import zoneinfo

import labdata_client as labdata


def define(lab):
    """Make the tables, once."""
    lab.define_table(
        "chromatogram",
        [
            {"name": "name", "data_type": "string", "is_unique": True, "is_nullable": False},
            {"name": "sample", "data_type": "string"},
            {"name": "detector", "data_type": "string"},
            {"name": "injected_at", "data_type": "datetime"},
        ],
        ensure=True,
    )
    reference = {"name": "chromatogram", "data_type": "string", "references": "chromatogram"}
    lab.define_table(
        "chromatogram_peak",
        [
            {**reference, "is_nullable": False},
            {"name": "number", "data_type": "integer", "is_nullable": False},
            {"name": "retention", "data_type": "float", "unit": "min"},
            {"name": "area", "data_type": "float"},
            {"name": "compound", "data_type": "string"},
        ],
        unique_together=[["chromatogram", "number"]],
        ensure=True,
    )
    lab.define_table(
        "chromatogram_trace",
        [
            reference,
            {"name": "order", "data_type": "integer"},
            {"name": "minutes", "data_type": "float", "unit": "min"},
            {"name": "signal", "data_type": "float"},
        ],
        semantic_category="raw",
        ensure=True,
    )


def sections(text):
    """Return the lines of each section by its title in brackets; the first has none."""
    found = {"": []}
    title = ""
    for line in text.splitlines():
        if line.startswith("[") and line.endswith("]"):
            title = line[1:-1]
            found[title] = []
        elif line.strip():
            found[title].append(line)
    return found


def parse(text, zone):
    """Return the injection, its peaks and its trace."""
    parts = sections(text)
    header = dict(line.split(":", 1) for line in parts[""])
    clock = datetime.datetime.strptime(header["Acquired"].strip(), "%d.%m.%Y %H:%M:%S")
    injection = {
        "name": header["Data File"].strip(),
        "sample": header["Sample Name"].strip(),
        "detector": header["Detector"].strip(),
        "injected_at": clock.replace(tzinfo=zoneinfo.ZoneInfo(zone)),
    }
    peaks = []
    for line in parts["Peak Table"][1:]:
        number, retention, area, compound = line.split("\t")
        peaks.append(
            {
                "number": int(number),
                "retention": float(retention),
                "area": float(area),
                "compound": compound or None,
            }
        )
    points = [tuple(map(float, line.split("\t"))) for line in parts["Chromatogram"][1:]]
    trace = {"minutes": [point[0] for point in points], "signal": [point[1] for point in points]}
    return injection, peaks, trace


def main():
    """Write what the file of this run contains."""
    lab = labdata.connect()
    define(lab)
    started = lab.platform_run
    with lab.execution(revert_on_error=True) as run:
        text = lab.download(started.file_id, "export.txt").read_text("utf-8-sig")
        injection, peaks, trace = parse(text, started.parameters.get("timezone", "UTC"))
        tables = [
            {"table": "chromatogram", "rows": [{"_ref": "it", **injection}], "key": ["name"]},
            {
                "table": "chromatogram_peak",
                "rows": [{"chromatogram": "@it", **peak} for peak in peaks],
                "key": ["chromatogram", "number"],
            },
        ]
        run.write(tables, {"chromatogram_trace": {"@it": trace}}, mode="upsert")
    print(f"{injection['name']}: {len(peaks)} peaks, {len(trace['minutes'])} points")


if __name__ == "__main__":
    main()
