"""Keeps the list in docs/SCALING.md of statements that stand against Citus equal to what the platform says to PostgreSQL."""

import re
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
ADAPTER = TOP / "crates/adapters/postgres/src"

# What the table calls a statement, and how it is found in SQL.
STATEMENTS = {
    "pg_advisory_lock": r"pg_(?:try_)?advisory_",
    "LISTEN, NOTIFY": r"\bLISTEN |\bNOTIFY |pg_notify",
    "CREATE VIEW": r"CREATE VIEW",
    "pg_export_snapshot": r"pg_export_snapshot",
    "pg_current_snapshot": r"pg_current_snapshot|pg_snapshot_x|pg_current_xact_id",
    "CREATE FUNCTION": r"CREATE (?:OR REPLACE )?FUNCTION",
    "CREATE TRIGGER": r"CREATE (?:CONSTRAINT )?TRIGGER",
    "LOCK TABLE": r"LOCK TABLE",
    "CREATE TEMPORARY TABLE": r"CREATE (?:TEMP|TEMPORARY) TABLE",
}


def areas(pattern: str) -> set[str]:
    """Areas of the adapter, and `migrations`, whose SQL contains the pattern."""
    # Unit tests, at the end of a file, make what the platform does not have.
    shipped = ((path, path.read_text().split("\n#[cfg(test)]")[0]) for path in ADAPTER.rglob("*.rs"))
    found = {path.relative_to(ADAPTER).parts[0] for path, text in shipped if re.search(pattern, text)}
    ups = (TOP / "migrations").glob("*/up.sql")
    return found | {"migrations" for path in ups if re.search(pattern, path.read_text())}


class Citus(unittest.TestCase):
    def test_the_list_of_statements_is_complete(self) -> None:
        section = (TOP / "docs/SCALING.md").read_text().split("## Citus")[1]
        rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", section, re.MULTILINE)
        listed = {name: set(re.findall(r"`(\w+)`", where)) for name, where in rows}
        said = {name: areas(pattern) for name, pattern in STATEMENTS.items()}
        self.assertEqual(listed, {name: where for name, where in said.items() if where})
