# Generated from ../_async by scripts/generate_sync.py: change that one.
"""Uploads and downloads: streamed, resumed, in constant memory."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from labdata_client._arguments import key_text, moment, path_part
from labdata_client._forms import encode_form
from labdata_client._progress import Progress
from labdata_client._results import Record
from labdata_client._retry import FAILED, LOST_CONNECTION, Patience
from labdata_client._uploads import CHUNK_BYTES, ONE_REQUEST_BYTES, Opened
from labdata_client._waiting import blocking, sleep
from labdata_client.errors import (
    ApiError,
    ConnectionFailed,
    InvalidArgument,
    LocalFileError,
    body_of,
    error_from,
    local_files,
)

if TYPE_CHECKING:
    import datetime
    from collections.abc import Iterator, Mapping

    import httpx

    from ._transport import Transport

FORMATS = {"": "csv", ".csv": "csv", ".arrow": "arrow", ".arrows": "arrow", ".parquet": "parquet"}
EXTENSIONS = {"arrow": "arrows"}


@dataclass(frozen=True)
class Source:
    """Where a download comes from."""

    name: str
    url: str
    headers: Mapping[str, str] | None = None


def upload(
    transport: Transport,
    opened: Opened,
    fields: Mapping[str, str],
    *,
    idempotency_key: str | None,
    progress: bool | None,
) -> Record:
    """Upload a file: in one request where it is small, else through a signed URL."""
    if opened.size <= ONE_REQUEST_BYTES:
        content = blocking(opened.read)
        body, headers = encode_form(fields, opened.name, opened.content_type, content)
        response = transport.request(
            "POST",
            "/files",
            content=body,
            headers=headers,
            creates=True,
            idempotency_key=idempotency_key,
        )
        return Record(body_of(response))
    record = {"file_name": opened.name, "content_type": opened.content_type, **fields}
    with Progress(progress, opened.name, "B", opened.size) as bar:
        file_id = _send(transport, opened, record, idempotency_key, bar)
    response = transport.request("POST", f"/files/{file_id}/confirm-upload")
    return Record(body_of(response))


def _send(
    transport: Transport,
    opened: Opened,
    body: Mapping[str, str],
    idempotency_key: str | None,
    bar: Progress,
) -> str:
    """Put the bytes where the platform says, and return the file's id."""
    renewed = False
    while True:
        response = transport.request(
            "POST",
            "/files/upload-url",
            json=body,
            creates=True,
            idempotency_key=None if renewed else idempotency_key,
        )
        target = body_of(response)
        try:
            _put(transport, opened, target["upload_url"], target["headers"], bar)
        except ApiError as error:
            if renewed or "ExpiredToken" not in str(error):
                raise
            renewed = True
        else:
            return target["file_id"]


def _put(transport: Transport, opened: Opened, url: str, headers: Mapping[str, str], bar: Progress) -> None:
    patience = Patience(transport.retry_seconds)
    sent = {**headers, "Content-Length": str(opened.size)}
    while True:
        bar.restart()
        try:
            response = transport.client.put(url, content=_chunks(opened, bar), headers=sent)
        except FAILED as error:
            pause = patience.pause() if isinstance(error, LOST_CONNECTION) else None
            if pause is None:
                message = f"the upload of {opened.name} was interrupted ({error or type(error).__name__})"
                raise ConnectionFailed(message) from error
        else:
            # 412: an earlier attempt, whose answer was lost, has stored the file.
            if response.is_success or response.status_code == 412:
                return
            # 409: the storage has not noticed yet that an earlier attempt ended.
            if response.status_code not in (409, 429, 503):
                raise error_from(response)
            pause = patience.pause(None if response.status_code == 409 else response.headers)
            if pause is None:
                raise error_from(response)
        sleep(pause)


def _chunks(opened: Opened, bar: Progress) -> Iterator[bytes]:
    blocking(opened.rewind)
    left = opened.size
    while left > 0:
        size = min(CHUNK_BYTES, left)
        chunk = blocking(lambda size=size: opened.read(size))
        if not chunk:
            message = f"{opened.name} became shorter while it was uploaded"
            raise LocalFileError(message)
        left -= len(chunk)
        yield chunk
        bar.advance(len(chunk))


