"""The notebooks of the docs run from top to bottom."""

import asyncio
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest
from conftest import KEY

NOTEBOOKS = sorted((Path(__file__).parents[3] / "docs" / "notebooks").glob("*.ipynb"))


def outputs(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


# Those of Jupyter and of libraries that a reader has in other versions.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_draws(path, server, monkeypatch, tmp_path):
    monkeypatch.setenv("LABDATA_BASE_URL", server.url)
    monkeypatch.setenv("LABDATA_API_KEY", KEY)
    monkeypatch.setenv("JUPYTER_PATH", str(Path(sys.prefix) / "share" / "jupyter"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    # Replaces the outputs.
    asyncio.run(client.async_execute())
    shown = outputs(notebook)
    assert any("image/png" in output.get("data", {}) for output in shown)
    assert not [output for output in shown if output.output_type == "error"]
