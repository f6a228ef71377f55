"""The `labdata` of shell examples: stops a server once it is ready; other commands are the real ones."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import httpx

START_SECONDS = 180


def serve(program, arguments):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    host, _, _ = os.environ.get("LABDATA_BIND", "127.0.0.1:8080").rpartition(":")
    directory = tempfile.mkdtemp()
    environment = {**os.environ, "LABDATA_BIND": f"{host}:{port}", "LABDATA_DATA_DIR": directory}
    # Of the client, which the server does not know.
    for name in ("LABDATA_BASE_URL", "LABDATA_API_KEY", "LABDATA_BIN"):
        environment.pop(name, None)
    process = subprocess.Popen([program, *arguments], env=environment)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not is_ready(port):
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"labdata {' '.join(arguments)}: the server did not start")
            time.sleep(0.1)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        shutil.rmtree(directory, ignore_errors=True)
    return process.returncode


def is_ready(port):
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).is_success
    except httpx.TransportError:
        return False


if __name__ == "__main__":
    binary = os.environ["LABDATA_BIN"]
    if sys.argv[1:2] == ["serve"]:
        sys.exit(serve(binary, sys.argv[1:]))
    for path in (*sys.argv[1:], os.environ.get("LABDATA_DATA_DIR", "")):
        if os.path.isabs(path):
            sys.exit(f"{path} is not for tests: give a relative path, or mark the block as not run")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("LABDATA_BASE_URL", "LABDATA_API_KEY")
    }
    os.execve(binary, [binary, *sys.argv[1:]], environment)
