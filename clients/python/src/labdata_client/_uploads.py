"""Sources of uploads: paths, bytes and binary files."""

from __future__ import annotations

import io
import mimetypes
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Union, cast

from .errors import InvalidArgument, local_files

Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, BinaryIO]

ONE_REQUEST_BYTES = 4 * 1024 * 1024
"""Up to this size, a file is one request; larger files are streamed to a signed URL."""

CHUNK_BYTES = 1024 * 1024


@dataclass
class Opened:
    """A file that is about to be uploaded."""

    name: str
    content_type: str
    size: int
    file: BinaryIO
    owned: bool
    start: int = 0

    def rewind(self) -> None:
        """Go back to the first byte."""
        self.file.seek(self.start)

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes."""
        return self.file.read(size)

    def close(self) -> None:
        """Close the file, unless it is the caller's."""
        if self.owned:
            self.file.close()


def open_source(source: Source, name: str | None, content_type: str | None) -> Opened:
    """Open what `upload` was given, and find out its name, type and size."""
    for argument, given in (("name", name), ("content_type", content_type)):
        if given is not None and not isinstance(given, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"{argument} is a text, not {type(given).__name__}"
            raise InvalidArgument(message)
    owned = True
    if isinstance(source, (bytes, bytearray, memoryview)):
        file: BinaryIO = io.BytesIO(source)
    elif isinstance(source, (str, os.PathLike)):
        path = Path(source)
        name = name or path.name
        try:
            with local_files():
                file = path.open("rb")
        except ValueError as error:
            message = f"{source!r} is no path: {error}"
            raise InvalidArgument(message) from error
    else:
        _check_file(source)
        name = name or _name_of(source)
        owned = not source.seekable()
        with local_files():
            file = _spooled(source) if owned else source
    if not name:
        file.close()
        message = "name= is needed: bytes and unnamed files have none"
        raise InvalidArgument(message)
    start = file.tell()
    size = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    kind = content_type or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Opened(name, kind, size, file, owned, start)


def _check_file(source: Any) -> None:
    if not callable(getattr(source, "read", None)) or not callable(getattr(source, "seekable", None)):
        message = (
            f"a file is a path, bytes or an open binary file, not {type(source).__name__}: {source!r:.100}"
        )
        raise InvalidArgument(message)
    if isinstance(source, io.TextIOBase):
        message = 'the file is open for texts, and uploads are bytes: open it with mode "rb"'
        raise InvalidArgument(message)
    if getattr(source, "closed", False):
        message = "the file is closed"
        raise InvalidArgument(message)


def _name_of(file: BinaryIO) -> str | None:
    found = getattr(file, "name", None)
    return os.path.basename(found) if isinstance(found, str) else None


def _spooled(stream: BinaryIO) -> BinaryIO:
    """Copy a pipe to disk, as a retry starts from the first byte."""
    copy = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - closed by the upload
    shutil.copyfileobj(stream, copy, CHUNK_BYTES)
    copy.seek(0)
    return copy
