"""Waiting and blocking work, for the asynchronous client and for the generated one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    from typing import Callable

T = TypeVar("T")


async def async_sleep(seconds: float) -> None:
    """Pause the task."""
    await anyio.sleep(seconds)


def sleep(seconds: float) -> None:
    """Pause the thread."""
    time.sleep(seconds)


async def async_blocking(work: Callable[[], T]) -> T:
    """Do blocking work in a thread."""
    return await anyio.to_thread.run_sync(work)


def blocking(work: Callable[[], T]) -> T:
    """Do blocking work here."""
    return work()
