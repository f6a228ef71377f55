"""Entry point of a run's job on a Ray cluster: prepares the script, runs it, enforces its limits, and
cleans up. The environment contains its order. As others can read it, it contains a one-time nonce in place of
the run's key.

Ray ends a job with TERM to all its processes and KILL some seconds later, and does not reach processes
whose parent has ended. So the first process here only forwards TERM. A guardian in a separate session
does the work, kills everything when the first process has ended, and is the subreaper of all
processes that the script starts.

Everything is written to one log. Markers in it, each after a record separator, tell the platform where
the output of the script begins, which part of it is omitted, and how it ended.
"""

import base64
import codecs
import collections
import ctypes
import http.client
import json
import os
import pathlib
import resource
import select
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zlib

GRACE = 5
TAIL = 4096
CHECK_INTERVAL = 0.25
KEY_PATIENCE = 30
KEY_TIMEOUT = 15
KEY_RETRY_AFTER = 1

# Signals received by the guardian. Ray's TERM also reaches the script, which may end of it first.
received_signals = []


def read_order():
    return json.loads(zlib.decompress(base64.b64decode(os.environ["LABDATA_RUN_ORDER"])))


class Log:
    """Standard output. The first and the last bytes are retained."""

    def __init__(self, name, kept):
        self.name, self.kept = name, kept
        self.written = self.held = self.dropped = 0
        self.ring = collections.deque()

    def put(self, data):
        while data:
            data = data[os.write(1, data):]

    def write_marker(self, **what):
        self.put(f"\x1elabdata {self.name} {json.dumps(what)}\n".encode())

    def write(self, text):
        # The script cannot write a marker.
        data = text.replace("\x1e", "\ufffd").encode()
        if not self.ring and self.written + len(data) <= self.kept:
            self.written += len(data)
            self.put(data)
            return
        self.ring.append(data)
        self.held += len(data)
        while self.held - len(self.ring[0]) >= self.kept:
            self.held -= len(self.ring[0])
            self.dropped += len(self.ring.popleft())

    def close(self):
        if self.dropped:
            self.write_marker(left_out=self.dropped)
        for data in self.ring:
            self.put(data)


def prctl(option, value):
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def descendants():
    """Returns all descendants of this process, with their resident pages."""
    parents = collections.defaultdict(list)
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else []:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
                parents[int(fields[1])].append((int(name), int(fields[21])))
            except (OSError, IndexError):
                pass
    found, waiting = [], [os.getpid()]
    while waiting:
        for child in parents[waiting.pop()]:
            found.append(child)
            waiting.append(child[0])
    return found


def signal_all(number):
    for pid, _ in descendants():
        try:
            os.kill(pid, number)
        except OSError:
            pass


