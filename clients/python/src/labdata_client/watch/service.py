"""`labdata-watch` as a service of systemd, of the user or of the system."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from .._environment import connection
from ..errors import LabdataError

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = ("install", "uninstall", "status")

EXIT_MISUSED = 2

PREFIX = "labdata-watch-"

UNIT = """[Unit]
Description=Upload of the files of {instrument} to labdata
After=network-online.target
Wants=network-online.target

[Service]
ExecStart={command}
Restart=always
RestartSec=30
NoNewPrivileges=yes
{account}
[Install]
WantedBy={target}
"""


class _Place:
    """Where units and keys of a user, or of the system, are."""

    def __init__(self, *, system: bool) -> None:
        self.system = system
        configuration = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        self.units = Path("/etc/systemd/system") if system else configuration / "systemd" / "user"
        self.keys = Path("/etc/labdata-watch") if system else configuration / "labdata-watch"

    def systemctl(self, *arguments: str) -> int:
        """Run systemctl and return its status."""
        program = shutil.which("systemctl")
        if program is None:
            message = (
                "there is no systemctl here; on Windows the Task Scheduler runs labdata-watch, as the"
                " documentation of the client shows"
            )
            raise LabdataError(message)
        scope = [] if self.system else ["--user"]
        return subprocess.run([program, *scope, *arguments], check=False).returncode

    def installed(self) -> list[str]:
        """Return the names of all units of this program."""
        return sorted(path.name for path in self.units.glob(f"{PREFIX}*.service"))


def main(arguments: Sequence[str], add_options: Callable[[argparse.ArgumentParser], None]) -> int:
    """Install, uninstall or show the service."""
    try:
        options = _parser(add_options).parse_args(arguments)
        place = _Place(system=options.system)
        if options.command == "install":
            return _install(options, place)
        names = [_unit_name(options.name)] if options.name else place.installed()
        if not names:
            print("labdata-watch: no service is installed", file=sys.stderr)
            return EXIT_MISUSED
        if options.command == "uninstall":
            return _uninstall(names, place)
        return place.systemctl("status", "--no-pager", *names)
    except (LabdataError, OSError) as error:
        print(f"labdata-watch: {error}", file=sys.stderr)
        return EXIT_MISUSED


def _parser(add_options: Callable[[argparse.ArgumentParser], None]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="labdata-watch")
    commands = parser.add_subparsers(dest="command", required=True)
    install = commands.add_parser("install", help="install and start the service")
    add_options(install)
    install.add_argument("--run-as", metavar="USER", help="account of a service of the system")
    for command in (
        install,
        commands.add_parser("uninstall", help="stop and remove the service"),
        commands.add_parser("status", help="show the service; exit status of systemctl status"),
    ):
        command.add_argument("--name", help="name of the service (default: the instrument, or all)")
        command.add_argument("--system", action="store_true", help="a service of the system, not of the user")
    return parser


def _unit_name(name: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")
    return f"{PREFIX}{words or 'instrument'}.service"


def _install(options: argparse.Namespace, place: _Place) -> int:
    directory: Path = options.directory.resolve()
    if not directory.is_dir():
        message = f"{directory} is not a folder"
        raise LabdataError(message)
    given = options.api_key_file.read_text() if options.api_key_file is not None else None
    found = connection(options.base_url, given)
    unit = _unit_name(options.name or options.instrument)
    key = place.keys / f"{unit}.key"
    place.keys.mkdir(parents=True, exist_ok=True)
    _write_secret(key, found.api_key)
    if options.run_as:
        shutil.chown(key, options.run_as)
    command = [sys.executable, "-m", "labdata_client.watch", str(directory)]
    command += ["--instrument", options.instrument, "--base-url", found.base_url, "--api-key-file", str(key)]
    command += [word for pattern in options.pattern for word in ("--pattern", pattern)]
    command += ["--settle", str(options.settle), "--poll", str(options.poll)]
    if options.state is not None:
        command += ["--state", str(options.state.resolve())]
    text = UNIT.format(
        instrument=_escaped(options.instrument),
        command=" ".join(_quoted(word) for word in command),
        account=_account(options, place),
        target="multi-user.target" if place.system else "default.target",
    )
    place.units.mkdir(parents=True, exist_ok=True)
    (place.units / unit).write_text(text, encoding="utf-8")
    status = place.systemctl("daemon-reload") or place.systemctl("enable", "--now", unit)
    if status == 0:
        print(f"{unit} runs; its log: journalctl {'' if place.system else '--user '}-u {unit}")
        if not place.system:
            print("It ends when the user signs out, unless: loginctl enable-linger")
    return status


def _account(options: argparse.Namespace, place: _Place) -> str:
    if not place.system:
        return ""
    # Where the state is, because an account of a service may have no home.
    lines = ["StateDirectory=labdata-watch", "Environment=XDG_STATE_HOME=/var/lib"]
    if options.run_as:
        lines.append(f"User={_escaped(options.run_as)}")
    return "\n".join(lines) + "\n"


def _uninstall(names: Sequence[str], place: _Place) -> int:
    status = 0
    for name in names:
        if not (place.units / name).exists():
            message = f"no service {name} is installed; there are: {', '.join(place.installed()) or 'none'}"
            raise LabdataError(message)
        status = place.systemctl("disable", "--now", name) or status
        (place.units / name).unlink()
        (place.keys / f"{name}.key").unlink(missing_ok=True)
    return place.systemctl("daemon-reload") or status


def _write_secret(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text + "\n")


def _quoted(word: str) -> str:
    """Return a word of a command as systemd reads it back."""
    escaped = _escaped(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{escaped}"'


def _escaped(text: str) -> str:
    if not text.isprintable():
        message = f"{text!r} has characters that a service cannot have"
        raise LabdataError(message)
    return text.replace("%", "%%")
