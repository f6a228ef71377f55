"""Fails where a crate has tests or examples that its manifest says not to run.

A crate without any says so (`test = false`, `doctest = false`): else cargo compiles or reads it once more, to run nothing.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

TEST = re.compile(r"#\[(\w+::)*test\b|\bproptest! ")
EXAMPLE = re.compile(r"//[/!] ```")

metadata = ["cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"]
packages = json.loads(subprocess.check_output(metadata))["packages"]
for package in packages:
    for target in package["targets"]:
        if target["kind"] != ["lib"]:
            continue
        text = "".join(path.read_text("utf-8") for path in Path(target["src_path"]).parent.rglob("*.rs"))
        for kind, pattern in {"test": TEST, "doctest": EXAMPLE}.items():
            if not target[kind] and pattern.search(text):
                sys.exit(f"{package['name']} has a {kind}, but its Cargo.toml says `{kind} = false`: it would not run")
