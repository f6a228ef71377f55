"""The warm process: one child per file, and what ends it."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

from .files import DEMO

READER = Path(__file__).resolve().parents[1]

# Reads no file, and starts at once.
STUB = """
import os, signal, time
from labdata_reader import program, reading
program.import_readers = lambda: None
seen = []
def read(content, file_name, wanted, preferred, zone):
    seen.append(file_name)
    if file_name == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if file_name == "exhausted":
        raise MemoryError
    if file_name == "orphan" and os.fork() == 0:
        time.sleep(5)
        os._exit(0)
    if file_name == "scratch":
        open("left", "w").close()
    return {"seen": seen, "files": os.listdir("."), "length": len(content)}
reading.read = read
program.main()
"""


class Process:
    """A process that reads files."""

    def __init__(self, code: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=READER,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.input, self.output = self.process.stdin, self.process.stdout
        self.ready = self.frame()

    def frame(self) -> bytes:
        head = self.output.read(4)
        return self.output.read(struct.unpack(">I", head)[0]) if head else b""

    def send(self, body: bytes) -> None:
        self.input.write(struct.pack(">I", len(body)) + body)
        self.input.flush()

    def read(self, file_name: str, content: bytes = b"") -> dict[str, Any] | None:
        request = {
            "file_name": file_name,
            "reader": "auto",
            "preferred": None,
            "timezone": None,
            "output_limit": 1 << 26,
        }
        self.send(json.dumps(request).encode())
        self.send(content)
        body = self.frame()
        return json.loads(body) if body else None

    def end(self) -> tuple[int, str]:
        """Ends the input; returns the exit code and the last line of the errors."""
        _, errors = self.process.communicate()
        lines = errors.decode().splitlines()
        return self.process.returncode, lines[-1] if lines else ""


class Warm(unittest.TestCase):
    def test_each_file_finds_the_process_as_the_first_one_did(self) -> None:
        process = Process(STUB)
        self.assertEqual(process.ready, b"ready")
        for name in ("a", "scratch", "b"):
            result = process.read(name, b"x" * 3_000_000)
            assert result is not None
            self.assertEqual((result["seen"], result["length"]), ([name], 3_000_000))
            self.assertEqual(result["files"], ["left"] if name == "scratch" else [])
        self.assertEqual(process.end(), (0, ""))

    def test_a_child_without_a_result_ends_the_process(self) -> None:
        for name, last in (("killed", "killed by SIGKILL"), ("exhausted", "MemoryError")):
            with self.subTest(name):
                process = Process(STUB)
                self.assertIsNotNone(process.read("a"))
                self.assertIsNone(process.read(name))
                self.assertEqual(process.end(), (1, last))

    def test_a_child_that_leaves_processes_behind_ends_the_process(self) -> None:
        process = Process(STUB)
        self.assertIsNotNone(process.read("orphan"))
        self.assertEqual(process.end(), (1, "processes of the reader are left"))

    def test_a_request_that_ends_early_ends_the_process(self) -> None:
        process = Process(STUB)
        process.input.write(b"\0\0")
        process.input.flush()
        code, last = process.end()
        self.assertEqual((code, last), (1, "EOFError: the request is incomplete"))

    def test_real_files_are_read_one_after_the_other(self) -> None:
        process = Process("from labdata_reader import program; program.main()")
        for _ in range(2):
            result = process.read("growth.txt", DEMO.read_bytes())
            assert result is not None
            self.assertEqual((result["reader"], len(result["curves"])), ("AGILENT_GEN5", 24))
        self.assertEqual(process.end()[0], 0)


if __name__ == "__main__":
    unittest.main()
