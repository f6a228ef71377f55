"""Masks of images as the platform takes them: PNG in base64, white on transparent."""

from __future__ import annotations

import base64
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ._arguments import key_text
from .errors import InvalidArgument, local_files

if TYPE_CHECKING:
    from collections.abc import Sequence

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def image_id(file: str | Mapping[str, Any]) -> str:
    """Return the id of a file that is given by it, or by its record."""
    found = file.get("file_id") if isinstance(file, Mapping) else file
    return key_text(found, "file")


def annotation(given: Any) -> dict[str, Any]:
    """Return an annotation with its mask as text."""
    if not isinstance(given, Mapping) or "mask" not in given or "label" not in given:
        message = "an annotation is a mapping with a `mask` and a `label`"
        raise InvalidArgument(message)
    fields = cast("Mapping[str, Any]", given)
    return {**fields, "mask": encoded(fields["mask"])}


def encoded(mask: Any) -> str:
    """Return a mask as base64: of the bytes or the path of a PNG, of that text, or of rows of truth values.

    A text is a path if there is such a file.
    """
    if isinstance(mask, os.PathLike) or (isinstance(mask, str) and os.path.isfile(mask)):
        with local_files():
            mask = Path(cast("os.PathLike[str]", mask)).read_bytes()
    if isinstance(mask, str):
        return _checked(mask)
    if isinstance(mask, (bytes, bytearray, memoryview)):
        return base64.b64encode(cast("bytes", mask)).decode()
    rows = mask.tolist() if hasattr(mask, "tolist") else mask
    return base64.b64encode(png(rows)).decode()


def _checked(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except ValueError as error:
        message = f"the mask {text!r:.80} is neither a file of this machine nor base64"
        raise InvalidArgument(message) from error
    return text


def _is_set(value: Any) -> bool:
    """Whether a value is true; one that is missing (None, NaN) is not."""
    if not isinstance(value, (int, float)) and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, (int, float)):
        return bool(value) and value == value  # noqa: PLR0124 - not so for NaN
    if value is None:
        return False
    message = f"a mask has truth values or numbers, not {type(value).__name__}: {value!r:.80}"
    raise InvalidArgument(message)


def png(rows: Sequence[Sequence[Any]]) -> bytes:
    """Return a PNG of a bit per pixel: white where a value is true, and transparent elsewhere."""
    try:
        width = len(rows[0]) if rows else 0
        is_even = all(len(row) == width for row in rows)
    except (TypeError, ValueError, LookupError):
        width, is_even = 0, False
    if width == 0 or not is_even:
        message = "a mask is the path or the bytes of a PNG, or has rows of one length"
        raise InvalidArgument(message)
    padding = "0" * (-width % 8)
    packed = bytearray()
    for row in rows:
        bits = "".join("1" if _is_set(value) else "0" for value in row) + padding
        # The filter of the row: none.
        packed += b"\0" + int(bits, 2).to_bytes(len(bits) // 8, "big")
    header = struct.pack(">IIBBBBB", width, len(rows), 1, 3, 0, 0, 0)
    chunks = (
        (b"IHDR", header),
        (b"PLTE", b"\xff" * 6),
        (b"tRNS", b"\0\xff"),
        (b"IDAT", zlib.compress(bytes(packed))),
        (b"IEND", b""),
    )
    parts = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    ]
    return SIGNATURE + b"".join(parts)
