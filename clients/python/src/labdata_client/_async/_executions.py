"""Requests that open and end executions."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from labdata_client._results import Record
from labdata_client.errors import LabdataError, body_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._transport import AsyncTransport

_log = logging.getLogger("labdata_client")


async def start(transport: AsyncTransport, fields: Mapping[str, Any]) -> Record:
    """Open an execution and return its record."""
    given = {name: value for name, value in fields.items() if value is not None}
    response = await transport.request("POST", "/job-executions", json=given, creates=True)
    return Record(body_of(response))


async def end(transport: AsyncTransport, job_execution_id: str, status: str) -> Record:
    """End an execution as `completed` or `failed` and return its record."""
    path = f"/job-executions/{job_execution_id}"
    response = await transport.request("PATCH", path, json={"status": status})
    return Record(body_of(response))


async def fail(transport: AsyncTransport, job_execution_id: str) -> Record | None:
    """End an execution after an exception.

    The exception that the caller sees is the cause, not a failure of cleaning up after it.
    """
    try:
        return await end(transport, job_execution_id, "failed")
    except LabdataError as failure:
        _log.warning("execution %s could not be closed: %s", job_execution_id, failure)
        return None
