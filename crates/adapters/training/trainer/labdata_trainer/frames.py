"""Frames of the prediction protocol: a length (u32, big-endian), then that many bytes."""

from __future__ import annotations

import json
import os
import struct
import threading
from collections import deque
from typing import Any, BinaryIO

MAX_FRAME_BYTES = 64 * 1024 * 1024
MAX_WAITING_BYTES = 128 * 1024 * 1024
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


def read_exactly(stream: BinaryIO, size: int) -> bytes:
    """Reads that many bytes; fewer only at the end of the input."""
    parts, missing = [], size
    while missing:
        part = stream.read(min(missing, 1 << 20))
        if not part:
            break
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def read_frame(stream: BinaryIO) -> bytes | FrameError | None:
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


def decode(body: bytes) -> Any:
    """Parses the JSON of a frame."""
    try:
        return json.loads(body, parse_constant=reject_constant)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a frame is no JSON: {error}") from error


def encode(message: dict[str, Any]) -> bytes:
    """Returns a frame with that message."""
    return pack(json.dumps(message, allow_nan=False, separators=(",", ":")).encode())


def pack(body: bytes) -> bytes:
    """Returns a frame with that body."""
    return HEADER.pack(len(body)) + body


def write_frame(stream: BinaryIO, frame: bytes) -> None:
    """Writes a whole frame."""
    view = memoryview(frame)
    while view:
        view = view[stream.write(view) :]


class Inbox:
    """Frames that wait for the predictor. A thread fills it, up to a limit of bytes."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.waiting: deque[bytes | FrameError] = deque()
        self.bytes = 0
        self.is_ended = self.is_truncated = False
        self.changed = threading.Condition()
        threading.Thread(target=self.fill, name="reader", daemon=True).start()

    def fill(self) -> None:
        """Reads frames until the input ends."""
        try:
            while (frame := read_frame(self.stream)) is not None:
                size = len(frame) if isinstance(frame, bytes) else 0
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

    def take(self, is_blocking: bool) -> bytes | FrameError | None:
        """Returns the next frame; none if there is none now, or, when blocking, none ever."""
        with self.changed:
            if is_blocking:
                self.changed.wait_for(lambda: self.waiting or self.is_ended)
            if not self.waiting:
                return None
            frame = self.waiting.popleft()
            self.bytes -= len(frame) if isinstance(frame, bytes) else 0
            self.changed.notify_all()
            return frame
