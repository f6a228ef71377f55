"""The artifact of a model: `artifact.tar.zst` with `manifest.json` and the directory `predictor`.

pyarrow compresses, since AutoGluon brings it anyway. The predictor consists of pickles, so only the
predictor process may load it, inside the sandbox.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from .failure import Exit, Failure
from .numbers import finite

NAME = "artifact.tar.zst"
FORMAT = 1


def pack(predictor: Path, manifest: dict[str, Any], target: Path) -> dict[str, Any]:
    """Writes the artifact. Returns its name, SHA-256 and size. Equal files give equal bytes."""
    described = predictor.with_name("artifact-manifest.json")
    content = {"format": FORMAT, **manifest}
    described.write_text(json.dumps(finite(content), allow_nan=False, indent=1))
    pending = target.with_name(target.name + ".tmp")
    with (
        pa.CompressedOutputStream(pa.OSFile(str(pending), "wb"), "zstd") as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        tar.add(described, "manifest.json", filter=anonymous)
        tar.add(predictor, "predictor", filter=anonymous)
    pending.rename(target)
    return {"file": target.name, "sha256": sha256(target), "size": target.stat().st_size}


def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Removes owner and time from an entry."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


def unpack(artifact: Path, directory: Path, expected_sha256: str | None) -> dict[str, Any]:
    """Extracts an artifact below a directory and returns its manifest. Loads no pickle."""
    if expected_sha256 is not None and sha256(artifact) != expected_sha256.lower():
        raise invalid("its SHA-256 differs from that of the trained model")
    try:
        with (
            pa.CompressedInputStream(pa.OSFile(str(artifact)), "zstd") as stream,
            tarfile.open(fileobj=stream, mode="r|") as tar,
        ):
            extract(tar, directory)
        manifest = json.loads((directory / "manifest.json").read_text())
    except (OSError, tarfile.TarError, ValueError) as error:
        raise invalid(str(error)) from error
    if manifest.get("format") != FORMAT:
        raise invalid(f"its format is {manifest.get('format')}, not {FORMAT}")
    return manifest


def extract(tar: tarfile.TarFile, directory: Path) -> None:
    """Extracts an archive of directories and regular files; rejects any other entry.

    `TarFile.extractall` has no filters in Python 3.11.2, which Debian 12 brings.
    """
    for member in tar:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"its entry {member.name!r} lies outside of it")
        if member.isdir():
            (directory / path).mkdir(parents=True, exist_ok=True)
            continue
        content = tar.extractfile(member) if member.isreg() else None
        if content is None:
            raise ValueError(f"its entry {member.name!r} is no file")
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with content, target.open("xb") as file:
            shutil.copyfileobj(content, file)


def invalid(reason: str) -> Failure:
    """Returns the failure of a predictor whose artifact cannot be used."""
    return Failure(
        Exit.BAD_DATA, "artifact_invalid", f"The model's artifact cannot be used: {reason}."
    )


def sha256(path: Path) -> str:
    """Returns the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
