"""Frames of the prediction protocol: a length (u32, big-endian), then that many bytes."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import struct
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    # Loads libraries of numbers, whose threads are limited later.
    import pyarrow as pa

    Body = bytes | bytearray | pa.Buffer

MAX_FRAME_BYTES = 64 * 1024 * 1024
MAX_WAITING_BYTES = 128 * 1024 * 1024
PIPE_BYTES = 1024 * 1024
HEADER = struct.Struct(">I")


class TruncatedFrame(Exception):
    """End of the input inside a frame."""


class FrameError(Exception):
    """Frame that holds no request. Later frames can still be read."""


def claim_stdout() -> BinaryIO:
    """Returns the real standard output, and sends what libraries print to standard error."""
    output = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return output


def widen(*pipes: int) -> None:
    """Lets pipes hold a large frame, so that their ends wait for each other less often."""
    for pipe in pipes:
        # Only Linux can, and not for every user without limits.
        with contextlib.suppress(AttributeError, OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def read_exactly(stream: BinaryIO, size: int) -> bytearray:
    """Reads that many bytes; fewer only at the end of the input."""
    buffer, start = bytearray(size), 0
    with memoryview(buffer) as view:
        while start < size and (count := stream.readinto(view[start:])):
            start += count
    del buffer[start:]
    return buffer


def read_frame(stream: BinaryIO) -> bytearray | FrameError | None:
    """Reads a frame; none at the end of the input. Skips a frame that is too long."""
    header = read_exactly(stream, HEADER.size)
    if not header:
        return None
    if len(header) < HEADER.size:
        raise TruncatedFrame
    (size,) = HEADER.unpack(header)
    if size > MAX_FRAME_BYTES:
        skipped = 0
        while skipped < size:
            part = stream.read(min(size - skipped, 1 << 20))
            if not part:
                raise TruncatedFrame
            skipped += len(part)
        return FrameError(f"a frame has {size} bytes; at most {MAX_FRAME_BYTES} are allowed")
    body = read_exactly(stream, size)
    if len(body) < size:
        raise TruncatedFrame
    return body


def reject_constant(name: str) -> None:
    """Rejects NaN and infinities, which JSON does not have."""
    raise ValueError(f"{name} is no JSON")


def decode(body: bytearray) -> Any:
    """Parses the JSON of a frame."""
    try:
        return json.loads(body, parse_constant=reject_constant)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a frame is no JSON: {error}") from error


def encode(message: dict[str, Any]) -> bytes:
    """Returns the body of a frame with that message."""
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode()


def write_frame(stream: BinaryIO, body: Body) -> None:
    """Writes a whole frame. One that fits into the pipe wakes its reader once."""
    parts = [HEADER.pack(len(body)), body]
    for part in [b"".join(parts)] if len(body) < PIPE_BYTES else parts:
        view = memoryview(part)
        while view:
            view = view[stream.write(view) :]


class Inbox:
    """Frames that wait for the predictor. A thread fills it, up to a limit of bytes."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.waiting: deque[bytearray | FrameError] = deque()
        self.bytes = 0
        self.is_ended = self.is_truncated = False
        self.changed = threading.Condition()
        threading.Thread(target=self.fill, name="reader", daemon=True).start()

    def fill(self) -> None:
        """Reads frames until the input ends."""
        try:
            while (frame := read_frame(self.stream)) is not None:
                size = 0 if isinstance(frame, FrameError) else len(frame)
                with self.changed:
                    while self.waiting and self.bytes + size > MAX_WAITING_BYTES:
                        self.changed.wait()
                    self.waiting.append(frame)
                    self.bytes += size
                    self.changed.notify_all()
        except (TruncatedFrame, OSError):
            self.is_truncated = True
        finally:
            with self.changed:
                self.is_ended = True
                self.changed.notify_all()

    def take(self, is_blocking: bool) -> bytearray | FrameError | None:
        """Returns the next frame; none if there is none now, or, when blocking, none ever."""
        with self.changed:
            if is_blocking:
                self.changed.wait_for(lambda: self.waiting or self.is_ended)
            if not self.waiting:
                return None
            frame = self.waiting.popleft()
            self.bytes -= 0 if isinstance(frame, FrameError) else len(frame)
            self.changed.notify_all()
            return frame
