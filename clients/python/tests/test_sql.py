"""SQL logins: the examples of docs/SQL.md, and drivers that people use."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import adbc_driver_postgresql.dbapi as postgresql
import psycopg
import pytest
from conftest import KEY

PAGE = Path(__file__).parent.parent.parent.parent / "docs/SQL.md"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


@pytest.fixture
def login(lab):
    return lab.sql_login("tests")


@pytest.mark.usefixtures("tables")
def test_the_examples_in_python(server, monkeypatch):
    monkeypatch.setenv("LABDATA_BASE_URL", server.url)
    monkeypatch.setenv("LABDATA_API_KEY", KEY)
    namespace = {"__name__": "__main__"}
    examples = blocks("python")
    assert len(examples) == 2
    for number, example in enumerate(examples, 1):
        exec(compile(example, f"docs/SQL.md, example {number}", "exec"), namespace)
    namespace["lab"].close()


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_the_example_in_a_shell(login):
    (example,) = blocks("sh")
    environment = {**os.environ, "DSN": login["dsn"]}
    command = example.replace("sample", "pg_catalog.pg_class")
    subprocess.run(["bash", "-ec", command], env=environment, check=True)


@pytest.mark.usefixtures("tables")
def test_a_dataframe_by_adbc(lab, login):
    with postgresql.connect(login["dsn"]) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        )
        found = set(cursor.fetch_arrow_table().column("table_name").to_pylist())
    assert {table["name"] for table in lab.tables()} <= found


def test_rows_by_psycopg(login):
    with psycopg.connect(login["dsn"]) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(psycopg.Error):
            connection.execute("CREATE TABLE mine (n int)")


def test_a_revoked_login_is_refused(lab, login):
    lab.request("DELETE", f"/sql-logins/{login['id']}")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(login["dsn"])
