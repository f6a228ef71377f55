"""What a run's job is on a Ray cluster: it prepares the script, runs it, watches its limits, and
leaves nothing of it behind. Its order comes in the environment.

Ray ends a job by TERM to all its processes and KILL some seconds later, and does not reach those
whose parent is gone. So the first process here only passes TERM on; a guardian in a session of its
own does the work, kills everything when the first process is gone, and is the parent of last resort
of all that the script starts.

Everything goes through one log. Marks in it, behind a record separator, tell the platform where the
script's own output begins, what is left out of it, and how it ended.
"""

import base64
import codecs
import collections
import ctypes
import json
import os
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib

GRACE = 5
TAIL = 4096
LOOK = 0.25

# Ray's TERM reaches the script, too, which may have ended of it before anybody here looks.
asked = []


def read_order():
    return json.loads(zlib.decompress(base64.b64decode(os.environ["LABDATA_RUN_ORDER"])))


class Log:
    """Standard output, of which the first and the last bytes are kept."""

    def __init__(self, name, kept):
        self.name, self.kept = name, kept
        self.written = self.held = self.dropped = 0
        self.ring = collections.deque()

    def put(self, data):
        while data:
            data = data[os.write(1, data):]

    def mark(self, **what):
        self.put(f"\x1elabdata {self.name} {json.dumps(what)}\n".encode())

    def write(self, text):
        # A mark is made by nobody else.
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
            self.mark(left_out=self.dropped)
        for data in self.ring:
            self.put(data)


def prctl(option, value):
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def descendants():
    """All processes that come from this one."""
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


def bury():
    """Kills what is left, until nothing is."""
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
        """Why it ended, and how."""
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
        reason, begun, kill_at = None, time.monotonic(), None
        while child.poll() is None:
            now = time.monotonic()
            if reason is None and now - begun >= seconds:
                reason, kill_at = "timed_out", now
            if reason is None and sum(rss for _, rss in descendants()) * os.sysconf("SC_PAGE_SIZE") > self.limits["memory"]:
                reason, kill_at = "memory", now
            if kill_at is not None and now >= kill_at:
                signal_all(signal.SIGKILL)
            wait = min(LOOK, max(0.001, begun + seconds - now)) if reason is None else 0.05
            for key, _ in self.sources.select(wait):
                if key.data is not None:
                    self.read(key)
                    continue
                said = os.read(self.control, 16)
                if not said:
                    bury()
                    raise SystemExit(1)  # the first process was killed: nobody listens
                if reason is None:
                    reason, kill_at = "cancelled", time.monotonic() + GRACE
                    signal_all(signal.SIGTERM)
        if reason is None and asked:
            reason = "cancelled"
        bury()
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


def find_uv():
    beside = os.path.join(os.path.dirname(sys.executable), "uv")
    return shutil.which("uv") or (beside if os.path.exists(beside) else None)


def guard(control):
    order = read_order()
    for name in [name for name in os.environ if name.startswith("LABDATA_RUN_")]:
        del os.environ[name]
    prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
    log = Log(order["name"], order["log_kept"])
    log.mark(begun=None)
    whole = tempfile.mkdtemp(prefix="labdata-run-")
    python = getattr(sys, "_base_executable", None) or sys.executable
    end = {"reason": "lost", "exit": None, "tail": ""}
    try:
        scratch, temporary = os.path.join(whole, "scratch"), os.path.join(whole, "tmp")
        for directory in (scratch, temporary):
            os.mkdir(directory, 0o700)
        script = os.path.join(whole, "script.py")
        with open(script, "w", encoding="utf-8", newline="") as file:
            file.write(order["script"])
        step = Step(order, log, control)
        path = os.path.dirname(python) + ":/usr/local/bin:/usr/bin:/bin"
        if order["has_dependencies"]:
            uv = find_uv()
            if uv is None:
                end = {"reason": "preparation_failed", "exit": None, "tail": "uv is not installed on the nodes of the Ray cluster; scripts with dependencies need it"}
                return
            place = os.path.join(whole, "env")
            environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
            environment.update(VIRTUAL_ENV=place, UV_PYTHON_DOWNLOADS="never", NO_COLOR="1")
            command = [uv, "sync", "--script", script, "--active", "--python", python, "--no-config", "--no-progress"]
            reason, exit, tail = step.run(command, environment, scratch, order["limits"]["preparation"])
            if (reason, exit) != ("exited", {"code": 0}):
                if reason == "exited":
                    reason = "preparation_failed"
                end = {"reason": reason, "exit": exit, "tail": tail}
                return
            python = os.path.join(place, "bin", "python")
        else:
            # The standard library, without what happens to be installed on the node.
            place = os.path.join(whole, "env")
            os.makedirs(os.path.join(place, "bin"))
            os.symlink(python, os.path.join(place, "bin", "python"))
            with open(os.path.join(place, "pyvenv.cfg"), "w") as file:
                file.write(f"home = {os.path.dirname(python)}\ninclude-system-site-packages = false\n")
            python = os.path.join(place, "bin", "python")
        path = os.path.dirname(python) + ":" + path
        environment = {"PATH": path, "HOME": scratch, "TMPDIR": temporary, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
        environment.update(order["environment"])
        log.mark(started=None)
        reason, exit, tail = step.run([python, script], environment, scratch, order["limits"]["wall_clock"])
        end = {"reason": reason, "exit": exit, "tail": tail}
    finally:
        bury()
        for top, names, _ in os.walk(whole):
            for name in names:
                if not os.path.islink(os.path.join(top, name)):
                    os.chmod(os.path.join(top, name), 0o700)
        shutil.rmtree(whole, ignore_errors=True)
        log.close()
        log.mark(ended=end)
        sys.exit((end["exit"] or {}).get("code", 1))


def main():
    listening, telling = os.pipe()
    stopped = []

    def stop(*_):
        stopped.append(True)
        os.write(telling, b"c")

    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    guardian = os.fork()
    if guardian == 0:
        os.close(telling)
        os.setsid()
        # The first process tells it what to do; a handler, unlike SIG_IGN, does not reach the script.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: asked.append(True))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGINT])
        guard(listening)
    os.close(listening)
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
