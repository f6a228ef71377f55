import importlib.util
from pathlib import Path

PACKAGE = Path(__file__).parent.parent


def test_the_synchronous_client_is_up_to_date(tmp_path):
    spec = importlib.util.spec_from_file_location("generate_sync", PACKAGE / "scripts" / "generate_sync.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.generate(tmp_path)
    committed = PACKAGE / "src" / "labdata_client" / "_sync"
    names = {path.name for path in committed.glob("*.py")}
    assert names == {path.name for path in tmp_path.glob("*.py")}
    for name in sorted(names):
        assert (tmp_path / name).read_text() == (committed / name).read_text(), f"run {spec.origin}"
