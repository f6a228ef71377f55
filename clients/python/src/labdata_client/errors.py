"""Errors of the client: one class per status that a caller may want to handle."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ._html import table

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    import httpx


ARROW = "application/vnd.apache.arrow.stream"


class LabdataError(Exception):
    """Base class of all errors of this package."""

    job_execution_id: str | None = None
    """Execution under which the batches of a write stay that were written before the one that failed."""


class ConnectionFailed(LabdataError, ConnectionError):
    """The platform did not respond within the time for retries."""


class InvalidArgument(LabdataError, ValueError, TypeError):
    """An argument, a row or a frame that cannot be sent; nothing of it was sent."""


class MissingLibrary(LabdataError, ModuleNotFoundError):
    """An optional library is needed; the message names the extra to install."""


class LocalFileError(LabdataError, OSError):
    """A file of this machine cannot be read or written."""


class LocalFileNotFound(LocalFileError, FileNotFoundError):
    """There is no such file on this machine."""


class ApiError(LabdataError):
    """An answer of the platform other than success."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        request_id: str | None,
        code: str | None = None,
        detail: Any = None,
    ) -> None:
        self.status = status
        """HTTP status."""
        self.code = code
        """Stable reason, such as `not_found`; None for a 422 and for errors of a storage."""
        self.request_id = request_id
        """`X-Request-Id` of the answer; the server's log line has it too."""
        self.detail = detail
        """The answer's `detail`."""
        suffix = f" (request {request_id})" if request_id else ""
        super().__init__(f"{status}: {message}{suffix}")

    def __reduce__(self) -> tuple[Any, ...]:
        # The arguments of the constructor are keywords, and other than those of the exception.
        return _restored, (type(self), self.args), self.__dict__


def _restored(kind: type[ApiError], arguments: tuple[Any, ...]) -> ApiError:
    error = kind.__new__(kind)
    error.args = arguments
    return error


class BadRequest(ApiError):
    """400: the request cannot be carried out; nothing was changed."""


class Unauthorized(ApiError):
    """401: no key, or one that is unknown, revoked or expired."""


class Forbidden(ApiError):
    """403: the key lacks a scope."""


class NotFound(ApiError):
    """404: an unknown id, table or path."""


class Conflict(ApiError):
    """409: the name or path is taken."""


class Invalid(ApiError):
    """422: the request does not have the right shape."""


class Busy(ApiError):
    """429 or 503: still refused after all retries."""


@dataclass(frozen=True)
class Problem:
    """One problem of a refused write."""

    path: str | None
    """Location such as `tables[0].rows[17].volume`; None for the whole request."""
    message: str
    code: str | None = None
    """Stable reason, such as `unknown_column`."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class WriteRefused(BadRequest):
    """400 of a write: nothing of the request was written.

    Earlier batches of a large write are: `job_execution_id` is the execution that holds them.
    """

    MAX_SHOWN = 10

    def __init__(self, problems: Sequence[Problem], *, request_id: str | None) -> None:
        self.problems = list(problems)
        """All problems, with positions in the tables and series as given to `write`."""
        shown = "".join(f"\n  {problem}" for problem in self.problems[: self.MAX_SHOWN])
        more = len(self.problems) - self.MAX_SHOWN
        if more > 0:
            shown += f"\n  … and {more} more"
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        super().__init__(
            f"the write has {count}:{shown}", status=400, request_id=request_id, code="invalid_write"
        )

    def _repr_html_(self) -> str:
        rows = [(problem.path or "", problem.message) for problem in self.problems]
        caption = f"Refused: {len(rows)} problems"
        if self.job_execution_id is not None:
            caption += f"; the batches before it stay under execution {self.job_execution_id}"
        return table(("path", "problem"), rows, caption=caption)


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    422: Invalid,
    429: Busy,
    503: Busy,
}


def error_from(response: httpx.Response) -> ApiError:
    """Return the error that an answer stands for; its body must have been read."""
    request_id = response.headers.get("X-Request-Id")
    try:
        body: Any = response.json()
    except (json.JSONDecodeError, UnicodeDecodeError):
        body = None
    if isinstance(body, dict):
        fields = cast("dict[str, Any]", body)
        if response.status_code == 400 and isinstance(fields.get("errors"), list):
            problems = [
                Problem(
                    cast("str | None", problem.get("path")),
                    str(problem.get("message")),
                    cast("str | None", problem.get("code")),
                )
                for problem in cast("list[dict[str, Any]]", fields["errors"])
            ]
            return WriteRefused(problems, request_id=request_id)
        detail, code = fields.get("detail"), fields.get("code")
    else:
        detail, code = _storage_error(response.text), None
    kind = _BY_STATUS.get(response.status_code, ApiError)
    message = _sentence(detail) or response.reason_phrase
    if response.has_redirect_location:
        message += f": the address is now {response.headers['Location']}"
    return kind(message, status=response.status_code, request_id=request_id, code=code, detail=detail)


def body_of(response: httpx.Response) -> Any:
    """Return the JSON of a success."""
    try:
        return response.json()
    except ValueError:
        raise _other_program(response, "JSON") from None


def arrow_of(response: httpx.Response) -> bytes:
    """Return the Arrow stream of a success."""
    if not response.headers.get("Content-Type", "").startswith(ARROW):
        raise _other_program(response, "an Arrow stream")
    return response.content


def _other_program(response: httpx.Response, wanted: str) -> LabdataError:
    kind = response.headers.get("Content-Type", "no type")
    message = (
        f"{response.request.url} answered {response.status_code} with {kind} instead of {wanted}: the address"
        " may be that of a proxy or of another program"
    )
    return LabdataError(message)


@contextlib.contextmanager
def local_files() -> Generator[None, None, None]:
    """Raise errors of this machine's files as errors of this package."""
    try:
        yield
    except LabdataError:
        raise
    except OSError as error:
        kind = LocalFileNotFound if isinstance(error, FileNotFoundError) else LocalFileError
        parts = (error.errno, error.strerror, error.filename) if error.errno is not None else error.args
        raise kind(*parts) from error


def _sentence(detail: Any) -> str:
    if not isinstance(detail, list):
        return "" if detail is None else str(detail)
    parts: list[str] = []
    for problem in cast("list[dict[str, Any]]", detail):
        location = ".".join(str(part) for part in cast("list[Any]", problem.get("loc", ())))
        parts.append(f"{location}: {problem.get('msg')}")
    return "; ".join(parts)


def _storage_error(text: str) -> str | None:
    """Code and message of the XML that storages answer with."""
    found = [re.search(rf"<{name}>([^<]*)</{name}>", text) for name in ("Code", "Message")]
    return ": ".join(match.group(1) for match in found if match) or None
