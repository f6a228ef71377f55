"""Artifacts: reproducible, verified, and never loaded by unpacking."""

from __future__ import annotations

import io
import os
import pickle
import tarfile
import tempfile
import unittest
from pathlib import Path

import pyarrow as pa

from labdata_trainer import artifact
from labdata_trainer.failure import Failure


class Poison:
    """Object whose pickle creates a file when it is loaded."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (os.mkdir, (str(self.marker),))


class Artifacts(unittest.TestCase):
    """Packing and unpacking."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.predictor = self.directory / "predictor"
        self.predictor.mkdir()
        (self.predictor / "model.pkl").write_bytes(b"model")
        self.target = self.directory / artifact.NAME

    def write_tar(self, name: str, content: bytes) -> None:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        self.write_entry(member, content)

    def write_entry(self, member: tarfile.TarInfo, content: bytes) -> None:
        with (
            pa.CompressedOutputStream(pa.OSFile(str(self.target), "wb"), "zstd") as stream,
            tarfile.open(fileobj=stream, mode="w|") as tar,
        ):
            tar.addfile(member, io.BytesIO(content))

    def test_an_artifact_is_unpacked_as_it_was_packed(self) -> None:
        packed = artifact.pack(self.predictor, {"classes": [1, 2]}, self.target)
        self.assertEqual(packed["size"], self.target.stat().st_size)
        out = self.directory / "out"
        manifest = artifact.unpack(self.target, out, packed["sha256"].upper())
        self.assertEqual(manifest, {"format": 1, "classes": [1, 2]})
        self.assertEqual((out / "predictor/model.pkl").read_bytes(), b"model")

    def test_equal_models_give_equal_artifacts(self) -> None:
        first = artifact.pack(self.predictor, {}, self.target)
        os.utime(self.predictor / "model.pkl", (1, 1))
        again = artifact.pack(self.predictor, {}, self.target)
        self.assertEqual(first, again)

    def test_another_hash_is_rejected_before_unpacking(self) -> None:
        artifact.pack(self.predictor, {}, self.target)
        with self.assertRaises(Failure):
            artifact.unpack(self.target, self.directory / "out", "0" * 64)
        self.assertFalse((self.directory / "out").exists())

    def test_entries_outside_the_directory_are_rejected(self) -> None:
        for name in ("../escape", "/tmp/labdata-escape"):
            with self.subTest(name):
                self.write_tar(name, b"x")
                with self.assertRaises(Failure):
                    artifact.unpack(self.target, self.directory / "out", None)
                self.assertFalse((self.directory / "escape").exists())

    def test_entries_that_are_no_files_are_rejected(self) -> None:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
            with self.subTest(kind):
                member = tarfile.TarInfo("manifest.json")
                member.type = kind
                member.linkname = "/etc/passwd"
                self.write_entry(member, b"")
                with self.assertRaises(Failure):
                    artifact.unpack(self.target, self.directory / "out", None)
                self.assertEqual(list((self.directory / "out").glob("*")), [])

    def test_an_entry_never_replaces_another(self) -> None:
        with (
            pa.CompressedOutputStream(pa.OSFile(str(self.target), "wb"), "zstd") as stream,
            tarfile.open(fileobj=stream, mode="w|") as tar,
        ):
            for content in (b'{"format": 1}', b'{"format": 2}'):
                member = tarfile.TarInfo("manifest.json")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        with self.assertRaises(Failure):
            artifact.unpack(self.target, self.directory / "out", None)

    def test_files_of_other_formats_are_rejected(self) -> None:
        self.target.write_bytes(b"no archive")
        with self.assertRaises(Failure):
            artifact.unpack(self.target, self.directory / "out", None)
        self.write_tar("manifest.json", b'{"format": 2}')
        with self.assertRaises(Failure):
            artifact.unpack(self.target, self.directory / "out", None)

    def test_unpacking_loads_no_pickle(self) -> None:
        marker = self.directory / "poisoned"
        (self.predictor / "predictor.pkl").write_bytes(pickle.dumps(Poison(marker)))
        artifact.pack(self.predictor, {}, self.target)
        artifact.unpack(self.target, self.directory / "out", None)
        self.assertFalse(marker.exists())
        # The pickle works where it is loaded.
        pickle.loads((self.directory / "out/predictor/predictor.pkl").read_bytes())
        self.assertTrue(marker.exists())


if __name__ == "__main__":
    unittest.main()