def kill_remaining():
    """Kills all descendants and waits for their end."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        signal_all(signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


class Step:
    """One program of the run: the installation of its dependencies, or the script."""

    def __init__(self, order, log, control):
        self.limits, self.log, self.control = order["limits"], log, control

    def restrict(self):
        for what, limit in [
            (resource.RLIMIT_CPU, self.limits["cpu_seconds"]),
            (resource.RLIMIT_DATA, self.limits["memory"]),
            (resource.RLIMIT_FSIZE, self.limits["file_size"]),
            (resource.RLIMIT_CORE, 0),
        ]:
            hard = resource.getrlimit(what)[1]
            if hard != resource.RLIM_INFINITY:
                limit = min(limit, hard)
            resource.setrlimit(what, (limit, limit))
        prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        prctl(38, 1)  # PR_SET_NO_NEW_PRIVS

    def run(self, command, environment, directory, seconds):
        """Runs the command. Returns the reason of its end, its exit status and the end of its errors."""
        child = subprocess.Popen(
            command, env=environment, cwd=directory, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=self.restrict, bufsize=0,
        )
        self.tail = b""
        self.sources = selectors.DefaultSelector()
        self.sources.register(self.control, selectors.EVENT_READ, None)
        for pipe, is_error in [(child.stdout, False), (child.stderr, True)]:
            os.set_blocking(pipe.fileno(), False)
            decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
            self.sources.register(pipe, selectors.EVENT_READ, (decoder, is_error))
        reason, started, kill_at = None, time.monotonic(), None
        while child.poll() is None:
            now = time.monotonic()
            if reason is None and now - started >= seconds:
                reason, kill_at = "timed_out", now
            if reason is None and sum(rss for _, rss in descendants()) * os.sysconf("SC_PAGE_SIZE") > self.limits["memory"]:
                reason, kill_at = "memory", now
            if kill_at is not None and now >= kill_at:
                signal_all(signal.SIGKILL)
            wait = min(CHECK_INTERVAL, max(0.001, started + seconds - now)) if reason is None else 0.05
            for key, _ in self.sources.select(wait):
                if key.data is not None:
                    self.read(key)
                    continue
                request = os.read(self.control, 16)
                if not request:
                    kill_remaining()
                    raise SystemExit(1)  # the first process was killed
                if reason is None:
                    reason, kill_at = "cancelled", time.monotonic() + GRACE
                    signal_all(signal.SIGTERM)
        if reason is None and received_signals:
            reason = "cancelled"
        kill_remaining()
        for key in list(self.sources.get_map().values()):
            while key.data is not None and self.read(key):
                pass
        tail = self.tail.decode(errors="replace").rstrip()
        if reason is None and child.returncode and tail.rpartition("\n")[2].startswith("MemoryError"):
            reason = "memory"
        code = child.returncode
        exit = {"code": code} if code >= 0 else {"signal": -code}
        return reason or "exited", exit, tail

    def read(self, key):
        decoder, is_error = key.data
        try:
            data = os.read(key.fd, 65536)
        except BlockingIOError:
            return False
        text = decoder.decode(data, final=not data)
        if text:
            self.log.write(text)
            if is_error:
                self.tail = (self.tail + text.encode())[-TAIL:]
        if not data:
            self.sources.unregister(key.fileobj)
        return bool(data)


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the nonce to another host."""

    def redirect_request(self, *_):
        return None


def fetch_key(exchange, control):
    """Exchanges the nonce for the key of the run. Returns the key, or None and the end of the run.

    A request that the platform may have received is not repeated: it would count as a theft. The run is
    then lost, and the platform tries it again with another nonce.
    """
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirects)
    request = urllib.request.Request(
        exchange["url"], data=b"", method="POST",
        headers={"Authorization": "Bearer " + exchange["nonce"], "Content-Type": "application/json"},
    )
    end = time.monotonic() + KEY_PATIENCE
    while True:
        is_temporary = False
        try:
            with opener.open(request, timeout=KEY_TIMEOUT) as answer:
                return json.load(answer)["key"], None
        except urllib.error.HTTPError as error:
            is_temporary = error.code in (429, 503)
            try:
                problem = json.load(error)["detail"]
            except (OSError, ValueError, TypeError, KeyError, http.client.HTTPException):
                problem = error.reason
            problem = f"{error.code} {problem}"
        except urllib.error.URLError as error:
            is_temporary, problem = True, str(error.reason)
        except (ValueError, TypeError, KeyError):
            problem = "the answer contains no key"
        except (OSError, http.client.HTTPException):
            return None, {"reason": "lost", "exit": None, "tail": ""}
        if not is_temporary or time.monotonic() >= end:
            tail = f"POST {exchange['url']}: {problem}"
            return None, {"reason": "key_not_received", "exit": None, "tail": tail}
        if select.select([control], [], [], KEY_RETRY_AFTER)[0]:
            return None, {"reason": "cancelled", "exit": None, "tail": ""}


def find_uv():
    beside = os.path.join(os.path.dirname(sys.executable), "uv")
    return shutil.which("uv") or (beside if os.path.exists(beside) else None)


def write_client(client, workspace):
    """Writes the wheel of the Python client, and a script whose metadata refer to it. Returns its path."""
    wheel = os.path.join(workspace, client["file_name"])
    with open(wheel, "wb") as file:
        file.write(client["wheel"].encode("latin-1"))
    path = os.path.join(workspace, "installation.py")
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(client["script"].replace(client["url"], pathlib.Path(wheel).as_uri()))
    return path


