"""Write the synchronous client from the asynchronous one: `python scripts/generate_sync.py`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import unasync  # pyright: ignore[reportMissingTypeStubs]

PACKAGE = Path(__file__).parent.parent / "src" / "labdata_client"
HEADER = "# Generated from ../_async by scripts/generate_sync.py: change that one.\n"
NAMES = {
    "AsyncAdministration": "Administration",
    "AsyncClient": "Client",
    "AsyncExecution": "Execution",
    "AsyncLab": "Lab",
    "AsyncOperations": "Operations",
    "AsyncTransport": "Transport",
    "aclose": "close",
    "aiter_bytes": "iter_bytes",
    "aread": "read",
    "async_blocking": "blocking",
    "async_sleep": "sleep",
    "connect_async": "connect",
}


def generate(target: Path) -> None:
    """Write the generated modules into a directory."""
    sources = sorted((PACKAGE / "_async").glob("*.py"))
    with tempfile.TemporaryDirectory() as scratch:
        copies = Path(scratch) / "_async"
        copies.mkdir()
        for source in sources:
            (copies / source.name).write_text(source.read_text())
        rule = unasync.Rule(f"{copies}/", f"{scratch}/_sync/", additional_replacements=NAMES)
        unasync.unasync_files(  # pyright: ignore[reportUnknownMemberType]
            [str(path) for path in sorted(copies.glob("*.py"))], [rule]
        )
        target.mkdir(parents=True, exist_ok=True)
        for source in sources:
            text = (Path(scratch) / "_sync" / source.name).read_text()
            text = text.replace(
                "The asynchronous client; the synchronous one is generated from it.", "The client."
            )
            (target / source.name).write_text(HEADER + text)
    configuration = PACKAGE.parent.parent / "pyproject.toml"
    ruff = [sys.executable, "-m", "ruff"]
    options = ["--quiet", "--config", str(configuration), str(target)]
    # Imports are sorted by the new names.
    subprocess.run([*ruff, "check", "--select", "I", "--fix", *options], check=True)
    subprocess.run([*ruff, "format", *options], check=True)


if __name__ == "__main__":
    generate(PACKAGE / "_sync")
    print(f"written: {PACKAGE / '_sync'}")
