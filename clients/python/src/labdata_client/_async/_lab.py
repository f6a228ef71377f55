"""The client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._administration import AsyncAdministration
from ._execution import AsyncExecution

if TYPE_CHECKING:
    import ssl
    from types import TracebackType


def connect_async(
    base_url: str | None = None,
    api_key: str | None = None,
    *,
    timeout: float = 120.0,
    retry_seconds: float = 120.0,
    progress: bool | None = None,
    verify: bool | ssl.SSLContext = True,
) -> AsyncLab:
    """Return a client of the platform at `base_url`.

    Address and key come from `LABDATA_BASE_URL` and `LABDATA_API_KEY` unless given; a job on the platform
    has both. A request is retried for `retry_seconds` after 429, 503 and lost connections. Progress bars
    are shown on a terminal and in notebooks unless `progress` says otherwise. No request is sent yet.
    """
    return AsyncLab(
        base_url, api_key, timeout=timeout, retry_seconds=retry_seconds, progress=progress, verify=verify
    )


class AsyncLab(AsyncAdministration):
    """A client of one platform, with one key."""

    async def close(self) -> None:
        """Close all connections."""
        await self.transport.close()

    async def __aenter__(self) -> AsyncLab:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<labdata at {self.transport.base_url}>"

    def execution(
        self,
        job_name: str | None = None,
        *,
        job_id: str | None = None,
        timeout_minutes: int | None = None,
        revert_on_error: bool = False,
    ) -> AsyncExecution:
        """Return an execution, to be opened by a `with` block.

        After an exception the execution is failed, and with `revert_on_error` also reverted. Inside a run
        on the platform it is that run, and name and time limit do not apply.
        """
        return AsyncExecution(
            self,
            job_name=job_name,
            job_id=job_id,
            timeout_minutes=timeout_minutes,
            revert_on_error=revert_on_error,
        )