def run_guardian(control):
    order = read_order()
    for name in [name for name in os.environ if name.startswith("LABDATA_RUN_")]:
        del os.environ[name]
    prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
    log = Log(order["name"], order["log_limit"])
    log.write_marker(begun=None)
    workspace = tempfile.mkdtemp(prefix="labdata-run-")
    python = getattr(sys, "_base_executable", None) or sys.executable
    end = {"reason": "lost", "exit": None, "tail": ""}
    try:
        scratch, temporary = os.path.join(workspace, "scratch"), os.path.join(workspace, "tmp")
        for directory in (scratch, temporary):
            os.mkdir(directory, 0o700)
        script = os.path.join(workspace, "script.py")
        with open(script, "w", encoding="utf-8", newline="") as file:
            file.write(order["script"])
        exchange = order["key_exchange"]
        if exchange is not None:
            key, failure = fetch_key(exchange, control)
            if failure is not None:
                end = failure
                return
            order["environment"][exchange["variable"]] = key
        step = Step(order, log, control)
        path = os.path.dirname(python) + ":/usr/local/bin:/usr/bin:/bin"
        if order["has_dependencies"]:
            uv = find_uv()
            if uv is None:
                end = {"reason": "preparation_failed", "exit": None, "tail": "uv is not installed on the nodes of the Ray cluster; scripts with dependencies need it"}
                return
            virtual_environment = os.path.join(workspace, "env")
            environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
            environment.update(VIRTUAL_ENV=virtual_environment, UV_PYTHON_DOWNLOADS="never", NO_COLOR="1")
            declaration = script
            if order["client"] is not None:
                declaration = write_client(order["client"], workspace)
            command = [uv, "sync", "--script", declaration, "--active", "--python", python, "--no-config", "--no-progress"]
            reason, exit, tail = step.run(command, environment, scratch, order["limits"]["preparation"])
            if (reason, exit) != ("exited", {"code": 0}):
                if reason == "exited":
                    reason = "preparation_failed"
                end = {"reason": reason, "exit": exit, "tail": tail}
                return
            python = os.path.join(virtual_environment, "bin", "python")
        else:
            # Only the standard library, without the packages of the node.
            virtual_environment = os.path.join(workspace, "env")
            os.makedirs(os.path.join(virtual_environment, "bin"))
            os.symlink(python, os.path.join(virtual_environment, "bin", "python"))
            with open(os.path.join(virtual_environment, "pyvenv.cfg"), "w") as file:
                file.write(f"home = {os.path.dirname(python)}\ninclude-system-site-packages = false\n")
            python = os.path.join(virtual_environment, "bin", "python")
        path = os.path.dirname(python) + ":" + path
        environment = {"PATH": path, "HOME": scratch, "TMPDIR": temporary, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
        environment.update(order["environment"])
        log.write_marker(started=None)
        reason, exit, tail = step.run([python, script], environment, scratch, order["limits"]["wall_clock"])
        end = {"reason": reason, "exit": exit, "tail": tail}
    finally:
        kill_remaining()
        for top, names, _ in os.walk(workspace):
            for name in names:
                if not os.path.islink(os.path.join(top, name)):
                    os.chmod(os.path.join(top, name), 0o700)
        shutil.rmtree(workspace, ignore_errors=True)
        log.close()
        log.write_marker(ended=end)
        sys.exit((end["exit"] or {}).get("code", 1))


def main():
    read_end, write_end = os.pipe()
    stopped = []

    def stop(*_):
        stopped.append(True)
        os.write(write_end, b"c")

    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    guardian = os.fork()
    if guardian == 0:
        os.close(write_end)
        os.setsid()
        # The first process forwards requests. A handler, unlike SIG_IGN, is not inherited by the script.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: received_signals.append(True))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGINT])
        run_guardian(read_end)
    os.close(read_end)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGINT])
    while True:
        try:
            _, status = os.waitpid(guardian, 0)
            break
        except InterruptedError:
            pass
    sys.exit(os.waitstatus_to_exitcode(status) if not stopped else 143)


main()
