"""Environment variables: those of a user, and those of a run on the platform."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

from .errors import LabdataError


@dataclass(frozen=True)
class PlatformRun:
    """The run on the platform that this script is."""

    job_execution_id: str
    file_id: str | None = None
    """The file that triggered the run or was given with it."""
    source_job_execution_id: str | None = None
    """The execution whose end triggered the run."""
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    """The run's parameters, including defaults."""


@dataclass(frozen=True)
class Connection:
    """Address and key of the platform."""

    base_url: str
    """Without `/api/v1` and without a slash at the end."""
    api_key: str
    platform_run: PlatformRun | None


def connection(base_url: str | None, api_key: str | None) -> Connection:
    """Fill what is not given from the environment."""
    found_url, found_key = os.environ.get("LABDATA_BASE_URL"), os.environ.get("LABDATA_API_KEY")
    url, key = base_url or found_url, api_key or found_key
    if not url:
        message = "no address: set LABDATA_BASE_URL, or call connect(base_url=…)"
        raise LabdataError(message)
    if not key:
        message = "no API key: set LABDATA_API_KEY, or call connect(api_key=…)"
        raise LabdataError(message)
    # A script that names another platform or key does not act for the run that it is part of.
    run = _platform_run() if (url, key) == (found_url, found_key) else None
    url = url.rstrip("/")
    url = url.removesuffix("/api/v1")
    return Connection(url, key.strip(), run)


def _platform_run() -> PlatformRun | None:
    execution = os.environ.get("LABDATA_JOB_EXECUTION_ID")
    if not execution:
        return None
    return PlatformRun(
        job_execution_id=execution,
        file_id=os.environ.get("LABDATA_FILE_ID") or None,
        source_job_execution_id=os.environ.get("LABDATA_SOURCE_JOB_EXECUTION_ID") or None,
        parameters=json.loads(os.environ.get("LABDATA_PARAMETERS") or "{}"),
    )
