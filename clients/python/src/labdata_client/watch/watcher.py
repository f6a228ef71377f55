"""Finding new files, waiting until they are complete, and uploading them once."""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ..errors import (
    BadRequest,
    Busy,
    Conflict,
    ConnectionFailed,
    Forbidden,
    Invalid,
    LabdataError,
    Unauthorized,
)
from .paths import is_ignored, openable, own_name, remote_name, state_key, versioned
from .state import Sent, State

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .._results import Record
    from .._sync._lab import Lab

log = logging.getLogger("labdata-watch")

CHUNK_BYTES = 1024 * 1024

MAX_PAUSE_SECONDS = 3600.0
"""Longest pause before a file that failed is tried again."""

MAX_AWAY_SECONDS = 60.0
"""Longest pause before a platform that is away is tried again."""

MIN_CHANGING_SECONDS = 60.0
"""Time that `--once` grants a file to stand still."""

UNKNOWN_ID = "unknown"
"""Id of a file that the platform has and the key cannot read."""


@dataclass(frozen=True)
class Version:
    """A file's size and time of change."""

    path: Path
    size: int
    modified_ns: int

    def matches(self, sent: Sent) -> bool:
        """Whether this is the version that was uploaded."""
        return (self.size, self.modified_ns) == (sent.size, sent.modified_ns)


@dataclass(frozen=True)
class Condition:
    """What a watcher has to say of itself: numbers, never names of files."""

    is_watching: bool
    """Whether the folder itself can be read."""
    queued_files: int
    unreadable: int
    """Folders and files that cannot be read."""
    failing: int
    """Files that could not be sent, and are tried again."""
    refused: int
    """Files in the folder that the platform has refused."""

    @property
    def has_trouble(self) -> bool:
        """Whether files cannot be sent."""
        return self.unreadable + self.failing + self.refused > 0

    def detail(self) -> dict[str, int]:
        """Return the numbers of files by kind of trouble."""
        return {"unreadable": self.unreadable, "failing": self.failing, "refused": self.refused}


