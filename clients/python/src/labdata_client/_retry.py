"""When a request is sent again, and after which pause."""

from __future__ import annotations

import random
import re
import time
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import Mapping

LOST_CONNECTION = (httpx.NetworkError, httpx.TimeoutException, httpx.RemoteProtocolError)
"""Errors that leave open whether the request arrived."""

FAILED = (httpx.HTTPError, httpx.InvalidURL, UnicodeError)
"""Every error of a request that was not answered, those of its address, headers and proxy too."""

NEVER_ARRIVED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""Those of them after which the server has seen nothing."""

UNKNOWN_OUTCOME = frozenset({"outcome_unknown", "timed_out"})
"""Codes of errors that leave open whether the request had its effect."""

_REPEATABLE_POST = re.compile(r"/tools/.+|/ml-models/predict|/files/[^/]+/confirm-upload|/.+/revert")

FIRST_CONTACT_SECONDS = 3.0
"""Retries before the first answer of a server: a wrong address should be noticed soon."""

UNANNOUNCED_SECONDS = 30.0
"""Retries of a 503 without `Retry-After`, which may be about a setting and not about load."""

MAX_PAUSE_SECONDS = 10.0


def is_repeatable(method: str, path: str, *, has_key: bool) -> bool:
    """Whether a request may be sent twice: it only reads, or has its effect once.

    A POST with an `Idempotency-Key` is. One without, such as that of an agent's run, is not, unless its
    operation is known to be.
    """
    return has_key or method.upper() != "POST" or _REPEATABLE_POST.fullmatch(path) is not None


class Patience:
    """The time left for retries of one request."""

    def __init__(self, seconds: float) -> None:
        self._started = time.monotonic()
        self._seconds = seconds
        self._attempts = 0

    def renew(self) -> None:
        """Give a request that made progress the full time again."""
        self._started = time.monotonic()
        self._attempts = 0

    def pause(
        self, headers: Mapping[str, str] | None = None, *, at_most: float | None = None
    ) -> float | None:
        """Return the seconds to wait before the next attempt, or None to give up."""
        pause = min(MAX_PAUSE_SECONDS, 0.2 * 2**self._attempts) * random.uniform(0.75, 1.25)
        self._attempts += 1
        if headers is not None:
            asked = _retry_after(headers.get("Retry-After"))
            if asked is None:
                at_most = min(UNANNOUNCED_SECONDS, self._seconds)
            else:
                pause = max(pause, asked)
        limit = self._seconds if at_most is None else min(at_most, self._seconds)
        elapsed = time.monotonic() - self._started
        return pause if elapsed + pause <= limit else None


def _retry_after(value: str | None) -> float | None:
    try:
        return max(0.0, float(value)) if value is not None else None
    except ValueError:
        return None
