r"""Names of files, from paths of Linux, macOS and Windows.

All functions take pure paths, so that the logic for Windows is tested everywhere.
"""

from __future__ import annotations

import datetime
import unicodedata
from fnmatch import fnmatchcase
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

IGNORED = (
    "~$*",
    "*.tmp",
    "*.temp",
    "*.part",
    "*.partial",
    "*.crdownload",
    "*.lock",
    "thumbs.db",
    "desktop.ini",
)
"""Lock files and half-written files of other programs."""

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)

LONG_WINDOWS_PATH = 240
"""Below the 260 characters at which Windows refuses a path without a prefix."""


def remote_name(path: PurePath, root: PurePath) -> str:
    """Return the file's name on the platform: its path below the folder, with `/` on every system."""
    return unicodedata.normalize("NFC", own_name(path, root))


def own_name(path: PurePath, root: PurePath) -> str:
    """Return the file's path below the folder in the Unicode form that it has here."""
    return "/".join(path.relative_to(root).parts)


def state_key(path: PurePath, root: PurePath) -> str:
    """Return the name under which a file is remembered; on Windows, case does not tell files apart."""
    name = own_name(path, root)
    # Not `casefold`, for which ß is ss: they are two files there.
    return name.lower() if isinstance(path, PureWindowsPath) else name


def is_ignored(path: PurePath, root: PurePath, patterns: Sequence[str] = ()) -> bool:
    """Tell hidden and temporary files, and those that match none of the given patterns."""
    relative = path.relative_to(root)
    if any(part.startswith(".") for part in relative.parts):
        return True
    name, whole = relative.name.casefold(), "/".join(relative.parts).casefold()
    if any(fnmatchcase(name, pattern) for pattern in IGNORED):
        return True
    wanted = [pattern.casefold().replace("\\", "/") for pattern in patterns]
    return bool(wanted) and not any(fnmatchcase(name, p) or fnmatchcase(whole, p) for p in wanted)


def versioned(name: str, modified_ns: int) -> str:
    """Return the name for a changed file: `plate (2026-03-01T12-30-00.250000Z).txt`."""
    try:
        modified = EPOCH + datetime.timedelta(microseconds=modified_ns // 1_000)
        stamp = modified.strftime("%Y-%m-%dT%H-%M-%S.%fZ")
    except (OverflowError, ValueError):
        # The clock of the instrument, or of the share, says a year that no calendar has.
        stamp = f"{modified_ns} ns"
    path = PurePosixPath(name)
    return str(path.with_name(f"{path.stem} ({stamp}){path.suffix}"))


def openable(path: PurePath) -> str:
    r"""Return the path to open a file with; long paths of Windows need the prefix `\\?\`."""
    text = str(path)
    if not isinstance(path, PureWindowsPath) or len(text) < LONG_WINDOWS_PATH or text.startswith("\\\\?\\"):
        return text
    if text.startswith("\\\\"):
        return "\\\\?\\UNC\\" + text[2:]
    return "\\\\?\\" + text
