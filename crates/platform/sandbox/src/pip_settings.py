"""Prints the settings of pip as a JSON object: files first, environment variables over them."""

import ast
import json
import subprocess
import sys

SECTIONS = ["global", "install", ":env:"]

listing = subprocess.run(
    [sys.executable, "-m", "pip", "config", "list"],
    stdin=subprocess.DEVNULL,
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    text=True,
).stdout
found = []
for line in listing.splitlines():
    name, _, value = line.partition("=")
    section, _, key = name.rpartition(".")
    if section in SECTIONS:
        found.append((SECTIONS.index(section), key, ast.literal_eval(value)))
print(json.dumps({key: value for _, key, value in sorted(found)}))
