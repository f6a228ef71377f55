"""Builds and runs the program of docs/EMBEDDING.md as a crate outside of the workspace.

Usage: check_embedding.py TARGET_DIRECTORY
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/EMBEDDING.md"


def block(page, language):
    """The first block of a page in that language."""
    found = re.search(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    if found is None:
        sys.exit(f"{PAGE}: there is no block of {language}")
    return found[1]


def main(target):
    page = PAGE.read_text("utf-8")
    minimum = re.search(r'^rust-version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    if f"**Rust** {minimum} or newer" not in page:
        sys.exit(f"{PAGE}: the oldest Rust is {minimum}, says Cargo.toml")

    crate = target / "embedding"
    shutil.rmtree(crate, ignore_errors=True)
    (crate / "src").mkdir(parents=True)
    manifest, replaced = re.subn(
        r'git = "[^"]*", tag = "[^"]*"', f'path = "{ROOT}/crates/domain"', block(page, "toml")
    )
    if replaced != 1:
        sys.exit(f"{PAGE}: the first block of toml has no git dependency on labdata-domain")
    # A separate workspace, as it is below the platform's.
    package = '[package]\nname = "embedding"\nedition = "2024"\n\n[workspace]\n\n'
    (crate / "Cargo.toml").write_text(package + manifest)
    (crate / "src/main.rs").write_text(block(page, "rust"))
    shutil.copy(ROOT / "Cargo.lock", crate)
    run = ["cargo", "run", "--quiet", "--offline", "--target-dir", str(target)]
    printed = subprocess.run(run, cwd=crate, check=True, stdout=subprocess.PIPE, text=True).stdout
    if printed != block(page, "text"):
        sys.exit(f"{PAGE}: the program prints\n{printed}")
    print("embedding: the program of docs/EMBEDDING.md builds outside of the workspace and prints what the page says")


main(Path(sys.argv[1]))
