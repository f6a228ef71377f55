"""Writes the tables of readers, `readers.json` and `reader_table.rs` of the domain, from the installed allotropy:
`python generate.py`, then `cargo fmt`.

Run it in an environment of `requirements.txt` after a change of allotropy's version there. A test
compares the table with the installed package.
"""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent
TABLE = HERE / "readers.json"
RUST_TABLE = HERE.parents[2] / "domain/src/instruments/reader_table.rs"

# The example of allotropy's manual, which belongs to no instrument.
LEFT_OUT = {"EXAMPLE_WEYLAND_YUTANI"}


def table() -> list[dict[str, object]]:
    """Returns what allotropy reads, by name."""
    from allotropy.parser_factory import _VENDOR_TO_PARSER, Vendor

    readers = []
    for vendor in Vendor:
        if vendor.name in LEFT_OUT:
            continue
        parser = _VENDOR_TO_PARSER[vendor]
        readers.append(
            {
                "name": vendor.name,
                "title": vendor.display_name,
                "extensions": vendor.supported_extensions,
                "parser": f"{parser.__module__}:{parser.__name__}",
            }
        )
    return sorted(readers, key=lambda reader: str(reader["name"]))


def text(readers: list[dict[str, object]]) -> str:
    """Returns the table as JSON with one reader a line."""
    lines = ",\n".join("  " + json.dumps(reader, ensure_ascii=False) for reader in readers)
    return f"[\n{lines}\n]\n"


def rust(readers: list[dict[str, object]]) -> str:
    """Returns the table as Rust, before it is formatted."""
    items = []
    for reader in readers:
        name, title = json.dumps(reader["name"]), json.dumps(reader["title"], ensure_ascii=False)
        extensions = json.dumps(reader["extensions"])
        items.append(f"Reader {{ name: {name}, title: {title}, extensions: &{extensions} }},")
    return (
        "//! The readers, by name. Made by `crates/adapters/file-readers/reader/generate.py`.\n\n"
        "use super::reader_kind::Reader;\n\n"
        "/// What readers there are, by name.\n"
        "pub const READERS: &[Reader] = &[\n" + "\n".join(items) + "\n];\n"
    )


if __name__ == "__main__":
    TABLE.write_text(text(table()), encoding="utf-8")
    RUST_TABLE.write_text(rust(table()), encoding="utf-8")
