import io
import os
import subprocess
import sys
import threading

import pytest

import labdata_client as labdata


@pytest.fixture
def run(lab):
    with lab.execution("Files") as run:
        yield run


@pytest.mark.parametrize("size", [0, 1, 4 * 1024 * 1024, 4 * 1024 * 1024 + 1, 12_345_678])
def test_what_is_uploaded_can_be_downloaded(lab, run, tmp_path, size):
    content = os.urandom(size)
    (tmp_path / "plate.bin").write_bytes(content)
    file = run.upload(tmp_path / "plate.bin")
    assert file.file_name == "plate.bin"
    path = lab.download(file.file_id, tmp_path / "copy.bin")
    assert path.read_bytes() == content
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["copy.bin", "plate.bin"]


def test_sources(lab, run, tmp_path):
    path = tmp_path / "plate.txt"
    path.write_text("a")
    with path.open("rb") as opened:
        files = [
            run.upload(str(path)),
            run.upload(opened),
            run.upload(b"a", name="plate.txt"),
            run.upload(io.BytesIO(b"a"), name="plate.txt"),
            run.upload(path, name="day 1/plate.txt"),
        ]
        assert not opened.closed
    assert [file.file_name for file in files] == ["plate.txt"] * 5
    assert lab.files("day 1/plate")[0]["original_path"] == "day 1/plate.txt"
    assert lab.files("day 1/plate")[0]["content_type"] == "text/plain"
    with pytest.raises(ValueError, match="name="):
        run.upload(b"a")


@pytest.mark.parametrize("size", [10, 4 * 1024 * 1024 + 1])
@pytest.mark.parametrize(
    "name", ['a"b.csv', "a%22b.csv", "a\\b.csv", "a'b;c=d.csv", "Süd €.csv", "100%.csv", "日本 🧪.csv"]
)
def test_names_of_files_arrive_as_they_are(lab, run, size, name):
    file = run.upload(bytes(size), name=name)
    newest = lab.files(limit=1)[0]
    assert (newest["file_id"], newest["original_path"]) == (file.file_id, name)


@pytest.mark.parametrize("size", [10, 4 * 1024 * 1024 + 1])
@pytest.mark.parametrize("name", ["a\nb.csv", "a\r\nX: y.csv", "a\x1bb.csv", "a\x7fb.csv", "\udcff.csv"])
def test_names_that_no_file_can_have_are_refused(run, size, name):
    with pytest.raises((labdata.Invalid, labdata.InvalidArgument)):
        run.upload(bytes(size), name=name)


def test_a_content_type_is_no_header(run):
    with pytest.raises(labdata.InvalidArgument, match="content type"):
        run.upload(b"a", name="a.csv", content_type="text/csv\r\nX: y")


def test_a_download_into_a_directory_that_is_to_be_made(lab, run, tmp_path):
    file = run.upload(b"a", name="plate.txt")
    assert lab.download(file.file_id, f"{tmp_path}/new/") == tmp_path / "new" / "plate.txt"


@pytest.mark.parametrize("size", [10, 6_000_000])
def test_a_pipe_is_uploaded(lab, run, tmp_path, size):
    reading, writing = os.pipe()

    def write():
        with open(writing, "wb") as file:
            file.write(b"x" * size)

    writer = threading.Thread(target=write)
    writer.start()
    with open(reading, "rb") as pipe:
        file = run.upload(pipe, name="pipe.bin")
    writer.join()
    assert lab.download(file.file_id, tmp_path).read_bytes() == b"x" * size


def test_a_file_belongs_to_its_instrument(lab, run):
    lab.request("POST", "/instruments", json={"name": "Reader of test_files"}, creates=True)
    file = run.upload(b"a", name="plate.txt", instrument="Reader of test_files")
    assert [f["file_id"] for f in lab.files(instrument="Reader of test_files")] == [file.file_id]


def test_refused_uploads_are_errors(run):
    with pytest.raises(labdata.BadRequest):
        run.upload(b"\x7fELF" + bytes(1_000), name="program.txt")
    with pytest.raises(FileNotFoundError):
        run.upload("no such file")


def test_large_files_take_constant_memory(server, tmp_path):
    """Measured in a process that does nothing else."""
    from conftest import KEY  # noqa: PLC0415

    path = tmp_path / "large.bin"
    with path.open("wb") as file:
        file.truncate(200 * 1024 * 1024)
    script = (
        "import resource, sys, labdata_client as labdata\n"
        "lab = labdata.connect(sys.argv[1], sys.argv[2])\n"
        "with lab.execution('Memory') as run:\n"
        "    run.upload(b'x' * 5_000_000, name='warm.bin')\n"
        "    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "    file = run.upload(sys.argv[3])\n"
        "lab.download(file.file_id, sys.argv[4])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    command = [sys.executable, "-c", script, server.url, KEY, str(path), str(tmp_path / "copy.bin")]
    grown = int(subprocess.check_output(command, text=True))
    unit = 1 if sys.platform == "darwin" else 1024
    assert grown * unit < 16 * 1024 * 1024
    assert (tmp_path / "copy.bin").stat().st_size == path.stat().st_size
