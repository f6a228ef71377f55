"""`labdata-watch`, against a real platform; time is an argument, so that no test waits."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from conftest import KEY

import labdata_client as labdata
from labdata_client.watch import paths
from labdata_client.watch.__main__ import main
from labdata_client.watch.state import Sent, State, default_path
from labdata_client.watch.watcher import Watcher

WINDOWS = PureWindowsPath(r"C:\Data\Reader")
SHARE = PureWindowsPath(r"\\lab-nas\reader 1")


class TestPaths:
    @pytest.mark.parametrize(
        ("path", "root", "name"),
        [
            (PurePosixPath("/data/run/plate.txt"), PurePosixPath("/data"), "run/plate.txt"),
            (WINDOWS / r"run\Plate.txt", WINDOWS, "run/Plate.txt"),
            (PureWindowsPath(r"c:\data\READER\x.txt"), WINDOWS, "x.txt"),
            (SHARE / r"2026\plate.txt", SHARE, "2026/plate.txt"),
            (PurePosixPath("/data/Mu\u0308ller.txt"), PurePosixPath("/data"), "M\u00fcller.txt"),
        ],
    )
    def test_names_have_slashes_on_every_system(self, path, root, name):
        assert paths.remote_name(path, root) == name

    def test_case_tells_files_apart_except_on_windows(self):
        assert paths.state_key(WINDOWS / "PLATE.TXT", WINDOWS) == paths.state_key(
            WINDOWS / "plate.txt", WINDOWS
        )
        root = PurePosixPath("/data")
        assert paths.state_key(root / "PLATE.TXT", root) != paths.state_key(root / "plate.txt", root)

    @pytest.mark.parametrize(
        "name", [".hidden", r".git\config", "~$plate.xlsx", "x.TMP", "Thumbs.db", "x.csv.part"]
    )
    def test_temporary_files_are_ignored(self, name):
        assert paths.is_ignored(WINDOWS / name, WINDOWS)

    @pytest.mark.parametrize("pattern", ["*.txt", "*.TXT", "run/*", r"run\*"])
    def test_patterns(self, pattern):
        assert not paths.is_ignored(WINDOWS / r"Run\plate.txt", WINDOWS, [pattern])
        assert paths.is_ignored(WINDOWS / r"other\plate.csv", WINDOWS, [pattern])

    def test_a_changed_file_has_its_time_in_the_name(self):
        modified = 1_772_368_200_250_000_000
        assert paths.versioned("run/plate.txt", modified) == "run/plate (2026-03-01T12-30-00.250000Z).txt"
        assert paths.versioned("plate", modified) == "plate (2026-03-01T12-30-00.250000Z)"

    def test_long_paths_of_windows_get_a_prefix(self):
        deep = "\\".join(["folder"] * 40)
        assert paths.openable(WINDOWS / "plate.txt") == r"C:\Data\Reader\plate.txt"
        assert paths.openable(WINDOWS / deep).startswith("\\\\?\\C:\\Data")
        assert paths.openable(SHARE / deep).startswith("\\\\?\\UNC\\lab-nas\\reader 1\\folder")
        posix = PurePosixPath("/data") / deep
        assert paths.openable(posix) == str(posix)


class TestState:
    SENT = Sent(3, 7, "abc", "plate.txt", "id")

    def test_it_survives_a_restart(self, tmp_path):
        state = State(tmp_path / "deep" / "state")
        state.remember("a", self.SENT)
        state.remember("b", self.SENT)
        state.forget("b")
        again = State(tmp_path / "deep" / "state")
        assert dict(again.items()) == {"a": self.SENT}

    def test_a_line_that_a_crash_cut_off_is_skipped(self, tmp_path):
        path = tmp_path / "state"
        State(path).remember("a", self.SENT)
        with path.open("a") as file:
            file.write('{"key": "b", "se')
        State(path).remember("c", self.SENT)
        assert [key for key, _ in State(path).items()] == ["a", "c"]

    def test_it_stays_small(self, tmp_path):
        path = tmp_path / "state"
        state = State(path)
        for _ in range(200):
            state.remember("a", self.SENT)
        State(path)
        assert path.read_text().count("\n") == 1
        assert State(path).get("a") == self.SENT

    def test_each_folder_and_instrument_has_its_place(self, monkeypatch, tmp_path):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        places = {default_path("http://a", i, Path(d)) for i in ("1", "2") for d in ("/a", "/b")}
        assert len(places) == 4
        assert all(tmp_path in place.parents for place in places)


@pytest.fixture
def instrument(lab):
    return lab.request("POST", "/instruments", json={"name": f"Reader {uuid.uuid4()}"}, creates=True)["name"]


class Watched:
    """A folder and its watcher; each look at the folder is ten seconds after the one before."""

    def __init__(self, lab, instrument, directory):
        self.lab, self.instrument = lab, instrument
        self.root = directory / "folder"
        self.root.mkdir()
        self.now = 0.0
        self.state_path = directory / "state"
        self.restart()

    def restart(self):
        self.watcher = Watcher(self.lab, self.root, self.instrument, State(self.state_path))

    def look(self, times=1):
        for _ in range(times):
            self.now += 10
            self.watcher.step(self.now)

    def names(self):
        return sorted(file["original_path"] for file in self.lab.files(instrument=self.instrument))


@pytest.fixture
def watched(lab, instrument, tmp_path):
    return Watched(lab, instrument, tmp_path)


def test_the_state_and_the_key_in_the_folder_are_not_uploaded(watched, monkeypatch):
    monkeypatch.chdir(watched.root)
    (watched.root / "plate.txt").write_text("a")
    key = watched.root / "key.txt"
    key.write_text(KEY)
    for path in (
        watched.root / "watch.jsonl",
        Path("watch.jsonl"),
        watched.root / "sub" / ".." / "watch.jsonl",
    ):
        (watched.root / "watch.jsonl.new").write_text("cut off by a crash")
        watcher = Watcher(
            watched.lab, watched.root, watched.instrument, State(path), left_out=[Path("key.txt")]
        )
        for _ in range(4):
            watched.now += 10
            watcher.step(watched.now)
        assert watched.names() == ["plate.txt"]
        assert watcher.is_idle


@pytest.mark.parametrize("option", ["--settle", "--poll"])
@pytest.mark.parametrize("value", ["-1", "nan", "inf", "x"])
def test_durations_that_are_none_are_refused(tmp_path, capsys, option, value):
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path), "--instrument", "x", f"{option}={value}"])
    assert ended.value.code == 2
    assert option in capsys.readouterr().err


def test_a_file_is_uploaded_once_its_size_stands_still(watched):
    plate = watched.root / "plate.txt"
    plate.write_text("a")
    watched.look()
    for _ in range(3):
        with plate.open("a") as file:
            file.write("more")
        watched.look()
        assert watched.names() == []
    watched.look()
    assert watched.names() == ["plate.txt"]
    assert watched.watcher.is_idle
    watched.look(3)
    assert watched.names() == ["plate.txt"]


def test_files_of_subfolders_keep_their_path(watched):
    (watched.root / "day 1").mkdir()
    (watched.root / "day 1" / "plate.txt").write_text("a")
    (watched.root / ".cache").mkdir()
    (watched.root / ".cache" / "x.txt").write_text("a")
    (watched.root / "empty.txt").touch()
    (watched.root / "large.bin").write_bytes(os.urandom(5_000_000))
    watched.look(2)
    assert watched.names() == ["day 1/plate.txt", "large.bin"]


def test_a_restart_uploads_nothing_again(watched):
    (watched.root / "plate.txt").write_text("a")
    watched.look(2)
    watched.restart()
    watched.look(3)
    assert watched.names() == ["plate.txt"]


def test_a_crash_before_the_state_was_saved_uploads_nothing_again(watched):
    (watched.root / "small.txt").write_text("a")
    (watched.root / "large.bin").write_bytes(os.urandom(5_000_000))
    watched.look(2)
    watched.state_path.unlink()
    watched.restart()
    watched.look(2)
    assert watched.names() == ["large.bin", "small.txt"]
    assert {key for key, _ in State(watched.state_path).items()} == {"large.bin", "small.txt"}


def test_a_file_that_the_platform_has_from_elsewhere_is_recognized(watched):
    """As after a day, when the platform has forgotten the Idempotency-Key."""
    watched.lab.upload(b"same", name="same.txt", instrument=watched.instrument)
    watched.lab.upload(b"other", name="changed.txt", instrument=watched.instrument)
    (watched.root / "same.txt").write_text("same")
    (watched.root / "changed.txt").write_text("OTHER")
    watched.look(2)
    names = watched.names()
    assert len(names) == 3
    assert names[0].startswith("changed (")
    assert names[1:] == ["changed.txt", "same.txt"]


def test_a_renamed_file_is_not_uploaded_again(watched):
    (watched.root / "plate.txt").write_text("a")
    watched.look(2)
    (watched.root / "plate.txt").rename(watched.root / "plate of monday.txt")
    watched.look(3)
    watched.restart()
    watched.look(3)
    assert watched.names() == ["plate.txt"]


def test_a_copy_is_a_file_like_others(watched):
    (watched.root / "plate.txt").write_text("a")
    watched.look(2)
    (watched.root / "copy.txt").write_text("a")
    watched.look(2)
    assert watched.names() == ["copy.txt", "plate.txt"]


def test_a_changed_file_is_uploaded_beside_the_first(watched):
    plate = watched.root / "plate.txt"
    plate.write_text("a")
    watched.look(2)
    os.utime(plate, (1, 1))
    watched.look(2)
    assert watched.names() == ["plate.txt"]
    plate.write_text("changed")
    watched.look(3)
    assert len(watched.names()) == 2
    assert watched.names()[0].startswith("plate (")


def test_a_locked_file_waits(watched, monkeypatch):
    """Windows refuses to open a file that another program has locked."""
    (watched.root / "plate.txt").write_text("a")
    (watched.root / "other.txt").write_text("b")
    real_open = open

    def locked(path, *arguments, **options):
        if str(path).endswith("plate.txt"):
            raise PermissionError(13, "The process cannot access the file", str(path))
        return real_open(path, *arguments, **options)

    monkeypatch.setattr("builtins.open", locked)
    watched.look(3)
    assert watched.names() == ["other.txt"]
    monkeypatch.undo()
    watched.look()
    assert watched.names() == ["other.txt", "plate.txt"]


def test_a_share_that_goes_away_comes_back(watched):
    (watched.root / "plate.txt").write_text("a")
    watched.look(2)
    away = watched.root.rename(watched.root.with_name("away"))
    watched.look(2)
    assert not watched.watcher.is_idle
    away.rename(watched.root)
    (watched.root / "next.txt").write_text("b")
    watched.look(2)
    assert watched.names() == ["next.txt", "plate.txt"]


def test_an_unreadable_subfolder_holds_up_no_other_file(watched, monkeypatch):
    for folder in ("a", "locked", "z"):
        (watched.root / folder).mkdir()
        (watched.root / folder / "plate.txt").write_text(folder)
    real_scandir = os.scandir

    def scandir(path):
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return real_scandir(path)

    monkeypatch.setattr("os.scandir", scandir)
    watched.look()
    assert not watched.watcher.is_settled
    watched.look(2)
    # Here `--once` ends, with an error.
    assert watched.watcher.is_settled
    assert watched.names() == ["a/plate.txt", "z/plate.txt"]
    assert watched.watcher.failures == 1
    assert not watched.watcher.is_idle
    monkeypatch.undo()
    watched.look(2)
    assert watched.names() == ["a/plate.txt", "locked/plate.txt", "z/plate.txt"]
    assert watched.watcher.is_idle


def test_a_platform_that_is_away_is_waited_for(watched):
    away = labdata.connect("http://127.0.0.1:9", KEY)
    (watched.root / "plate.txt").write_text("a")
    watched.watcher = Watcher(away, watched.root, watched.instrument, State(watched.state_path))
    watched.look(2)
    assert watched.watcher.failures == 1
    watched.restart()
    watched.look(2)
    assert watched.names() == ["plate.txt"]


def test_a_refused_file_is_not_tried_again_until_it_changes(watched):
    plate = watched.root / "program.txt"
    plate.write_bytes(b"\x7fELF" + bytes(1_000))
    watched.look(2)
    assert watched.watcher.is_idle
    assert "400" in State(watched.state_path).get("program.txt").refused
    plate.write_text("no program")
    watched.look(2)
    assert watched.names() == ["program.txt"]


def test_one_bad_name_or_time_stops_no_other_file(watched):
    bad = os.fsencode(watched.root) + b"/plate \xff.txt"
    try:
        with open(bad, "wb") as file:
            file.write(b"a")
    except OSError:
        pytest.skip("this file system has text names only")
    for number, time_of_change in enumerate([-(2**40), 2**40, 10**13]):
        path = watched.root / f"strange time {number}.txt"
        path.write_text("a")
        with contextlib.suppress(OSError, OverflowError):
            os.utime(path, (0, time_of_change))
    (watched.root / "z.txt").write_text("z")
    watched.look(4)
    assert watched.names() == [*(f"strange time {n}.txt" for n in range(3)), "z.txt"]
    assert watched.watcher.failures == 1
    assert watched.watcher.is_settled
    for path in watched.root.glob("strange*"):
        path.write_text("changed")
        with contextlib.suppress(OSError, OverflowError):
            os.utime(path, ns=(0, 2**62))
    watched.look(2)
    assert len(watched.names()) == 7


@pytest.mark.parametrize("modified_ns", [-(10**21), -1, 0, 10**21, 2**200])
def test_a_time_that_no_calendar_has_is_a_name_all_the_same(modified_ns):
    name = paths.versioned("run/plate.txt", modified_ns)
    assert name.startswith("run/plate (")
    assert name.endswith(").txt")


@pytest.mark.parametrize("same", [True, False])
def test_names_that_differ_by_their_unicode_form_are_two_files(watched, same):
    for name in ("M\u00fcller.txt", "Mu\u0308ller.txt"):
        (watched.root / name).write_text("same" if same else name)
    watched.look(3)
    assert watched.names() == ["Mu\u0308ller.txt", "M\u00fcller.txt"]
    watched.restart()
    watched.look(3)
    assert len(watched.names()) == 2


def test_sharp_s_and_ss_are_two_files_on_windows():
    keys = {paths.state_key(WINDOWS / name, WINDOWS) for name in ("Ma\u00df.txt", "MASS.TXT", "mass.txt")}
    assert len(keys) == 2


def test_files_that_cannot_be_reached_are_logged(watched, monkeypatch):
    (watched.root / "plate.txt").write_text("a")
    (watched.root / "locked").mkdir()
    (watched.root / "locked" / "plate.txt").write_text("a")
    real_stat = os.stat

    def stat(path, *arguments, **options):
        if "locked" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return real_stat(path, *arguments, **options)

    monkeypatch.setattr("os.stat", stat)
    watched.look(3)
    assert watched.names() == ["plate.txt"]
    assert watched.watcher.failures == 1
    monkeypatch.undo()
    watched.look(2)
    assert watched.names() == ["locked/plate.txt", "plate.txt"]


def test_a_failing_file_is_tried_again_with_growing_pauses(watched, monkeypatch):
    (watched.root / "plate.txt").write_text("a")
    tried = []

    def refuse(*_arguments, **_options):
        tried.append(watched.now)
        raise labdata.ApiError("no room", status=507, request_id=None)

    monkeypatch.setattr(watched.lab, "upload", refuse)
    watched.look(100)
    pauses = [later - earlier for earlier, later in zip(tried, tried[1:])]
    assert pauses == sorted(pauses)
    assert len(tried) < 10
    assert watched.watcher.failures == 1


def test_an_outage_is_logged_once_for_all_files(watched, caplog):
    caplog.set_level("INFO", "labdata-watch")
    away = labdata.connect("http://127.0.0.1:9", KEY, retry_seconds=0)
    for number in range(20):
        (watched.root / f"{number}.txt").write_text("a")
    watched.watcher = Watcher(away, watched.root, watched.instrument, State(watched.state_path))
    watched.look(10)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "the platform is away" in caplog.text
    assert watched.watcher.failures == 1
    watched.watcher._lab = watched.lab
    watched.look(10)
    assert len(watched.names()) == 20
    assert caplog.text.count("the platform answers again") == 1


class TestOnce:
    def look(self, watched, directory_changes=None, times=60):
        watcher = Watcher(watched.lab, watched.root, watched.instrument, State(watched.state_path), once=True)
        for number in range(times):
            watched.now += 10
            watcher.step(watched.now)
            if watcher.is_settled:
                return watcher
            if directory_changes is not None:
                directory_changes(number)
        pytest.fail("--once does not end")

    def test_a_file_that_never_stands_still_is_given_up(self, watched):
        (watched.root / "plate.txt").write_text("a")
        growing = watched.root / "growing.txt"
        growing.write_text("a")
        watcher = self.look(watched, lambda number: growing.write_text("a" * (number + 2)))
        assert watched.names() == ["plate.txt"]
        assert watcher.failures == 1

    def test_files_that_come_later_are_for_the_next_time(self, watched):
        (watched.root / "plate.txt").write_text("a")
        watcher = self.look(watched, lambda number: (watched.root / f"later {number}.txt").write_text("a"))
        assert watched.names() == ["plate.txt"]
        assert watcher.failures == 0

    def test_a_file_that_vanishes_is_not_waited_for(self, watched, monkeypatch):
        (watched.root / "plate.txt").write_text("a")
        (watched.root / "ghost.txt").write_text("a")
        real_open = open

        def vanished(path, *arguments, **options):
            if str(path).endswith("ghost.txt"):
                raise FileNotFoundError(2, "No such file", str(path))
            return real_open(path, *arguments, **options)

        monkeypatch.setattr("builtins.open", vanished)
        self.look(watched)
        monkeypatch.undo()
        assert watched.names() == ["plate.txt"]

    def test_a_refused_file_is_a_failure(self, watched):
        (watched.root / "program.txt").write_bytes(b"\x7fELF" + bytes(1_000))
        assert self.look(watched).failures == 1


def test_the_write_scope_suffices(lab, server, instrument, watched):
    key = lab.request("POST", "/api-keys", json={"name": "watch", "scopes": ["write"]})["key"]
    lab.upload(b"earlier", name="plate.txt", instrument=instrument)
    (watched.root / "plate.txt").write_text("a")
    (watched.root / "large.bin").write_bytes(os.urandom(5_000_000))
    with labdata.connect(server.url, key) as writer:
        found = writer.instrument_id(instrument)
        for _ in range(2):
            watched.watcher = Watcher(writer, watched.root, found, State(watched.state_path))
            watched.look(2)
            watched.state_path.unlink()
    names = watched.names()
    assert len(names) == 3
    assert names[1].startswith("plate (")


class TestService:
    """With a systemctl that only notes how it is called."""

    @pytest.fixture(autouse=True)
    def calls(self, tmp_path, monkeypatch):
        programs = tmp_path / "bin"
        programs.mkdir()
        calls = tmp_path / "calls"
        systemctl = programs / "systemctl"
        systemctl.write_text(f'#!/bin/sh\necho "$@" >> {calls}\ncase "$*" in *status*) exit 3;; esac\n')
        systemctl.chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        monkeypatch.setenv("LABDATA_BASE_URL", "https://labdata.example.org/api/v1")
        monkeypatch.setenv("LABDATA_API_KEY", KEY)
        return calls

    def install(self, tmp_path, instrument, *options):
        folder = tmp_path / 'exports "of" $HOME 100%'
        folder.mkdir(exist_ok=True)
        assert main(["install", str(folder), "--instrument", instrument, *options]) == 0
        return folder, tmp_path / "config" / "systemd" / "user"

    def test_it_is_installed_shown_and_removed(self, calls, tmp_path):
        folder, units = self.install(tmp_path, "Reader 1", "--pattern", "*.txt")
        unit = units / "labdata-watch-reader-1.service"
        text = unit.read_text()
        assert KEY not in text
        assert "$$HOME 100%%" in text
        assert '"--base-url" "https://labdata.example.org"' in text
        key = tmp_path / "config" / "labdata-watch" / "labdata-watch-reader-1.service.key"
        assert key.read_text().strip() == KEY
        assert key.stat().st_mode & 0o777 == 0o600
        assert main(["status"]) == 3
        assert main(["uninstall", "--name", "Reader 1"]) == 0
        assert not unit.exists()
        assert not key.exists()
        name = unit.name
        assert calls.read_text().splitlines() == [
            "--user daemon-reload",
            f"--user enable --now {name}",
            f"--user status --no-pager {name}",
            f"--user disable --now {name}",
            "--user daemon-reload",
        ]
        assert main(["status"]) == main(["uninstall"]) == 2
        assert folder.is_dir()

    def test_systemd_takes_the_unit(self, tmp_path):
        analyze = shutil.which("systemd-analyze")
        if analyze is None:
            pytest.skip("there is no systemd here")
        _, units = self.install(tmp_path, "Reader % 1")
        unit = next(units.glob("*.service"))
        found = subprocess.run(
            [analyze, "verify", "--man=no", str(unit)], check=False, capture_output=True, text=True
        )
        assert unit.name not in found.stdout + found.stderr

    def test_a_second_installation_replaces_the_first(self, tmp_path):
        self.install(tmp_path, "Reader 1")
        _, units = self.install(tmp_path, "Reader 1", "--poll", "60")
        assert '"--poll" "60.0"' in next(units.glob("*.service")).read_text()

    def test_mistakes_are_one_line(self, tmp_path, monkeypatch, capsys):
        assert main(["install", str(tmp_path / "missing"), "--instrument", "x"]) == 2
        assert main(["install", str(tmp_path), "--instrument", "x\ny"]) == 2
        monkeypatch.setenv("PATH", "")
        assert main(["install", str(tmp_path), "--instrument", "x"]) == 2
        assert "Task Scheduler" in capsys.readouterr().err
        monkeypatch.delenv("LABDATA_API_KEY")
        assert main(["install", str(tmp_path), "--instrument", "x"]) == 2


class TestCommand:
    @pytest.fixture
    def command(self, server, instrument, tmp_path):
        def start(*options):
            arguments = [
                str(tmp_path / "folder"),
                "--instrument",
                instrument,
                "--state",
                str(tmp_path / "state"),
            ]
            environment = {**os.environ, "LABDATA_BASE_URL": server.url, "LABDATA_API_KEY": KEY}
            return subprocess.Popen(
                [sys.executable, "-m", "labdata_client.watch", *arguments, *options],
                env=environment,
                stderr=subprocess.PIPE,
                text=True,
            )

        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "plate.txt").write_text("a")
        return start

    def test_once(self, command, lab, instrument):
        process = command("--once", "--settle", "0.1")
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert "plate.txt is uploaded as plate.txt (1 bytes)" in errors
        assert lab.files(instrument=instrument)[0]["original_path"] == "plate.txt"

    def test_it_watches_until_it_is_told_to_end(self, command, lab, instrument, tmp_path):
        process = command("--settle", "0.1", "--poll", "0.5")
        deadline = time.monotonic() + 120
        while len(lab.files(instrument=instrument)) < 2 and time.monotonic() < deadline:
            (tmp_path / "folder" / "next.txt").write_text("b")
            time.sleep(1)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        names = {file["original_path"] for file in lab.files(instrument=instrument)}
        assert names >= {"plate.txt", "next.txt"}, errors

    def test_once_with_a_file_that_is_refused(self, command, tmp_path):
        (tmp_path / "folder" / "program.txt").write_bytes(b"\x7fELF" + bytes(1_000))
        process = command("--once", "--settle", "0.1")
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 1, errors

    def test_once_with_a_platform_that_is_away(self, command):
        process = command("--once", "--settle", "0.1", "--base-url", "http://127.0.0.1:9")
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 1, errors
        assert errors.count("\n") == 1

    def test_mistakes_are_one_line(self, command):
        process = command("--once", "--instrument", "no such")
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 2
        assert errors.count("\n") == 1
        assert "no instrument 'no such'" in errors
