# /// script
# dependencies = ["labdata-client"]
# ///
"""qPCR: a text export of QuantStudio with `* name = value` lines and tables under titles in brackets.

Writes a row per well and target to `qpcr_well`, its curve to `qpcr_amplification`. `Undetermined` is a
null `ct`, never a number.
"""

import csv

import labdata_client as labdata


def define(lab):
    """Make the tables, once."""
    lab.define_table(
        "qpcr_well",
        [
            {"name": "run", "data_type": "string", "is_nullable": False},
            {"name": "well", "data_type": "string", "is_nullable": False},
            {"name": "target", "data_type": "string", "is_nullable": False},
            {"name": "sample", "data_type": "string"},
            {"name": "ct", "data_type": "float"},
        ],
        unique_together=[["run", "well", "target"]],
        ensure=True,
    )
    lab.define_table(
        "qpcr_amplification",
        [
            {"name": "qpcr_well", "data_type": "string", "references": "qpcr_well"},
            {"name": "order", "data_type": "integer"},
            {"name": "cycle", "data_type": "integer"},
            {"name": "delta_rn", "data_type": "float"},
        ],
        semantic_category="raw",
        ensure=True,
    )


def parse(text):
    """Return the name of the run, the rows of its wells and the amplification by well and target."""
    lines = text.splitlines()
    facts = dict(line[2:].split(" = ", 1) for line in lines if line.startswith("* ") and " = " in line)
    name = facts["Experiment Name"].strip()
    rows = [
        {
            "run": name,
            "well": row["Well Position"],
            "target": row["Target Name"],
            "sample": row["Sample Name"] or None,
            "ct": None if row["CT"] == "Undetermined" else number(row["CT"]),
        }
        for row in table(lines, "Results")
        if row["Target Name"]
    ]
    curves = {}
    for row in table(lines, "Amplification Data"):
        curve = curves.setdefault((row["Well Position"], row["Target Name"]), {"cycle": [], "delta_rn": []})
        curve["cycle"].append(int(row["Cycle"]))
        curve["delta_rn"].append(number(row["Delta Rn"]))
    return name, rows, curves


def table(lines, title):
    """Return the rows of the table under a title, which ends at a blank line."""
    start = lines.index(f"[{title}]") + 1
    end = next((index for index in range(start, len(lines)) if not lines[index].strip()), len(lines))
    return list(csv.DictReader(lines[start:end], delimiter="\t"))


def number(text):
    """Return a number, whose thousands the software groups by commas."""
    return float(text.replace(",", ""))


def main():
    """Write what the file of this run contains."""
    lab = labdata.connect()
    define(lab)
    with lab.execution(revert_on_error=True) as run:
        name, rows, curves = parse(
            lab.download(lab.platform_run.file_id, "export.txt").read_text("utf-8-sig")
        )
        labeled = [{"_ref": f"{row['well']} {row['target']}", **row} for row in rows]
        points = {f"@{well} {target}": curve for (well, target), curve in curves.items()}
        run.write(
            {"qpcr_well": labeled},
            {"qpcr_amplification": points},
            mode="upsert",
            key=["run", "well", "target"],
        )
    print(f"{name}: {len(rows)} wells, {len(curves)} curves")


if __name__ == "__main__":
    main()
