"""Values that stand in an export, but not in the ASM document that allotropy makes of it.

Their rows follow those of the document, so that the keys of the latter stay the same.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .rows import Rows

# Names of the columns of a cycle threshold.
THRESHOLDS = ("CT", "Ct", "Cт", "Cq")

# Quantities of a qPCR result besides the cycle threshold, by the columns of the export.
SCORES = {"Amp Score": "amplification score", "Cq Conf": "cq confidence"}


def complete(rows: Rows, content: bytes) -> None:
    """Adds rows and doubts for what the document leaves out."""
    lines = table_lines(content)
    if rows.reader == "AGILENT_GEN5":
        add_results_by_well(rows, lines)
    elif rows.reader == "MOLDEV_SOFTMAX_PRO":
        name_plates(rows, lines)
    add_undetermined(rows, lines)


def table_lines(content: bytes) -> list[list[str]]:
    """Returns the lines of a text, divided at tabs; none for an archive, such as a workbook."""
    if content[:2] == b"PK":
        return []
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return [[cell.strip() for cell in line.split("\t")] for line in content.decode(encoding, "replace").splitlines()]


def number_of(cell: str) -> float | None:
    """Returns the number of a cell."""
    try:
        return float(cell)
    except ValueError:
        return None


def add_undetermined(rows: Rows, lines: list[list[str]]) -> None:
    """Adds a null row for each well and target without a cycle threshold, and the scores of its line."""
    kind = "cycle threshold result"
    known = {well_and_target(row): row for row in rows.measurements if row["kind"] == kind}
    if not known:
        return
    cells = results_by_target(lines)
    without_line = 0
    for context in rows.sources:
        key = well_and_target(context)
        if key in known or key[1] is None:
            continue
        line = cells.get(key, {})
        given = next((line[name] for name in THRESHOLDS if line.get(name)), None)
        rows.add(kind, None, None, context, {"reason": given or "the file has no cycle threshold here"})
        without_line += not line
        for column, score in SCORES.items():
            number = number_of(line.get(column, ""))
            if number is not None:
                rows.add(score, number, None, context, {})
    if without_line:
        rows.doubt(f"{', '.join(SCORES)}: values of {without_line} wells without a cycle threshold are left out")


def well_and_target(row: dict[str, Any]) -> tuple[str | None, str | None]:
    """Returns the well and the target of a row or context."""
    return row["well"], row["metadata"].get("target_DNA_description")


def results_by_target(lines: list[list[str]]) -> dict[tuple[str | None, str | None], dict[str, str]]:
    """Returns the lines of the results of a qPCR by well and target."""
    found: dict[tuple[str | None, str | None], dict[str, str]] = {}
    header: list[str] | None = None
    for line in lines:
        if {"Well Position", "Target Name"} <= set(line) and set(line) & set(THRESHOLDS):
            header = line
        elif len(line) < 2:
            header = None
        elif header:
            cells = dict(zip(header, line))
            found[cells.get("Well Position"), cells.get("Target Name")] = cells
    return found


def add_results_by_well(rows: Rows, lines: list[list[str]]) -> None:
    """Adds a null row for each result of a well that is no number, and doubts results that have no row."""
    kinds = {row["kind"] for row in rows.measurements}
    read = {(row["kind"], row["well"]) for row in rows.measurements}
    contexts = {context["well"]: context for context in rows.sources}
    left_out: dict[str, list[str]] = {}
    for label, well, cell in results_by_well(lines):
        if label not in kinds:
            examples = left_out.setdefault(label, [])
            # The first one, and one that is no value at all.
            if not examples or (len(examples) == 1 and not any(it.isalnum() for it in cell)):
                examples.append(cell)
        elif (label, well) not in read and well in contexts:
            rows.add(label, None, None, contexts[well], {"is_calculated": True, "reason": cell})
    for label, examples in left_out.items():
        rows.doubt(f"{label}: results such as {' and '.join(examples)} are no numbers and were left out")


def results_by_well(lines: list[list[str]]) -> list[tuple[str, str, str]]:
    """Returns label, well and cell of the results of plates, whose lines end in the label."""
    found = []
    numbers: list[str] = []
    row_name = ""
    for before, line in pairwise(lines):
        if before == ["Results"] and line[0] == "" and all(cell.isdigit() for cell in line[1:] if cell):
            numbers, row_name = [cell for cell in line[1:] if cell], ""
        elif len(line) == len(numbers) + 2 and numbers and line[-1]:
            row_name = line[0] or row_name
            found += [(line[-1], row_name + number, cell) for number, cell in zip(numbers, line[1:-1]) if cell]
        else:
            numbers = []
    return found


def name_plates(rows: Rows, lines: list[list[str]]) -> None:
    """Names all plates of values that were calculated over several: the document refers to the first one only."""
    plates = plates_of_groups(lines)
    for row in rows.measurements:
        following = plates.get((row["sample"], row["kind"])) if row["metadata"].get("is_calculated") else None
        if not following or number_of(following[0][0]) != row["value"]:
            continue
        found = following.pop(0)[1]
        if len(found) > 1:
            row["metadata"].pop("plate", None)
            # Wells of these names are on each of the plates.
            row["metadata"]["plates"] = found


def plates_of_groups(lines: list[list[str]]) -> dict[tuple[str | None, str], list[tuple[str, list[str]]]]:
    """Returns the cells of the tables of groups, each with the plates of the lines for which it stands."""
    found: dict[tuple[str | None, str], list[tuple[str, list[str]]]] = {}
    header: list[str] = []
    sample = ""
    for line in lines:
        if line[0] == "Sample" and "WellPlateName" in line:
            header, sample = line, ""
            continue
        if not header or len(line) < 2:
            header = []
            continue
        cells = dict(zip(header, line))
        is_next = bool(cells["Sample"])
        sample = cells["Sample"] or sample
        for name, cell in cells.items():
            if name in ("", "Sample", "Wells", "Well", "WellPlateName"):
                continue
            values = found.setdefault((sample, name), [])
            if cell:
                values.append((cell, []))
            elif is_next or not values:
                continue
            plate = cells.get("WellPlateName")
            if plate and plate not in values[-1][1]:
                values[-1][1].append(plate)
    return found
