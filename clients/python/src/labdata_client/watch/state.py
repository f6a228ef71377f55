"""The files that were uploaded, remembered across restarts.

The state is a file of JSON lines, one per change; the last line of a file's name counts. A line that a
crash cut off is skipped: its file is then found on the platform.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Sent:
    """A file as it was when it was uploaded, or refused."""

    size: int
    modified_ns: int
    sha256: str
    name: str
    """Name on the platform."""
    file_id: str | None = None
    refused: str | None = None
    """The platform's reason."""


class State:
    """The remembered files of one folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: dict[str, Sent] = {}
        self._lines = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            self._load()

    @property
    def own_files(self) -> tuple[Path, Path]:
        """The files of the state, which may be in the folder that is watched."""
        return self._path, self._temporary

    @property
    def _temporary(self) -> Path:
        return self._path.with_name(self._path.name + ".new")

    def _load(self) -> None:
        known = {field.name for field in fields(Sent)}
        with self._path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                self._lines += 1
                try:
                    entry = cast("dict[str, Any]", json.loads(line))
                    key, sent = cast("str", entry["key"]), cast("dict[str, Any] | None", entry["sent"])
                    if sent is None:
                        self._files.pop(key, None)
                    else:
                        self._files[key] = Sent(**{name: sent[name] for name in known if name in sent})
                except (ValueError, KeyError, TypeError):
                    continue
        if self._lines > 2 * len(self._files) + 100:
            self._compact()

    def _compact(self) -> None:
        temporary = self._temporary
        with temporary.open("w", encoding="utf-8") as file:
            for key, sent in self._files.items():
                file.write(_line(key, sent))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self._path)

    def get(self, key: str) -> Sent | None:
        """Return what is remembered of a file."""
        return self._files.get(key)

    def items(self) -> Iterator[tuple[str, Sent]]:
        """Iterate over all files."""
        return iter(list(self._files.items()))

    def remember(self, key: str, sent: Sent) -> None:
        """Remember a file; it is on disk when this returns."""
        self._files[key] = sent
        self._append(_line(key, sent))

    def forget(self, key: str) -> None:
        """Forget a file, such as one that was renamed."""
        if self._files.pop(key, None) is not None:
            self._append(_line(key, None))

    def _append(self, line: str) -> None:
        with self._path.open("ab+") as file:
            # A crash may have cut the last line off.
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    line = "\n" + line
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())


def _line(key: str, sent: Sent | None) -> str:
    return json.dumps({"key": key, "sent": None if sent is None else asdict(sent)}) + "\n"


def default_path(base_url: str, instrument: str, directory: Path) -> Path:
    """Return the state's place: outside of the folder, which may be read-only or shared."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home())
    else:
        base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    identity = "\n".join((base_url, instrument, str(directory)))
    return base / "labdata-watch" / f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsonl"
