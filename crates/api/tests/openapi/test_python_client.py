"""A client that openapi-python-client generates from the document."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from types import ModuleType

import pytest

from server import KEY

PACKAGE = "labdata_generated"


@pytest.fixture(scope="module")
def package(run, document, generated) -> ModuleType:
    """The generated package, with every module imported."""
    run(
        Path(sys.executable).with_name("openapi-python-client"),
        "generate",
        "--path",
        document,
        "--output-path",
        generated / PACKAGE,
        "--meta",
        "none",
        "--config",
        Path(__file__).with_name("openapi-python-client.yaml"),
        "--fail-on-warning",
    )
    for module in (generated / PACKAGE / "api").rglob("*.py"):
        # The generator uses a name that it does not import where a body has two forms and nothing else is optional.
        text = module.read_text()
        module.write_text(text.replace("import Response, UNSET\n", "import Response, UNSET, Unset\n"))
    sys.path.insert(0, str(generated))
    package = importlib.import_module(PACKAGE)
    for module in pkgutil.walk_packages(package.__path__, f"{PACKAGE}."):
        importlib.import_module(module.name)
    return package


def test_every_operation_is_generated(package, operations):
    modules = {module.name.rpartition(".")[2] for module in pkgutil.walk_packages(package.__path__, f"{PACKAGE}.")}
    assert set(operations) <= modules


def test_a_generated_client_writes_reads_and_reverts(package, server):
    models, types = package.models, package.types
    client = package.AuthenticatedClient(server.url, KEY, raise_on_unexpected_status=True)

    def call(tag: str, operation: str, *path: str, **arguments: object) -> object:
        module = importlib.import_module(f"{PACKAGE}.api.{tag}.{operation}")
        answer = module.sync_detailed(*path, client=client, **arguments)
        assert answer.status_code == HTTPStatus.OK, answer.content
        return answer.parsed

    columns = [{"name": "name", "data_type": "string", "is_unique": True}, {"name": "volume", "data_type": "float"}]
    definition = models.DefineTableBody.from_dict({"semantic_category": "curated", "columns": columns})
    call("tables", "define_table", "python_sample", body=definition)

    rows = [{"name": "A1", "volume": 150.0}, {"name": "A2", "volume": None}]
    write = models.TableWrite(table="python_sample", rows=[models.TableWriteRowsItem.from_dict(row) for row in rows])
    written = call("data", "write_data", body=models.DataWriteBody(job_name="Python round trip", tables=[write]))
    assert isinstance(written, models.DataWriteResult)
    assert [table.created for table in written.tables] == [2]

    request = models.ReadRowsBody.from_dict(
        {"target_type": "table", "target_name": "python_sample", "columns": ["name", "volume"], "order_by": ["name"]}
    )
    assert [row.to_dict() for row in call("tools", "read_rows", body=request)] == rows

    instrument = call("instruments", "create_instrument", body=models.CreateInstrumentBody(name="Python reader"))
    content = types.File(payload=BytesIO(b"A1\t0.08\n"), file_name="plate-12.txt", mime_type="text/plain")
    call("files", "upload_file", body=models.UploadFileBody(file=content, instrument_id=instrument.id))
    listed = call("files", "list_files", instrument_id=str(instrument.id))
    assert [file.file_name for file in listed] == ["plate-12.txt"]

    execution = written.job_execution_id
    call("job_executions", "revert_job_execution", execution, body=models.RevertBody())
    assert call("tools", "read_rows", body=request) == []
