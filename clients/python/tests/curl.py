"""Stands in for curl where the machine has none: the options that the examples of the pages use."""

import argparse
import sys
from pathlib import Path

import httpx

parser = argparse.ArgumentParser()
parser.add_argument("url")
parser.add_argument("-X", dest="method")
parser.add_argument("-H", dest="headers", action="append", default=[])
parser.add_argument("-d", dest="data")
parser.add_argument("-F", dest="parts", action="append", default=[])
parser.add_argument("-D", dest="heads")
parser.add_argument("-o", dest="output")
for flag in "sSNL":
    parser.add_argument(f"-{flag}", action="store_true")
options = parser.parse_args()

headers = dict(header.split(": ", 1) for header in options.headers)
files = []
for part in options.parts:
    name, _, value = part.partition("=")
    path = Path(value[1:])
    files.append((name, (path.name, path.read_bytes()) if value.startswith("@") else (None, value)))
data = options.data.encode() if options.data is not None else None
method = options.method or ("POST" if data is not None or files else "GET")
with httpx.Client(trust_env=False, timeout=120, follow_redirects=options.L) as client:
    response = client.request(method, options.url, headers=headers, content=data, files=files or None)
if options.heads:
    head = [f"HTTP/1.1 {response.status_code}", *(f"{n}: {v}" for n, v in response.headers.items()), "", ""]
    sys.stdout.write("\n".join(head))
if options.output:
    Path(options.output).write_bytes(response.content)
else:
    sys.stdout.write(response.text)
sys.exit(22 if response.is_error else 0)
