"""Finding new files, waiting until they are complete, and uploading them once."""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ..errors import BadRequest, Conflict, Forbidden, Invalid, LabdataError, Unauthorized
from .paths import is_ignored, openable, remote_name, state_key, versioned
from .state import Sent, State

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .._results import Record
    from .._sync._lab import Lab

log = logging.getLogger("labdata-watch")

CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Version:
    """A file's size and time of change."""

    path: Path
    size: int
    modified_ns: int

    def matches(self, sent: Sent) -> bool:
        """Whether this is the version that was uploaded."""
        return (self.size, self.modified_ns) == (sent.size, sent.modified_ns)


@dataclass
class _Candidate:
    version: Version
    since: float
    complained: bool = False


class Watcher:
    """One folder, uploaded to one instrument."""

    def __init__(
        self,
        lab: Lab,
        directory: Path,
        instrument: str,
        state: State,
        *,
        settle_seconds: float = 5.0,
        patterns: Sequence[str] = (),
    ) -> None:
        self._lab = lab
        self._root = directory
        self._instrument = instrument
        self._state = state
        self._settle_seconds = settle_seconds
        self._patterns = patterns
        self._candidates: dict[str, _Candidate] = {}
        self._unreadable: set[Path] = set()
        self.failures = 0
        """Uploads that failed, and folders that could not be read, since the start."""

    @property
    def is_idle(self) -> bool:
        """Whether no file waits to be complete or uploaded."""
        return not self._candidates and not self._unreadable

    @property
    def is_settled(self) -> bool:
        """Whether each file that can be read is uploaded, or has failed to be."""
        return all(candidate.complained for candidate in self._candidates.values())

    def step(self, now: float) -> None:
        """Look at the folder once; `now` is a monotonic time in seconds."""
        unreadable: set[Path] = set()
        found = {state_key(version.path, self._root): version for version in self._scan(unreadable)}
        for folder in self._unreadable - unreadable:
            log.info("%s can be read again", folder)
        self._unreadable = unreadable
        for key in set(self._candidates) - set(found):
            del self._candidates[key]
        for key, version in found.items():
            sent = self._state.get(key)
            if sent is not None and version.matches(sent):
                self._candidates.pop(key, None)
                continue
            candidate = self._candidates.get(key)
            if candidate is None or candidate.version != version:
                self._candidates[key] = _Candidate(version, now)
            elif now - candidate.since >= self._settle_seconds:
                candidate.since = now
                self._try(key, candidate, found)

    def _scan(self, unreadable: set[Path]) -> Iterator[Version]:
        """Find the files of all folders; one that cannot be read is added to the set."""
        folders = [self._root]
        while folders:
            folder = folders.pop()
            try:
                entries = sorted(os.scandir(openable(folder)), key=lambda entry: entry.name)
            except OSError as error:
                if isinstance(error, FileNotFoundError) and folder != self._root:
                    continue
                # A network share that went away, or another's folder: nothing is known about its files.
                if folder not in self._unreadable:
                    self.failures += 1
                    log.warning("%s cannot be read, trying again: %s", folder, error)
                unreadable.add(folder)
                continue
            for entry in entries:
                path = folder / entry.name
                if _is_folder(entry):
                    if not entry.name.startswith("."):
                        folders.append(path)
                    continue
                if is_ignored(path, self._root, self._patterns):
                    continue
                try:
                    # Not entry.stat(), which on Windows lags behind the writer of an open file.
                    found = os.stat(openable(path))
                except OSError:
                    continue
                if stat.S_ISREG(found.st_mode) and found.st_size:
                    yield Version(path, found.st_size, found.st_mtime_ns)

    def _try(self, key: str, candidate: _Candidate, found: dict[str, Version]) -> None:
        version = candidate.version
        try:
            with open(openable(version.path), "rb") as file:
                sha256 = _digest(file)
                if not _is_unchanged(version, file):
                    return
                sent = self._send(key, version, sha256, file, found)
        except (Unauthorized, Forbidden):
            raise
        except FileNotFoundError:
            return
        except (LabdataError, OSError) as error:
            # The platform is away or busy, the instrument's software has locked the file, …
            self.failures += 1
            if not candidate.complained:
                log.warning("%s waits: %s", version.path, error)
            candidate.complained = True
        else:
            self._state.remember(key, sent)
            self._candidates.pop(key, None)

    def _send(
        self, key: str, version: Version, sha256: str, file: BinaryIO, found: dict[str, Version]
    ) -> Sent:
        """Upload a file, unless the platform has it, and return what to remember."""
        known = self._state.get(key)
        if known is None:
            known = self._renamed_from(version, sha256, found)
        elif known.sha256 != sha256:
            changed = known.file_id is not None
            return self._upload_new(version, sha256, file, changed=changed)
        if known is None:
            return self._upload_new(version, sha256, file, changed=False)
        # Touched or renamed, but not changed.
        return replace(known, size=version.size, modified_ns=version.modified_ns)

    def _upload_new(self, version: Version, sha256: str, file: BinaryIO, *, changed: bool) -> Sent:
        name = remote_name(version.path, self._root)
        other = versioned(name, version.modified_ns)
        if changed:
            name = other
        file_id, refused = None, None
        try:
            try:
                file_id = self._upload(file, name, version, sha256).file_id
            except Conflict:
                file_id = self._existing(name, version, sha256)
                if file_id is None:
                    name = other
                    file_id = self._existing(name, version, sha256)
                file_id = file_id or self._upload(file, name, version, sha256).file_id
        except (BadRequest, Invalid) as error:
            log.error("%s was refused: %s", version.path, error)
            refused = str(error)
        else:
            log.info("%s is uploaded as %s (%d bytes)", version.path, name, version.size)
        return Sent(version.size, version.modified_ns, sha256, name, file_id, refused)

    def _upload(self, file: BinaryIO, name: str, version: Version, sha256: str) -> Record:
        file.seek(0)
        # The same key after a crash returns the same file.
        identity = "\n".join((self._instrument, name, str(version.size), sha256))
        return self._lab.upload(
            file,
            name=name,
            instrument=self._instrument,
            source_type="instrument_sync",
            idempotency_key="watch-" + hashlib.sha256(identity.encode()).hexdigest(),
        )

    def _existing(self, name: str, version: Version, sha256: str) -> str | None:
        """Return the id of a file on the platform with this name and content."""
        kilobytes = -(-version.size // 1024)
        for record in self._lab.files(name, instrument=self._instrument):
            if record["original_path"] == name and record["size_kilobytes"] == kilobytes:
                with tempfile.TemporaryDirectory() as scratch:
                    copy = self._lab.download(record["file_id"], Path(scratch) / "copy")
                    with copy.open("rb") as file:
                        if _digest(file) == sha256:
                            return record["file_id"]
        return None

    def _renamed_from(self, version: Version, sha256: str, found: dict[str, Version]) -> Sent | None:
        """Return what is remembered of the same file under a name that is gone, and forget that name."""
        if self._unreadable:
            # A file of an unreadable folder is not gone.
            return None
        for key, sent in self._state.items():
            if sent.sha256 == sha256 and version.matches(sent) and key not in found:
                log.info("%s was uploaded as %s before it was renamed", version.path, sent.name)
                self._state.forget(key)
                return sent
        return None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _digest(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()


def _is_unchanged(version: Version, file: BinaryIO) -> bool:
    found = os.fstat(file.fileno())
    return (found.st_size, found.st_mtime_ns) == (version.size, version.modified_ns)
