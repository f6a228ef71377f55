# Generated from ../_async by scripts/generate_sync.py: change that one.
"""Sending the batches of a write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labdata_client.errors import WriteRefused, body_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from labdata_client._batches import Batch

    from ._transport import Transport


def send(transport: Transport, batch: Batch, envelope: Mapping[str, Any]) -> tuple[Batch, dict[str, Any]]:
    """Send a batch; problems are located in what the caller gave to `write`."""
    try:
        response = transport.request("POST", "/data/write", content=batch.body(envelope), creates=True)
    except WriteRefused as error:
        problems = [batch.locate(problem) for problem in error.problems]
        raise WriteRefused(problems, request_id=error.request_id) from None
    return batch, body_of(response)
