"""Forms with a file, as `multipart/form-data`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from .errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def encode_form(
    fields: Mapping[str, Any], name: str, content_type: str, content: bytes
) -> tuple[bytes, dict[str, str]]:
    """Return the body with the fields and the file, and its headers; a list is a repeated field.

    The file's name goes as `filename*` (RFC 8187), which has a form for every character; `filename` would
    need escapes that each server reads in its own way.
    """
    boundary = os.urandom(16).hex()
    if not content_type.isprintable():
        message = f"the content type {content_type!r} has characters that no content type has"
        raise InvalidArgument(message)
    try:
        disposition = f"name=\"file\"; filename*=UTF-8''{quote(name, safe='')}"
        parts = [_part(boundary, f'name="{field}"', value.encode()) for field, value in _flat(fields)]
        parts.append(_part(boundary, disposition, content, content_type))
    except UnicodeEncodeError as error:
        message = f"the file's name or a field of it is no text: {error}"
        raise InvalidArgument(message) from error
    body = b"".join(parts) + f"--{boundary}--\r\n".encode()
    return body, {"Content-Type": f"multipart/form-data; boundary={boundary}"}


def _flat(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for field, value in fields.items():
        items = cast("list[Any]", value) if isinstance(value, list) else [value]
        for item in items:
            yield field, str(item)


def _part(boundary: str, disposition: str, content: bytes, content_type: str | None = None) -> bytes:
    kind = f"\r\nContent-Type: {content_type}" if content_type else ""
    head = f"--{boundary}\r\nContent-Disposition: form-data; {disposition}{kind}\r\n\r\n"
    return b"%b%b\r\n" % (head.encode(), content)
