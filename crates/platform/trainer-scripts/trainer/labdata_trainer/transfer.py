"""Fetches inputs and stores outputs through signed URLs.

Messages never contain a URL: it is a secret.
"""

from __future__ import annotations

import http.client
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from .failure import Exit, Failure

TIMEOUT_SECONDS = 60
ATTEMPTS = 4
FIRST_DELAY_SECONDS = 0.5
CONCURRENT_FETCHES = 8


@dataclass(frozen=True)
class Upload:
    """Signed URL for one PUT, with the headers that its signature covers."""

    url: str
    headers: dict[str, str]


def fetch(location: str, target: Path, what: str) -> Path:
    """Returns a local path for a URL or a path.

    Downloads a URL to `target`. Relative paths start at the working directory, which is the run
    directory. `what` names the input in messages.
    """
    parts = urllib.parse.urlsplit(location)
    if parts.scheme in ("http", "https"):
        retry(lambda: download(location, target), f"{what} cannot be fetched", "input_unreachable")
        return target
    path = Path(urllib.parse.unquote(parts.path)) if parts.scheme == "file" else Path(location)
    if not path.is_file():
        raise Failure(Exit.INTERNAL, "input_unreachable", f"{what} cannot be fetched: no such file")
    return path.resolve()


def fetch_all(locations: dict[str, str], directory: Path) -> dict[str, Path]:
    """Fetches files, several at once. Keys are file ids and stay the keys of the result."""
    directory.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(CONCURRENT_FETCHES) as pool:
        # Numbered, since an id from outside is no file name.
        fetched = pool.map(
            lambda item: fetch(item[1][1], directory / str(item[0]), f"The file {item[1][0]}"),
            enumerate(locations.items()),
        )
        return dict(zip(locations, fetched, strict=True))


def download(url: str, target: Path) -> None:
    """Streams one URL into a file."""
    with (
        urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response,
        target.open("wb") as file,
    ):
        shutil.copyfileobj(response, file, 1 << 20)
        expected = response.headers.get("Content-Length")
    if expected is not None and target.stat().st_size != int(expected):
        raise ConnectionError("the connection ended early")


def store(upload: Upload, path: Path, what: str) -> None:
    """Sends a file to a signed URL."""
    attempts = 0

    def put() -> None:
        nonlocal attempts
        attempts += 1
        headers = {
            "Content-Type": "application/octet-stream",
            **{name.title(): value for name, value in upload.headers.items()},
            "Content-Length": str(path.stat().st_size),
        }
        with path.open("rb") as file:
            request = urllib.request.Request(upload.url, file, headers, method="PUT")
            try:
                urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS).close()
            except urllib.error.HTTPError as error:
                # An earlier attempt stored it, but its answer was lost.
                if error.code != HTTPStatus.PRECONDITION_FAILED or attempts == 1:
                    raise

    retry(put, f"{what} cannot be stored", "output_unreachable")


def retry(action: Callable[[], None], what: str, code: str) -> None:
    """Calls the action until it succeeds, with growing delays between attempts."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return action()
        except urllib.error.HTTPError as error:
            reason = f"HTTP status {error.code}"
            is_final = error.code < 500 and error.code not in (408, 429)
        except (OSError, http.client.HTTPException) as error:
            reason = str(getattr(error, "reason", None) or error)
            is_final = getattr(error, "errno", None) in (28,)  # ENOSPC
        if is_final or attempt == ATTEMPTS:
            raise Failure(Exit.INTERNAL, code, f"{what}: {reason}")
        time.sleep(FIRST_DELAY_SECONDS * 2 ** (attempt - 1))
    return None
