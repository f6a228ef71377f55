"""Masks of images as the platform takes them: PNG in base64, white on transparent."""

from __future__ import annotations

import base64
import os
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from labdata_client.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def image_id(file: str | Mapping[str, Any]) -> str:
    """Return the id of a file that is given by it, or by its record."""
    return file if isinstance(file, str) else str(file["file_id"])


def annotation(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an annotation with its mask as text."""
    if "mask" not in given or "label" not in given:
        message = "an annotation needs a `mask` and a `label`"
        raise InvalidArgument(message)
    return {**given, "mask": encoded(given["mask"])}


def encoded(mask: Any) -> str:
    """Return a mask as base64: of that text, the bytes or the path of a PNG, or rows of truth values."""
    if isinstance(mask, str):
        return mask
    if isinstance(mask, os.PathLike):
        mask = Path(cast("os.PathLike[str]", mask)).read_bytes()
    if isinstance(mask, (bytes, bytearray, memoryview)):
        return base64.b64encode(cast("bytes", mask)).decode()
    rows = mask.tolist() if hasattr(mask, "tolist") else mask
    return base64.b64encode(png(rows)).decode()


def png(rows: Sequence[Sequence[Any]]) -> bytes:
    """Return a PNG of a bit per pixel: white where a value is true, and transparent elsewhere."""
    width = len(rows[0]) if rows else 0
    if width == 0 or any(len(row) != width for row in rows):
        message = "a mask has rows of one length"
        raise InvalidArgument(message)
    padding = "0" * (-width % 8)
    packed = bytearray()
    for row in rows:
        bits = "".join("1" if value else "0" for value in row) + padding
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
