"""Program of a warm process: reads one file after the other, each in a child of its own.

This process imports all readers, then forks a child for each file and never reads a byte of one itself. So the next
file finds the process as the first one did, whatever a file does to the child that reads it.

The child takes a request and a file from standard input and sends the result to standard output. Messages are frames:
four bytes of length, big-endian, then the bytes. The first frame says that the process is ready. When a child ends
without a result, or leaves processes behind, this process ends as well, because what the next child would find in the
pipes is unknown.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import shutil
import signal
import struct
import sys
import tempfile
import traceback
import warnings
from typing import Any, BinaryIO, NoReturn

# Exit code of a child that found the end of the input.
INPUT_ENDED = 3

# Requests of prctl(2).
SET_DUMPABLE = 4
SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Serves requests until the input ends."""
    output = os.fdopen(os.dup(1), "wb")
    # What readers print is no part of the result.
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    import_readers()
    # Orphans of a child become children of this process, which then sees them.
    control(SET_CHILD_SUBREAPER, 1)
    # Pages that the collector does not touch stay shared with the children.
    gc.collect()
    gc.freeze()
    send(output, b"ready")
    while True:
        # Children cannot attach to this process, nor write to its memory.
        control(SET_DUMPABLE, 0)
        directory = tempfile.mkdtemp()
        child = os.fork()
        if child == 0:
            control(SET_DUMPABLE, 1)
            serve(output, directory)
        _, status = os.waitpid(child, 0)
        shutil.rmtree(directory, ignore_errors=True)
        end_unless_reusable(os.waitstatus_to_exitcode(status))


def end_unless_reusable(code: int) -> None:
    """Ends this process, unless the child that ended with that code leaves room for the next one."""
    if code == INPUT_ENDED:
        os._exit(0)
    if code < 0:
        print(f"killed by {signal.Signals(-code).name}", file=sys.stderr, flush=True)
    if code != 0:
        os._exit(1)
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return
    print("processes of the reader are left", file=sys.stderr, flush=True)
    os._exit(1)


def import_readers() -> None:
    """Imports what readers need, which takes seconds."""
    from .reading import READERS

    importlib.import_module("allotropy.allotrope.allotrope")
    for reader in READERS.values():
        try:
            importlib.import_module(reader["parser"].split(":")[0])
        except Exception:
            # Its files say why, each time.
            traceback.print_exc()


def serve(output: BinaryIO, directory: str) -> NoReturn:
    """Serves one request, and ends the process."""
    try:
        os.chdir(directory)
        tempfile.tempdir = directory
        # Without a buffer: what follows the request belongs to the next child.
        stream = open(0, "rb", buffering=0, closefd=False)
        head = stream.read(1)
        if not head:
            os._exit(INPUT_ENDED)
        request = json.loads(frame(stream, head))
        content = frame(stream)
        send(output, response(request, content))
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def response(request: dict[str, Any], content: bytes) -> bytes:
    """Returns the result of a reading as JSON."""
    from .reading import read

    result = clean(read(content, request["file_name"], request["reader"], request["preferred"], request["timezone"]))
    body = json.dumps(result, allow_nan=False, separators=(",", ":")).encode()
    if len(body) > request["output_limit"]:
        body = json.dumps({"too_large": len(body)}).encode()
    return body


def clean(value: Any) -> Any:
    """Returns a result without characters that no database stores: NUL, and halves of surrogate pairs."""
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean(item) for item in value]
    return value


def control(request: int, value: int) -> None:
    """Sets an attribute of this process, where the system has it."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(request, value, 0, 0, 0)


def send(output: BinaryIO, body: bytes) -> None:
    """Writes one frame."""
    output.write(struct.pack(">I", len(body)))
    output.write(body)
    output.flush()


def frame(stream: BinaryIO, head: bytes = b"") -> bytes:
    """Reads one frame, whose first bytes may have been read."""
    (length,) = struct.unpack(">I", head + exactly(stream, 4 - len(head)))
    return exactly(stream, length)


def exactly(stream: BinaryIO, length: int) -> bytes:
    """Reads that many bytes."""
    content = bytearray()
    while len(content) < length:
        part = stream.read(min(length - len(content), 1 << 20))
        if not part:
            raise EOFError("the request is incomplete")
        content += part
    return bytes(content)
