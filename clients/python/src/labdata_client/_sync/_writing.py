# Generated from ../_async by scripts/generate_sync.py: change that one.
"""Sending the batches of a write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labdata_client.errors import LabdataError, WriteRefused, body_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from labdata_client._batches import Batch

    from ._transport import Transport


def mark_written(error: LabdataError, written: Sequence[Batch], job_execution_id: str) -> None:
    """Add to an error of a batch what the batches before it have written."""
    rows, series = (sum(counts) for counts in zip(*((batch.rows, len(batch.series)) for batch in written)))
    counted = " and ".join(
        f"{count:,} {kind}"
        for count, kind in ((rows, "rows"), (series, "series"))
        if count or not rows + series
    )
    error.job_execution_id = job_execution_id
    message = (
        f"{error.args[0]}\n{counted} before it were written under execution {job_execution_id} and stay;"
        f" revert it with lab.revert({job_execution_id!r})"
    )
    error.args = (message,)


def send(transport: Transport, batch: Batch, envelope: Mapping[str, Any]) -> tuple[Batch, dict[str, Any]]:
    """Send a batch; problems are located in what the caller gave to `write`."""
    try:
        response = transport.request("POST", "/data/write", content=batch.body(envelope), creates=True)
    except WriteRefused as error:
        problems = [batch.locate(problem) for problem in error.problems]
        raise WriteRefused(problems, request_id=error.request_id) from None
    return batch, body_of(response)