def download(transport: Transport, file_id: str, to: Path | None, *, progress: bool | None) -> Path:
    """Download a file; the target appears once it is complete."""
    record = body_of(transport.request("GET", f"/files/{path_part(file_id, 'file_id')}/content"))
    name = Path(record["file_name"] or file_id).name
    path = to if to is not None else Path(name)
    if path.is_dir():
        path /= name
    kilobytes: int | None = record["size_kilobytes"]
    with Progress(progress, name, "B", None if kilobytes is None else kilobytes * 1024) as bar:
        _save(transport, Source(file_id, record["download_url"]), path, bar)
    return path


def send_table(
    transport: Transport, path: str, opened: Opened, fields: Mapping[str, Any], *, creates: bool
) -> Record:
    """Send a file that has a table."""
    try:
        content = blocking(opened.read)
    finally:
        opened.close()
    body, headers = encode_form(fields, opened.name, opened.content_type, content)
    response = transport.request("POST", path, content=body, headers=headers, creates=creates)
    return Record(body_of(response))


def export(
    transport: Transport,
    table: str,
    target: Path,
    file_format: str | None,
    *,
    as_of: datetime.datetime | str | None = None,
    progress: bool | None,
) -> Path:
    """Save a whole table as a file, or into a directory; the file appears once it is complete."""
    is_directory = target.is_dir()
    if file_format is None:
        form = _format_of("" if is_directory else target.suffix)
    else:
        form = key_text(file_format, "file_format")
    path = target / f"{table}.{EXTENSIONS.get(form, form)}" if is_directory else target
    url = (
        f"{transport.base_url}/api/v1/tables/{path_part(table, 'table')}/export?format={quote(form, safe='')}"
    )
    if as_of is not None:
        url += f"&as_of={quote(moment(as_of, 'as_of'), safe='')}"
    with Progress(progress, path.name, "B", None) as bar:
        _save(transport, Source(table, url, transport.authorization), path, bar)
    return path


def _format_of(suffix: str) -> str:
    form = FORMATS.get(suffix.lower())
    if form is None:
        ends = ", ".join(name for name in FORMATS if name)
        message = f"no format has the end {suffix!r}: use {ends}, or choose one with file_format"
        raise InvalidArgument(message)
    return form


def _save(transport: Transport, source: Source, path: Path, bar: Progress) -> None:
    partial = path.with_name(path.name + ".part")
    try:
        with local_files():
            with partial.open("wb") as file:
                _receive(transport, source, file, bar)
            os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            partial.unlink()
        raise


def _receive(transport: Transport, source: Source, file: Any, bar: Progress) -> None:
    patience = Patience(transport.retry_seconds)
    etag: str | None = None
    while True:
        offset = file.tell()
        headers = dict(source.headers or {})
        if offset and etag:
            headers.update({"Range": f"bytes={offset}-", "If-Range": etag})
        try:
            with transport.client.stream("GET", source.url, headers=headers) as response:
                pause = _refused(response, patience)
                if pause is None:
                    if response.status_code != 206 and offset:
                        file.seek(0)
                        file.truncate()
                        bar.restart()
                    etag = response.headers.get("ETag")
                    for chunk in response.iter_bytes(CHUNK_BYTES):
                        blocking(lambda chunk=chunk: file.write(chunk))
                        bar.advance(len(chunk))
                        patience.renew()
                    return
        except FAILED as error:
            pause = patience.pause() if isinstance(error, LOST_CONNECTION) else None
            if pause is None:
                message = f"the download of {source.name} was interrupted ({error or type(error).__name__})"
                raise ConnectionFailed(message) from error
        sleep(pause)


def _refused(response: httpx.Response, patience: Patience) -> float | None:
    """Return None for a success, or the pause before the next attempt."""
    if response.is_success:
        return None
    response.read()
    pause = patience.pause(response.headers) if response.status_code in (429, 503) else None
    if pause is None:
        raise error_from(response)
    return pause
