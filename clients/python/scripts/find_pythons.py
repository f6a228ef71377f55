"""Print the oldest and the newest Python of this machine that the client supports, one a line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST, NEWEST = 9, 20


def candidates(minor: int) -> list[str]:
    """Return programs that may be Python 3.`minor`."""
    name = f"python3.{minor}"
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    managed = Path.home() / ".local" / "share" / "uv" / "python"
    installed = [*pyenv.glob(f"3.{minor}.*/bin/{name}"), *managed.glob(f"cpython-3.{minor}.*/bin/{name}")]
    found = [str(path) for path in sorted(installed, reverse=True)]
    on_path = shutil.which(name)
    return [*found, on_path] if on_path else found


def works(program: str, minor: int) -> bool:
    """Tell a Python from a shim that starts none."""
    code = "import sys; print(sys.version_info[1])"
    try:
        answer = subprocess.run([program, "-c", code], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return answer.stdout.strip() == str(minor)


def first(minors: range) -> str | None:
    """Return the first Python that works."""
    for minor in minors:
        for program in candidates(minor):
            if works(program, minor):
                return program
    return None


if __name__ == "__main__":
    found = [first(range(OLDEST, NEWEST + 1)), first(range(NEWEST, OLDEST - 1, -1))]
    programs = list(dict.fromkeys(program or sys.executable for program in found))
    print("\n".join(programs))
