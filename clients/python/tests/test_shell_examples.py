"""Every shell example of the pages for scientists and operators runs, in order, as one script per page.

A comment `<!-- not run: REASON -->` above a block leaves it out. `<!-- needs psql -->` leaves it out where
the machine has no such program. `labdata serve` in an example starts a server on another port and in
another directory, waits until it is ready, and stops it.
"""

import glob
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import KEY

import labdata_client as labdata

TESTS = Path(__file__).parent
ROOT = TESTS.parent.parent.parent
PAGES = [
    "README.md",
    "clients/python/README.md",
    "docs/AGENT.md",
    "docs/API.md",
    "docs/CONNECT-AN-INSTRUMENT.md",
    "docs/DATABASE.md",
    "docs/EMBEDDING.md",
    "docs/GUIDE.md",
    "docs/LOAD-TESTING.md",
    "docs/MCP.md",
    "docs/OPERATING.md",
    "docs/PYTHON-CLIENT.md",
    "docs/SCRIPTS-AND-MODELS.md",
    "docs/WRITING-JOBS.md",
]
# For developers, whose recipes CI runs.
DEVELOPERS = ["CONTRIBUTING.md", "docs/TESTING.md"]
# With tests of their own.
ELSEWHERE = re.compile(r"docs/deploy/|docs/SCALING.md|docs/SQL.md|crates/")

FENCE = re.compile(
    r"^(?P<marker> *<!--[^\n]*-->\n)?(?P<indent> *)```(?:sh|bash|shell|console)\n(?P<code>.*?)^ *```",
    re.DOTALL | re.MULTILINE,
)
NOT_RUN = re.compile(r"<!-- not run: \S.{10,} -->")
NEEDS = re.compile(r"<!-- needs (\w+) -->")
# Programs that change the machine: a block with one of them is not run.
REFUSED = ["apt-get", "cargo", "docker", "just", "npm", "npx", "pip", "pip3", "sudo", "systemctl", "uvx"]
PLATE_CSV = "name,Vol (µl),Remark\nA1,1.5,\nA2,2.5,left over\n"


def programs(page):
    """The blocks of a page that run on this machine."""
    for found in FENCE.finditer((ROOT / page).read_text("utf-8")):
        marker = (found["marker"] or "").strip()
        needed = NEEDS.fullmatch(marker)
        if NOT_RUN.fullmatch(marker) or (needed and not which(needed[1])):
            continue
        yield re.sub(f"^{found['indent']}", "", found["code"], flags=re.MULTILINE)


def which(program):
    postgres = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    return shutil.which(program, path=os.pathsep.join([os.environ["PATH"], *postgres]))


def test_every_page_with_a_shell_example_is_run():
    folders = [ROOT / name for name in ("docs", "clients", "crates")]
    pages = [*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))]
    found = [str(page.relative_to(ROOT)) for page in pages if FENCE.search(page.read_text("utf-8"))]
    assert sorted(page for page in found if not ELSEWHERE.match(page)) == sorted([*PAGES, *DEVELOPERS])


def test_a_marker_is_above_a_block_and_has_its_reason():
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        markers = re.findall(r"^ *(<!-- (?:not run|needs).*)$", text, re.MULTILINE)
        above = [(found["marker"] or "").strip() for found in FENCE.finditer(text)]
        assert markers == [marker for marker in above if marker]
        assert all(NOT_RUN.fullmatch(marker) or NEEDS.fullmatch(marker) for marker in markers)


@pytest.mark.parametrize("page", PAGES)
def test_shell_examples(page, page_environment, tmp_path):
    script = "set -euo pipefail\nshopt -s inherit_errexit\n"
    for number, program in enumerate(programs(page), 1):
        script += f"echo '=== {page}, example {number}' >&2\n{program}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=page_environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.fixture
def page_environment(request, server, tmp_path):
    """Variables, programs and records that the examples of the page take for granted."""
    page = request.node.callspec.params["page"]
    (tmp_path / ".labdata").symlink_to(server.directory / "data")
    (tmp_path / "plate.csv").write_text(PLATE_CSV, "utf-8")
    (tmp_path / "job.py").write_text("print('parsed')\n")
    environment = {
        **os.environ,
        "CURL_HOME": str(tmp_path),
        "HOME": str(tmp_path),
        "JOB_EXECUTION_ID": "",
        "LABDATA_API_KEY": KEY,
        "LABDATA_BASE_URL": server.url,
        "LABDATA_BIN": os.path.abspath(os.environ["LABDATA_BIN"]),
        "LABDATA_JOB_ISOLATION": "none",
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }
    # An answer of 4xx or 5xx is a failure.
    (tmp_path / ".curlrc").write_text("fail-with-body\nmax-time = 120\n")
    (tmp_path / "bin").mkdir()
    install(tmp_path / "bin" / "labdata", "serve_until_ready.py")
    for name in REFUSED:
        refuse(tmp_path / "bin" / name)
    if not shutil.which("curl"):
        install(tmp_path / "bin" / "curl", "curl.py")
    if which("psql"):
        (tmp_path / "bin" / "psql").symlink_to(which("psql"))
    with labdata.connect(server.url, KEY) as lab:
        tables = [found["name"] for found in lab.tables()]
        for table in ("growth_curve", "curve", "sample"):
            if table in tables:
                lab.request("DELETE", f"/tables/{table}", params={"force": "true"})
        if page != "README.md":
            environment |= records(lab, page)
    return environment


def install(path, script):
    """A program that runs a script of the tests."""
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{TESTS / script}" "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def refuse(path):
    """A program that fails, in place of one that changes the machine."""
    path.write_text('#!/bin/sh\necho "$0 is not for tests: mark the block as not run" >&2\nexit 1\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def records(lab, page):
    """Tables with a row and its curve, an execution, a job; their ids as variables."""
    points = [
        {"name": "sample", "data_type": "string", "references": "sample"},
        {"name": "hours", "data_type": "float"},
        {"name": "od600", "data_type": "float"},
    ]
    name = {"name": "name", "data_type": "string", "is_nullable": False, "is_unique": True}
    lab.define_table("sample", [name, {"name": "volume", "data_type": "float"}])
    lab.define_table("curve", points, semantic_category="raw")
    run = lab.write(
        {"sample": [{"id": "A1", "name": "of a curve"}, {"id": "A2", "name": "of no curve"}]},
        series={"curve": {"A1": {"hours": [0, 1], "od600": [0.1, 0.2]}}},
    )
    job = lab.request(
        "POST", "/jobs", json={"name": f"Parse {page}", "code": "print('parsed')"}, creates=True
    )
    key = lab.request("POST", "/api-keys", json={"name": "of the pages", "scopes": ["read"]})
    return {
        "JOB_EXECUTION_ID": run.job_execution_id,
        "JOB_ID": job["id"],
        "PREFIX": key["key"].split("_")[1],
    }
