"""Program of one reading: a request and a file on standard input, the result on standard output.

Messages are frames: four bytes of length, big-endian, then the bytes.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import warnings
from typing import Any, BinaryIO


def main() -> None:
    """Serves one request, and ends the process."""
    output = os.fdopen(os.dup(1), "wb")
    # What readers print is no part of the result.
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    request = json.loads(frame(sys.stdin.buffer))
    content = frame(sys.stdin.buffer)
    from .reading import read

    result = clean(read(content, request["file_name"], request["reader"], request["preferred"], request["timezone"]))
    body = json.dumps(result, allow_nan=False, separators=(",", ":")).encode()
    if len(body) > request["output_limit"]:
        body = json.dumps({"too_large": len(body)}).encode()
    output.write(struct.pack(">I", len(body)))
    output.write(body)
    output.flush()
    os._exit(0)


def clean(value: Any) -> Any:
    """Returns a result without characters that no database stores: NUL, and halves of surrogate pairs."""
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean(item) for item in value]
    return value


def frame(stream: BinaryIO) -> bytes:
    """Reads one frame."""
    (length,) = struct.unpack(">I", exactly(stream, 4))
    return exactly(stream, length)


def exactly(stream: BinaryIO, length: int) -> bytes:
    """Reads that many bytes."""
    content = stream.read(length)
    if len(content) != length:
        raise EOFError("the request is incomplete")
    return content
