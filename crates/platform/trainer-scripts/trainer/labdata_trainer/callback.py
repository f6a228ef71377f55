"""Calls of the platform: JSON requests with the bearer token of the training.

Messages never contain the token.
"""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass
from typing import Any

from .numbers import finite
from .transfer import TIMEOUT_SECONDS, retry


@dataclass(frozen=True)
class Callback:
    """Address of the platform, and the token that permits to use it."""

    url: str
    token: str

    def post(self, body: dict[str, Any], timeout: float = TIMEOUT_SECONDS) -> bytes:
        """Sends one request and returns the answer. Raises what `urllib` raises."""
        text = json.dumps(finite(body), allow_nan=False, ensure_ascii=False)
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {self.token}",
        }
        request = urllib.request.Request(self.url, text.encode(), headers, method="POST")
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return response.read()

    def deliver(self, body: dict[str, Any], what: str, code: str) -> bytes:
        """Sends one request until it succeeds. Raises a failure with that code."""
        answer = b""

        def send() -> None:
            nonlocal answer
            answer = self.post(body)

        retry(send, what, code)
        return answer


def parse_callback(raw: Any) -> Callback | None:
    """Converts the JSON of a callback; none if it is absent."""
    return Callback(str(raw["url"]), str(raw["token"])) if raw else None
