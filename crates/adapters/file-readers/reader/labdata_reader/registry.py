"""The table of readers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def table() -> list[dict[str, Any]]:
    """Returns the table: the one in the script of one file, else the file beside this package."""
    embedded = getattr(sys.modules.get("__main__"), "READERS", None)
    if embedded is not None:
        return json.loads(embedded)
    return json.loads((Path(__file__).resolve().parent.parent / "readers.json").read_text(encoding="utf-8"))


READERS: dict[str, dict[str, Any]] = {reader["name"]: reader for reader in table()}
