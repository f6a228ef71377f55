"""Checks docs/deploy against the server at LABDATA_BIN, as far as this machine can run it."""

import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

DEPLOY = Path(__file__).resolve().parent.parent
LABDATA = os.environ["LABDATA_BIN"]
NGINX = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
CADDY = shutil.which("caddy")
OPENSSL = shutil.which("openssl")
KEY = "ldk_abcdefgh_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
START_SECONDS = 180
UPLOAD_BYTES = 20 * 1024 * 1024
SETTING = re.compile(r"\b(?:LABDATA_[A-Z_]+|DATABASE_URL)\b")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def stop(process: subprocess.Popen) -> None:
    process.terminate()
    process.wait(60)


class Settings(unittest.TestCase):
    def test_the_files_name_settings_of_the_server(self) -> None:
        text = subprocess.run([LABDATA, "serve", "--help"], check=True, capture_output=True, text=True).stdout
        declared = set(SETTING.findall(text))
        self.assertIn("LABDATA_BIND", declared)
        for file in sorted(path for path in DEPLOY.iterdir() if path.is_file()):
            unknown = set(SETTING.findall(file.read_text())) - declared
            self.assertEqual(unknown, set(), f"{file.name} names settings that `labdata serve --help` does not list")


class Units(unittest.TestCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed (Debian: systemd)")
    def test_systemd_accepts_the_units(self) -> None:
        for name in ("labdata.service", "labdata-worker.service"):
            with self.subTest(name), tempfile.TemporaryDirectory() as directory:
                # systemd checks that the program exists.
                unit = Path(directory) / name
                text = (DEPLOY / name).read_text()
                self.assertIn("ExecStart=/usr/local/bin/labdata ", text)
                # What the server writes is closed to other accounts of the machine.
                for setting in ("UMask=0077", "StateDirectoryMode=0700"):
                    self.assertIn(f"\n{setting}\n", text)
                unit.write_text(text.replace("/usr/local/bin/labdata", shutil.which("true") or "/bin/true"))
                result = subprocess.run(
                    ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
                )
                problems = [line for line in result.stderr.splitlines() if name in line]
                self.assertEqual((result.returncode, problems), (0, []), result.stderr)


class Image(unittest.TestCase):
    def test_the_dockerfile_copies_files_that_exist(self) -> None:
        joined = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
        copies = [line.split()[1:-1] for line in joined.splitlines() if line.startswith("COPY ") and "--from=" not in line]
        self.assertTrue(copies)
        for source in (source for sources in copies for source in sources):
            self.assertTrue((DEPLOY.parent.parent / source).exists(), source)


class Proxy:
    """A server behind a proxy with a certificate of this machine. Tests of each proxy's recipe derive from it."""

    @classmethod
    def setUpClass(cls) -> None:
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        directory = Path(temporary.name)
        # The private PostgreSQL of a server that root started runs as another account.
        directory.chmod(0o755)
        cls.port, backend = free_port(), free_port()
        cls.addClassCleanup(stop, cls.start_proxy(directory, backend, *cls.make_certificate(directory)))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LABDATA_")}
        environment.pop("DATABASE_URL", None)
        environment.update(
            LABDATA_BIND=f"127.0.0.1:{backend}",
            LABDATA_DATA_DIR=str(directory / "data"),
            LABDATA_BOOTSTRAP_KEY=KEY,
            LABDATA_PUBLIC_URL=f"https://localhost:{cls.port}",
        )
        with (directory / "server.log").open("wb") as log:
            server = subprocess.Popen(
                [LABDATA, "serve", "--no-worker"], env=environment, cwd=directory, stdout=log, stderr=log
            )
        cls.addClassCleanup(stop, server)
        deadline = time.monotonic() + START_SECONDS
        while not cls.is_ready():
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the server did not start:\n" + (directory / "server.log").read_text())
            time.sleep(0.1)

    @classmethod
    def make_certificate(cls, directory: Path) -> tuple[Path, Path]:
        certificate, key = directory / "certificate.pem", directory / "key.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
            + ["-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
            + ["-keyout", key, "-out", certificate],
            check=True,
            capture_output=True,
        )
        cls.tls = ssl.create_default_context(cafile=str(certificate))
        return certificate, key

    @classmethod
    def is_ready(cls) -> bool:
        try:
            return cls.exchange("GET", "/readyz")[0] == 200
        except OSError:
            return False

    @classmethod
    def exchange(
        cls, method: str, path: str, body: bytes | None = None, headers: dict | None = None
    ) -> tuple[int, bytes]:
        """Sends a request through the proxy; returns the status and the body of the response."""
        connection = http.client.HTTPSConnection("localhost", cls.port, context=cls.tls, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.read()

    def call(self, method: str, path: str, body: dict | None = None, headers: dict | None = None) -> dict:
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", **(headers or {})}
        status, text = self.exchange(method, path, json.dumps(body).encode() if body else None, headers)
        self.assertLess(status, 300, text)
        return json.loads(text) if text else {}

    def test_large_files_pass_and_forged_headers_do_not_count(self) -> None:
        instrument = self.call("POST", "/api/v1/instruments", {"name": "Camera"})
        upload = self.call(
            "POST",
            "/api/v1/files/upload-url",
            {"file_name": "image.bin", "instrument_id": instrument["id"]},
            {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "http", "Forwarded": "host=evil.example"},
        )
        base = f"https://localhost:{self.port}"
        self.assertTrue(upload["upload_url"].startswith(base + "/"), upload)
        content = os.urandom(1024) * (UPLOAD_BYTES // 1024)
        status, text = self.exchange("PUT", upload["upload_url"].removeprefix(base), content, upload["headers"])
        self.assertLess(status, 300, text)
        file = f"/api/v1/files/{upload['file_id']}"
        self.call("POST", f"{file}/confirm-upload")
        download = self.call("GET", f"{file}/content")["download_url"]
        status, received = self.exchange("GET", download.removeprefix(base))
        self.assertEqual((status, received == content), (200, True))

    def test_events_arrive_while_the_stream_is_open(self) -> None:
        connection = http.client.HTTPSConnection("localhost", self.port, context=self.tls, timeout=30)
        self.addCleanup(connection.close)
        connection.request("GET", "/api/v1/events", headers={"Authorization": f"Bearer {KEY}"})
        events = connection.getresponse()
        self.addCleanup(events.close)
        self.assertEqual(events.status, 200)
        self.call("POST", "/api/v1/job-executions", {"job_name": "Proxy"})
        deadline = time.monotonic() + 30
        while b"job_execution.started" not in (line := events.readline()):
            self.assertTrue(line, "the stream ended")
            self.assertLess(time.monotonic(), deadline, "no event within 30 s")


def adapted(name: str, changes: dict[str, str]) -> str:
    """A recipe with this machine's names, ports and paths."""
    recipe = (DEPLOY / name).read_text()
    for old, new in changes.items():
        assert old in recipe, f"{name} has no `{old}`"
        recipe = recipe.replace(old, new)
    return recipe


@unittest.skipUnless(NGINX and OPENSSL, "nginx or openssl is not installed (Debian: nginx openssl)")
class Nginx(Proxy, unittest.TestCase):
    @classmethod
    def start_proxy(cls, directory: Path, backend: int, certificate: Path, key: Path) -> subprocess.Popen:
        recipe = adapted(
            "nginx.conf",
            {
                "listen 443 ": f"listen 127.0.0.1:{cls.port} ",
                "/etc/ssl/lab.example.org.pem": str(certificate),
                "/etc/ssl/private/lab.example.org.key": str(key),
                "lab.example.org;": "localhost;",
                "127.0.0.1:8080": f"127.0.0.1:{backend}",
            },
        )
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        paths = "".join(f"{kind}_temp_path {directory}/{kind};\n" for kind in kinds)
        account = "user root;\n" if os.geteuid() == 0 else ""
        configuration = directory / "nginx.conf"
        configuration.write_text(
            f"{account}daemon off;\npid {directory}/nginx.pid;\nerror_log {directory}/error.log;\n"
            f"events {{}}\nhttp {{\naccess_log off;\n{paths}{recipe}}}\n"
        )
        return subprocess.Popen([NGINX, "-e", directory / "error.log", "-c", configuration])


@unittest.skipUnless(CADDY and OPENSSL, "caddy or openssl is not installed (Debian: caddy openssl)")
class Caddy(Proxy, unittest.TestCase):
    @classmethod
    def start_proxy(cls, directory: Path, backend: int, certificate: Path, key: Path) -> subprocess.Popen:
        # With a certificate that is there, Caddy fetches none.
        site = f"localhost:{cls.port} {{\n\tbind 127.0.0.1\n\ttls {certificate} {key}\n"
        recipe = adapted("Caddyfile", {"lab.example.org {\n": site, "127.0.0.1:8080": f"127.0.0.1:{backend}"})
        options = f"{{\n\tadmin off\n\tauto_https disable_redirects\n\tstorage file_system {directory}/caddy\n}}\n"
        configuration = directory / "Caddyfile"
        configuration.write_text(options + recipe)
        return subprocess.Popen(
            [CADDY, "run", "--adapter", "caddyfile", "--config", configuration],
            env={**os.environ, "HOME": str(directory)},
            stderr=subprocess.DEVNULL,
        )


if __name__ == "__main__":
    unittest.main()
