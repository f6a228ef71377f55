"""Runs a command where the kernel refuses to make namespaces, as it does in containers.

Usage: without_namespaces.py COMMAND [ARGUMENT]...

A seccomp filter refuses `unshare` and `clone` with namespace flags, as Docker's default profile does, so
the platform meets the same errors as there and takes the same paths. No rights are needed.
"""

import ctypes
import os
import platform
import struct
import sys

# Numbers of unshare and clone, and the architecture, by machine.
CALLS = {"x86_64": (272, 56, 0xC000003E), "aarch64": (97, 220, 0xC00000B7)}
CLONE3 = 435
NAMESPACES = 0x7E020000  # CLONE_NEW*, but for that of time, which shares its bit with signals.
EPERM, ENOSYS = 1, 38
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
LOAD, EQUAL, SET, RETURN = 0x20, 0x15, 0x45, 0x06


def filter_program(unshare: int, clone: int, architecture: int) -> bytes:
    """Returns the filter: loads with an offset, jumps with distances, returns with a verdict."""
    steps = [
        (LOAD, 0, 0, 4),
        (EQUAL, 0, 6, architecture),
        (LOAD, 0, 0, 0),
        (EQUAL, 5, 0, unshare),
        # Its flags are behind a pointer; libraries then use clone.
        (EQUAL, 5, 0, CLONE3),
        (EQUAL, 0, 2, clone),
        (LOAD, 0, 0, 16),
        (SET, 1, 0, NAMESPACES),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, ERRNO | EPERM),
        (RETURN, 0, 0, ERRNO | ENOSYS),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def main() -> None:
    """Installs the filter and becomes the command."""
    program = filter_program(*CALLS[platform.machine()])
    stored = ctypes.create_string_buffer(program)
    description = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(stored))
    libc = ctypes.CDLL(None, use_errno=True)
    for what, arguments in (
        ("no_new_privs", (38, 1, 0, 0, 0)),
        ("seccomp", (22, 2, description, 0, 0)),
    ):
        if libc.prctl(*arguments) != 0:
            sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[1], sys.argv[1:])


main()
