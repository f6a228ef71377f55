"""Every Python example of the pages for scientists runs, in order, as one script per page."""

import gc
import json
import re
from pathlib import Path

import pytest
from conftest import KEY

import labdata_client as labdata

PACKAGE = Path(__file__).parent.parent
PAGES = [PACKAGE.parent.parent / "docs" / "PYTHON-CLIENT.md", PACKAGE / "README.md"]


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


# The examples close no client, as scripts don't.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples(page, own_server_for_pages, monkeypatch, tmp_path):
    examples = blocks(page)
    assert examples
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plate.txt").write_text("a plate")
    (tmp_path / "export.zip").write_bytes(bytes(5_000_000))
    monkeypatch.setenv("LABDATA_BASE_URL", own_server_for_pages.url)
    monkeypatch.setenv("LABDATA_API_KEY", KEY)
    namespace = {"__name__": "__main__"}
    for number, example in enumerate(examples, 1):
        code = compile(example, f"{page.name}, example {number}", "exec")
        exec(code, namespace)
    namespace.clear()
    gc.collect()


@pytest.fixture
def own_server_for_pages(server, proxy):
    """A platform with the tables and the model that the pages begin with."""
    with labdata.connect(server.url, KEY) as lab:
        if not [found for found in lab.instruments() if found["name"] == "Reader 1"]:
            lab.request("POST", "/instruments", json={"name": "Reader 1"}, creates=True)
        for file in lab.files(instrument="Reader 1"):
            lab.request("DELETE", f"/files/{file['file_id']}")
        for table in ("growth_curve", "sample"):
            if table in [found["name"] for found in lab.tables()]:
                lab.request("DELETE", f"/tables/{table}", params={"force": "true"})
        lab.define_table(
            "sample",
            [
                {"name": "name", "data_type": "string", "is_nullable": False, "is_unique": True},
                {"name": "strain", "data_type": "string"},
                {"name": "volume", "data_type": "float"},
            ],
        )
        lab.define_table(
            "growth_curve",
            [
                {"name": "sample", "data_type": "string", "references": "sample"},
                {"name": "order", "data_type": "integer"},
                {"name": "hours", "data_type": "float"},
                {"name": "od600", "data_type": "float"},
            ],
            semantic_category="raw",
        )
    # Training a model takes minutes, so its answer is given here.
    answer = {"predictions": [1.5, 2.5], "probabilities": None, "model_id": "1", "model_name": "yield"}
    proxy.answers["/api/v1/ml-models/predict"] = ("application/json", json.dumps(answer).encode())
    return proxy
