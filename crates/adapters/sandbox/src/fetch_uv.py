"""Downloads a wheel of uv and takes the program out of it.

Arguments: the address of a simple index (PEP 503), the wheel's name, its SHA-256, where to write
the program.
"""

import hashlib
import html
import io
import os
import re
import ssl
import sys
import urllib.parse
import urllib.request
import zipfile

index, name, sha256, target = sys.argv[1:5]
cafile = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE") or None
context = ssl.create_default_context(cafile=cafile)


def get(address):
    with urllib.request.urlopen(address, timeout=60, context=context) as answer:
        return answer.read()


page = index.rstrip("/") + "/uv/"
try:
    listing = get(page).decode("utf-8")
    for link in re.findall(r'href="([^"]+)"', listing):
        address = urllib.parse.urljoin(page, html.unescape(link))
        if urllib.parse.urlsplit(address).path.rsplit("/", 1)[-1] == name:
            wheel = get(address)
            break
    else:
        sys.exit(f"{page} does not list {name}")
except OSError as error:
    sys.exit(f"{page} cannot be reached: {error}")
found = hashlib.sha256(wheel).hexdigest()
if found != sha256:
    sys.exit(f"{name} has SHA-256 {found}, not {sha256}")
with zipfile.ZipFile(io.BytesIO(wheel)) as contents:
    program = next(n for n in contents.namelist() if n.endswith(".data/scripts/uv"))
    with open(target, "wb") as file:
        file.write(contents.read(program))
os.chmod(target, 0o755)
