"""Every Python example of the pages for scientists runs, in order, as one script per page."""

import gc
import json
import re
import shutil
import threading
from pathlib import Path

import pytest
from conftest import KEY

import labdata_client as labdata

PACKAGE = Path(__file__).parent.parent
ROOT = PACKAGE.parent.parent
PAGES = [
    "README.md",
    "docs/AGENT.md",
    "docs/API.md",
    "docs/CONNECT-AN-INSTRUMENT.md",
    "docs/GUIDE.md",
    "docs/PYTHON-CLIENT.md",
    "clients/python/README.md",
]
EXPORT = ROOT / "docs/demo/simulated_growth_curves.txt"
# Run in crates/api, in jobs on the platform, with the SDK of MCP, by test_webhooks.py and test_sql.py.
ELSEWHERE = ["docs/MCP.md", "docs/SQL.md", "docs/WEBHOOKS.md", "docs/WRITING-JOBS.md"]


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def fences(page):
    """Starts of examples, however they are written."""
    return re.findall(
        r"^[ >]*(?:```|~~~) *(?:py|python|python3|ipython)\b", page.read_text("utf-8"), re.MULTILINE
    )


def test_every_page_with_an_example_is_run():
    folders = [ROOT / name for name in ("docs", "clients", "crates")]
    pages = [*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))]
    examples = {str(page.relative_to(ROOT)): len(fences(page)) for page in pages if fences(page)}
    assert examples == {page: len(blocks(ROOT / page)) for page in (*PAGES, *ELSEWHERE)}


# The examples close no client, as scripts do not. Libraries that a reader has may be newer.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.usefixtures("uploads")
@pytest.mark.parametrize("page", PAGES)
def test_examples(page, own_server_for_pages, monkeypatch, tmp_path):
    examples = blocks(ROOT / page)
    assert examples
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXPORT, tmp_path / "plate.txt")
    (tmp_path / "README.md").write_text("a page")
    (tmp_path / "export.zip").write_bytes(bytes(5_000_000))
    monkeypatch.setenv("LABDATA_BASE_URL", own_server_for_pages.url)
    monkeypatch.setenv("LABDATA_API_KEY", KEY)
    namespace = {"__name__": "__main__"}
    for number, example in enumerate(examples, 1):
        code = compile(example, f"{page}, example {number}", "exec")
        exec(code, namespace)
    namespace.clear()
    gc.collect()


@pytest.fixture
def own_server_for_pages(request, server, proxy):
    """A platform with the tables and the model that the pages begin with."""
    with labdata.connect(server.url, KEY) as lab:
        if not [found for found in lab.instruments() if found["name"] == "Reader 1"]:
            lab.request("POST", "/instruments", json={"name": "Reader 1"}, creates=True)
        for file in lab.files(instrument="Reader 1"):
            lab.request("DELETE", f"/files/{file['file_id']}")
        tables = [found["name"] for found in lab.tables()]
        for table in ("culture_curve", "culture", "growth_curve", "curve", "sample", "wine"):
            if table in tables:
                lab.request("DELETE", f"/tables/{table}", params={"force": "true"})
        if request.node.callspec.params["page"] != "README.md":
            define_tables(lab)
    # Training a model takes minutes, so its answers are given here. No provider of models is set up either.
    predicted = {"predictions": [1.5, 2.5], "probabilities": None, "model_id": "1", "model_name": "yield"}
    for path, answer in {
        "ml-models": {"id": "1", "version_number": 1, "status": "pending"},
        "ml-models/predict": predicted,
        "agent/runs": {"output": "A1 grew fastest."},
    }.items():
        proxy.answers[f"/api/v1/{path}"] = ("application/json", json.dumps(answer).encode())
    return proxy


def define_tables(lab):
    points = [
        {"name": "sample", "data_type": "string", "references": "sample"},
        {"name": "order", "data_type": "integer"},
        {"name": "hours", "data_type": "float"},
        {"name": "od600", "data_type": "float"},
    ]
    lab.define_table(
        "sample",
        [
            {"name": "name", "data_type": "string", "is_nullable": False, "is_unique": True},
            {"name": "strain", "data_type": "string"},
            {"name": "volume", "data_type": "float"},
        ],
    )
    lab.define_table("growth_curve", points, semantic_category="raw")
    lab.define_table("curve", points, semantic_category="raw")
    names = ("alcohol", "color", "cultivar")
    lab.define_table("wine", [{"name": name, "data_type": "float"} for name in names])
    lab.write({"wine": [{"alcohol": 13.2, "color": 5.6, "cultivar": 1}]})
    lab.write(
        {"sample": [{"id": "A1", "name": "of curves"}]},
        series={"curve": {"A1": {"hours": [0, 1], "od600": [0.1, 0.2]}}},
    )


@pytest.fixture
def uploads(own_server_for_pages):
    """A file of a table, and another one every second, as an instrument makes them."""
    ended = threading.Event()
    with labdata.connect(own_server_for_pages.url, KEY) as lab:
        lab.upload(b"alcohol,color\n13.2,5.6\n", instrument="Reader 1", name="wine.csv")

        def measure():
            number = 0
            while not ended.wait(1):
                number += 1
                lab.upload(b"a plate", instrument="Reader 1", name=f"plate {number}.txt")

        thread = threading.Thread(target=measure)
        thread.start()
        yield
        ended.set()
        thread.join()
