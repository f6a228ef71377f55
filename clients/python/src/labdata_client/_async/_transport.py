"""Requests with a key, retries and errors."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import httpx

from labdata_client._arguments import seconds
from labdata_client._json import encode
from labdata_client._links import next_page
from labdata_client._proxies import proxy_hint, with_proxies
from labdata_client._retry import (
    FAILED,
    FIRST_CONTACT_SECONDS,
    LOST_CONNECTION,
    NEVER_ARRIVED,
    UNKNOWN_OUTCOME,
    Patience,
    is_repeatable,
)
from labdata_client._waiting import async_sleep
from labdata_client.errors import ConnectionFailed, InvalidArgument, LabdataError, body_of, error_from

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Mapping

    from labdata_client._environment import Connection

CREATING = frozenset({"POST"})
SUCCESS = 300


class AsyncTransport:
    """One platform and one key."""

    def __init__(
        self,
        connection: Connection,
        *,
        timeout: float,
        retry_seconds: float,
        verify: bool | ssl.SSLContext,
    ) -> None:
        self.base_url = connection.base_url
        self.retry_seconds = seconds(retry_seconds, "retry_seconds")
        timeout = seconds(timeout, "timeout")
        self._headers = {"Authorization": f"Bearer {connection.api_key}"}
        # The key goes with each request to the platform, and with none to a signed URL.
        self._client = with_proxies(
            httpx.AsyncClient,
            connection.base_url,
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0), pool=None),
            headers={"User-Agent": "labdata-client"},
            verify=verify,
        )
        self._answered = False

    @property
    def authorization(self) -> Mapping[str, str]:
        """Headers that show the key, for requests to the platform."""
        return self._headers

    @property
    def client(self) -> httpx.AsyncClient:
        """The client of httpx, which must not be closed."""
        if self._client.is_closed:
            message = "this client was closed: connect again"
            raise LabdataError(message)
        return self._client

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        content: bytes | None = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        creates: bool = False,
    ) -> httpx.Response:
        """Send a request until it is answered; every answer but success is raised as an error.

        A request that creates something gets an `Idempotency-Key`, so that sending it twice has one
        effect. A POST without one is not sent again where it may have arrived.
        """
        repeatable = is_repeatable(method, path, has_key=creates)
        sent = {**self._headers, **(headers or {})}
        if creates:
            sent["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        if json is not None:
            content = encode(json)
        if content is not None:
            sent.setdefault("Content-Type", "application/json")
        try:
            request = self.client.build_request(
                method,
                f"{self.base_url}/api/v1{path}",
                content=content,
                params=params,
                headers=sent,
            )
        except (httpx.InvalidURL, TypeError, ValueError) as error:
            message = f"{method} {path}: the request cannot be sent: {error}"
            raise InvalidArgument(message) from error
        patience = Patience(self.retry_seconds)
        while True:
            try:
                response = await self.client.send(request)
            except FAILED as error:
                pause = patience.pause(at_most=None if self._answered else FIRST_CONTACT_SECONDS)
                may_repeat = repeatable or isinstance(error, NEVER_ARRIVED)
                if pause is None or not may_repeat or not isinstance(error, LOST_CONNECTION):
                    place = f"{method} {self.base_url}/api/v1{path}"
                    message = f"{place}: no answer ({type(error).__name__}: {error})"
                    raise ConnectionFailed(message + proxy_hint(error)) from error
            else:
                self._answered = True
                if response.status_code < SUCCESS:
                    return response
                refusal = error_from(response)
                pause = None
                if refusal.code in UNKNOWN_OUTCOME:
                    pause = patience.pause(response.headers) if repeatable else None
                elif response.status_code in (429, 503):
                    pause = patience.pause(response.headers)
                if pause is None:
                    raise refusal
            await async_sleep(pause)

    async def pages(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[list[dict[str, Any]]]:
        """Follow the pages of a list to its end."""
        following: str | None = path
        while following is not None:
            response = await self.request(method, following, json=json, params=params)
            yield body_of(response)
            following, params = next_page(response), None
