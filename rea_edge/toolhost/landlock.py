"""Landlock by its three system calls: this process and all it starts see only the paths that are named.

Constants and structures are those of linux/landlock.h; the numbers of the calls are the same on all machines. Holds
no policy. Not mediated by the kernel: descriptors that are open already, stat, chmod, UDP.
"""

import ctypes
import os
import stat
from collections.abc import Sequence

from msgspec import Struct

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION_FLAG = 1
PATH_BENEATH = 1
PR_SET_NO_NEW_PRIVS = 38

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
ALL_OF_1 = (1 << 13) - 1
ADDED = {2: 1 << 13, 3: TRUNCATE, 5: IOCTL_DEV}  # rights by the version that brought them
TCP_SINCE, SCOPES_SINCE = 4, 6
BIND_TCP, CONNECT_TCP = 1 << 0, 1 << 1
SCOPES = 0b11  # abstract sockets and signals of processes outside
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV


class Unconfined(OSError):
    """The kernel does not do it, or refused it: nothing was restricted."""


class Ruleset(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


class View(Struct, frozen=True):
    """What may be seen: paths to read and execute, to read, to read and write; TCP or none. Paths that are not there
    are left out. `shared` is a folder that tools write to: below it no link is followed."""

    run: Sequence[str]
    read: Sequence[str]
    write: Sequence[str]
    network: bool
    shared: str = ""


def version() -> int:
    """The version of the kernel's Landlock; 0 where it has none or may not be asked."""
    found: int = _libc().syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION_FLAG)
    return max(0, found)


def confine(view: View) -> None:
    """Restrict this process for good. Raises `Unconfined`."""
    known = version()
    if known < 1:
        raise Unconfined("this kernel has no Landlock")
    handled = ALL_OF_1 | sum(right for since, right in ADDED.items() if known >= since)
    tcp = 0 if view.network or known < TCP_SINCE else BIND_TCP | CONNECT_TCP
    attributes = Ruleset(handled, tcp, SCOPES if known >= SCOPES_SINCE else 0)
    size = 24 if known >= SCOPES_SINCE else 16 if known >= TCP_SINCE else 8
    ruleset = _done(_libc().syscall(CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), 0))
    try:
        for paths, rights in (
            (view.run, EXECUTE | READ_FILE | READ_DIR),
            (view.read, READ_FILE | READ_DIR),
            (view.write, handled & ~EXECUTE),
        ):
            for path in paths:
                _allow(ruleset, path, rights & handled, view.shared)
        promise_no_new_privileges()
        _done(_libc().syscall(RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def promise_no_new_privileges() -> None:
    """From now on no program started here gains rights by its file (setuid)."""
    _done(_libc().prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def _opened(path: str, shared: str) -> int:
    """A descriptor of a path. Another tool may have put a link into the shared folder: that would be its word, and not
    the owner's, on what may be seen."""
    if not shared or not path.startswith(f"{shared}/"):
        return os.open(path, os.O_PATH | os.O_CLOEXEC)
    found = os.open(shared, os.O_PATH | os.O_CLOEXEC)
    for part in path.removeprefix(f"{shared}/").split("/"):
        above = found
        try:
            found = os.open(part or ".", os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=above)
        finally:
            os.close(above)
        if stat.S_ISLNK(os.fstat(found).st_mode):
            os.close(found)
            raise Unconfined(f"{part!r} in {path!r} is a link, which is not followed")
    return found


def _allow(ruleset: int, path: str, rights: int, shared: str) -> None:
    try:
        descriptor = _opened(path, shared)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= OF_FILES
        rule = Beneath(rights, descriptor)
        _done(_libc().syscall(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(descriptor)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _done(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise Unconfined(number, f"Landlock: {os.strerror(number)}")
    return result