@dataclass
class _Candidate:
    version: Version
    since: float
    """When the version was first seen, or last tried."""
    first_seen: float
    failures: int = 0
    has_failed: bool = False
    """Whether this version was logged and counted."""

    def is_due(self, now: float, settle_seconds: float) -> bool:
        """Whether the version stood still, and the pause after its last failure is over."""
        pauses = max(0, self.failures - 1)
        return now - self.since >= min(settle_seconds * 2.0 ** min(pauses, 30), MAX_PAUSE_SECONDS)


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
        once: bool = False,
        left_out: Sequence[Path] = (),
    ) -> None:
        self._lab = lab
        self._root = directory
        self._instrument = instrument
        self._state = state
        self._settle_seconds = settle_seconds
        self._patterns = patterns
        self._once = once
        # The state changes with each upload, so it would be uploaded for ever.
        self._left_out = {_identity(path) for path in (*state.own_files, *left_out)}
        self._first: set[str] | None = None
        """Files of the first look, which are all that `--once` uploads."""
        self._candidates: dict[str, _Candidate] = {}
        self._unreadable: set[Path] = set()
        self._twins: set[str] = set()
        """Names that several files have which differ by their Unicode form."""
        self._refused = 0
        """Files in the folder that the platform has refused."""
        self._outages = 0
        self._away_until = 0.0
        self.failures = 0
        """Files that were refused or not uploaded, and folders that could not be read, since the start."""

    @property
    def is_idle(self) -> bool:
        """Whether no file waits to be complete or uploaded."""
        return not self._candidates and not self._unreadable

    @property
    def is_settled(self) -> bool:
        """Whether each file that can be read is uploaded, or has failed to be."""
        return self._outages > 0 or all(candidate.has_failed for candidate in self._candidates.values())

    def condition(self) -> Condition:
        """Return how it goes; another thread may ask at any moment."""
        # A list of a dict's values is made in one step: the other thread cannot come in between.
        candidates = list(self._candidates.values())
        unreadable = self._unreadable
        return Condition(
            is_watching=self._root not in unreadable,
            queued_files=len(candidates),
            unreadable=len(unreadable),
            failing=sum(candidate.has_failed for candidate in candidates),
            refused=self._refused,
        )

    def step(self, now: float) -> None:
        """Look at the folder once; `now` is a monotonic time in seconds."""
        unreadable: set[Path] = set()
        found = {state_key(version.path, self._root): version for version in self._scan(unreadable)}
        for folder in self._unreadable - unreadable:
            log.info("%s can be read again", _shown(folder))
        self._unreadable = unreadable
        names = Counter(remote_name(version.path, self._root) for version in found.values())
        self._twins = {name for name, count in names.items() if count > 1}
        if self._once:
            self._first = set(found) if self._first is None else self._first
            found = {key: version for key, version in found.items() if key in self._first}
        for key in set(self._candidates) - set(found):
            del self._candidates[key]
        for key, version in found.items():
            self._look(key, version, found, now)
        self._refused = sum(self._is_refused(key, version) for key, version in found.items())

    def _is_refused(self, key: str, version: Version) -> bool:
        sent = self._state.get(key)
        return sent is not None and sent.refused is not None and version.matches(sent)

    def _look(self, key: str, version: Version, found: dict[str, Version], now: float) -> None:
        sent = self._state.get(key)
        if sent is not None and version.matches(sent):
            self._candidates.pop(key, None)
            return
        candidate = self._candidates.get(key)
        if candidate is None or candidate.version != version:
            first_seen = now if candidate is None else candidate.first_seen
            candidate = _Candidate(version, now, first_seen)
            self._candidates[key] = candidate
        elif now >= self._away_until and candidate.is_due(now, self._settle_seconds):
            candidate.since = now
            self._try(key, candidate, found, now)
        patience = max(MIN_CHANGING_SECONDS, 12 * self._settle_seconds)
        if self._once and not candidate.has_failed and now - candidate.first_seen > patience:
            self._complain(candidate, "it still changes")

    def _complain(self, candidate: _Candidate, reason: object) -> None:
        """Log and count a failure, once for each version of a file."""
        if not candidate.has_failed:
            self.failures += 1
            log.warning("%s waits: %s", _shown(candidate.version.path), reason)
        candidate.has_failed = True
        candidate.failures += 1

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
                self._cannot_read(folder, unreadable, error)
                continue
            for entry in entries:
                path = folder / entry.name
                if _is_folder(entry):
                    if not entry.name.startswith("."):
                        folders.append(path)
                    continue
                if is_ignored(path, self._root, self._patterns) or os.path.normcase(path) in self._left_out:
                    continue
                try:
                    # Not entry.stat(), which on Windows lags behind the writer of an open file.
                    found = os.stat(openable(path))
                except OSError as error:
                    # A folder that can be listed, but whose files cannot be reached.
                    if not isinstance(error, FileNotFoundError):
                        self._cannot_read(path, unreadable, error)
                    continue
                if stat.S_ISREG(found.st_mode) and found.st_size:
                    yield Version(path, found.st_size, found.st_mtime_ns)

    def _cannot_read(self, path: Path, unreadable: set[Path], error: OSError) -> None:
        if path not in self._unreadable:
            self.failures += 1
            log.warning("%s cannot be read, trying again: %s", _shown(path), _shown(error))
        unreadable.add(path)

    def _try(self, key: str, candidate: _Candidate, found: dict[str, Version], now: float) -> None:
        version = candidate.version
        try:
            with open(openable(version.path), "rb") as file:
                sha256 = _digest(file)
                if not _is_unchanged(version, file):
                    return
                sent = self._send(key, version, sha256, file, found)
            self._state.remember(key, sent)
        except FileNotFoundError:
            self._candidates.pop(key, None)
            if self._first is not None:
                self._first.discard(key)
        except (ConnectionFailed, Busy) as error:
            self._be_away(now, error)
        except (Unauthorized, Forbidden) as error:
            # A storage's refusal has no code and is about one file; the platform's is about the key.
            if error.code is not None:
                raise
            self._complain(candidate, error)
        except Exception as error:  # noqa: BLE001 - no fault of one file stops the others
            # The instrument's software has locked the file, its name is no text, …
            self._complain(candidate, _shown(error))
        else:
            self._candidates.pop(key, None)
            self._be_back()

    def _be_away(self, now: float, error: LabdataError) -> None:
        """Wait before the next file: the platform is away for all of them."""
        if self._outages == 0:
            self.failures += 1
            log.warning("the platform is away, trying again: %s", error)
        self._away_until = now + min(self._settle_seconds * 2.0 ** min(self._outages, 30), MAX_AWAY_SECONDS)
        self._outages += 1

    def _be_back(self) -> None:
        if self._outages:
            log.info("the platform answers again")
        self._outages = 0

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
        if name in self._twins:
            name = own_name(version.path, self._root)
        if _shown(name) != name:
            message = "its name is no text in the encoding of this system: rename it"
            raise LabdataError(message)
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
                file_id = file_id or self._upload_version(file, name, version, sha256)
        except (BadRequest, Invalid) as error:
            self.failures += 1
            log.error("%s was refused: %s", _shown(version.path), error)
            refused = str(error)
        else:
            log.info("%s is uploaded as %s (%d bytes)", _shown(version.path), _shown(name), version.size)
        return Sent(version.size, version.modified_ns, sha256, name, file_id, refused)

    def _upload_version(self, file: BinaryIO, name: str, version: Version, sha256: str) -> str:
        """Upload a file under a name with its time, which an earlier attempt may have used."""
        try:
            return self._upload(file, name, version, sha256).file_id
        except Conflict:
            return UNKNOWN_ID

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
        """Return the id of a file on the platform with this name and content, if the key can read."""
        kilobytes = -(-version.size // 1024)
        try:
            known = self._lab.files(name, instrument=self._instrument)
        except Forbidden:
            return None
        for record in known:
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
                log.info(
                    "%s was uploaded as %s before it was renamed", _shown(version.path), _shown(sent.name)
                )
                self._state.forget(key)
                return sent
        return None


def _shown(value: object) -> str:
    """Return a text that every terminal and log can hold, whatever bytes a name has."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def _identity(path: Path) -> str:
    """Return the form of a path in which the watched folder, which is resolved, names its files."""
    return os.path.normcase(path.resolve())


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
