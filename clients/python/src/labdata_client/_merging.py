"""One result from the answers to the batches of a write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _frames
from ._results import WriteResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ._batches import Batch

_COUNTS = ("created", "updated", "deleted")


def merged(tables: Sequence[str], answers: Sequence[tuple[Batch, Mapping[str, Any]]]) -> WriteResult:
    """Join the answers, with one entry per table write as the caller gave them."""
    entries: list[dict[str, Any]] = [
        {"table": table, "created": 0, "updated": 0, "deleted": 0, "ids": []} for table in tables
    ]
    series: list[dict[str, Any]] = []
    refs: dict[str, str] = {}
    for batch, answer in answers:
        for part, entry in zip(batch.parts, answer["tables"]):
            _add(entries[part.table], entry)
        series.extend(answer["series"])
        refs.update(answer["refs"])
    execution = answers[0][1]["job_execution_id"] if answers else None
    return WriteResult(job_execution_id=execution, tables=entries, series=series, refs=refs)


def _add(total: dict[str, Any], entry: Mapping[str, Any]) -> None:
    for name in _COUNTS:
        total[name] += entry[name]
    total["ids"].extend(entry["ids"])
    cascaded: dict[str, int] = entry.get("cascade_deleted") or {}
    for table, count in cascaded.items():
        counts: dict[str, int] = total.setdefault("cascade_deleted", {})
        counts[table] = counts.get(table, 0) + count
    if entry.get("rows") is not None:
        total.setdefault("rows", []).extend(entry["rows"])


def total_rows(sources: Sequence[_frames.Rows]) -> int | None:
    """Return the number of all rows where it is known before they are read."""
    counts = [_frames.count(source) for source in sources]
    return None if any(count is None for count in counts) else sum(count or 0 for count in counts)
