"""The `Link` header of lists."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx


def next_page(response: httpx.Response) -> str | None:
    """Return path and query of the next page, relative to the platform's address.

    The address in the link is the public one; requests stay at the address that the client was given.
    """
    link = response.headers.get("Link", "")
    match = re.search(r'<([^>]*)>\s*;\s*rel="?next"?', link)
    if match is None:
        return None
    url = response.request.url.join(match[1])
    _, _, path = url.raw_path.decode().partition("/api/v1")
    return path
