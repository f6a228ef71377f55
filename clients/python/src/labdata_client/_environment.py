"""Environment variables: those of a user, and those of a run on the platform."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from typing import Any

import httpx

from .errors import InvalidArgument, LabdataError


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
    key = _checked_key(key)
    return Connection(_checked_url(url), key, run)


def _checked_url(given: str) -> str:
    """Return the address without `/api/v1` and without a slash at the end."""
    wanted = "an address is like https://labdata.example.org or http://127.0.0.1:8080"
    try:
        url = httpx.URL(given.strip())
    except (httpx.InvalidURL, ValueError, TypeError, AttributeError) as error:
        message = f"the address {given!r} cannot be used ({error}): {wanted}"
        raise InvalidArgument(message) from error
    if (url.port or 0) > 65_535:
        message = f"the address {given!r} has the port {url.port}, and ports end at 65535: {wanted}"
        raise InvalidArgument(message)
    is_host = re.fullmatch(r"[\w.:-]+", url.host) is not None
    if url.scheme not in ("http", "https") or not is_host:
        message = f"the address {given!r} does not begin with http:// or https:// and a host: {wanted}"
        raise InvalidArgument(message)
    if url.query or url.fragment or url.userinfo:
        message = f"the address of {url.host} has more than host, port and path: {wanted}"
        raise InvalidArgument(message)
    return given.strip().rstrip("/").removesuffix("/api/v1")


def _checked_key(given: str) -> str:
    key = given.strip() if isinstance(given, str) else ""  # pyright: ignore[reportUnnecessaryIsInstance]
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        message = (
            "the API key is empty, or has blanks or characters that no key has: copy it again as it was"
            " shown, ldk_…"
        )
        raise InvalidArgument(message)
    return key


def _platform_run() -> PlatformRun | None:
    execution = os.environ.get("LABDATA_JOB_EXECUTION_ID")
    if not execution:
        return None
    return PlatformRun(
        job_execution_id=execution,
        file_id=os.environ.get("LABDATA_FILE_ID") or None,
        source_job_execution_id=os.environ.get("LABDATA_SOURCE_JOB_EXECUTION_ID") or None,
        parameters=_parameters(),
    )


def _parameters() -> dict[str, Any]:
    text = os.environ.get("LABDATA_PARAMETERS") or "{}"
    try:
        return json.loads(text)
    except ValueError as error:
        message = f"LABDATA_PARAMETERS is no JSON: {text!r:.100}"
        raise InvalidArgument(message) from error
