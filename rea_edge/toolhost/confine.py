"""How a tool's child is shut in before anything of the tool runs: its user, its privileges, its sandbox.

What every Python program needs to run (its libraries, the tool's own file) can always be read. Raises `Unconfined`.
"""

import os
import sys
from collections.abc import Iterable

from msgspec import Struct

from rea_edge.records import Sandbox, Tool
from rea_edge.toolhost import landlock
from rea_edge.toolhost.landlock import Unconfined, View

STATE = "$REA_STATE_DIR"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32")
COMMON = ("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives", "/proc/self", "/dev/urandom", "/dev/zero")
NAMES = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/run/systemd/resolve")


class Confinement(Struct, frozen=True):
    """`sandbox` is None for a tool that declares none. `user` is empty to stay who we are. `required`: without a
    kernel that does it, a tool with a sandbox does not run."""

    sandbox: Sandbox | None = None
    source: str = ""
    user: str = ""
    required: bool = True


def shut_in(confinement: Confinement) -> None:
    """Do it for this process, in the order in which each step is still allowed."""
    become(confinement.user)
    sandbox = confinement.sandbox
    if sandbox is None:
        return landlock.promise_no_new_privileges()
    if landlock.version() < 1 and not confinement.required:
        return landlock.promise_no_new_privileges()
    python = {sys.prefix, sys.base_prefix, sys.exec_prefix, *(path for path in sys.path if os.path.isabs(path))}
    view = View(
        run=(*SYSTEM, *sorted(python), os.path.dirname(confinement.source)),
        read=(*COMMON, *(NAMES if sandbox.network else ()), *map(expanded, sandbox.read)),
        write=("/dev/null", *map(expanded, sandbox.write)),
        network=sandbox.network,
        shared=os.environ.get("REA_STATE_DIR", "").rstrip("/"),
    )
    return landlock.confine(view)


def become(user: str) -> None:
    """Change to an unprivileged user, for good; only root can."""
    if not user or os.geteuid() != 0:
        return
    import grp
    import pwd

    try:
        entry = pwd.getpwnam(user)
    except KeyError as exc:
        raise Unconfined(f"there is no user {user!r}") from exc
    groups = [group.gr_gid for group in grp.getgrall() if user in group.gr_mem]
    os.setgroups(groups)
    os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
    os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)


def _is_user(name: str) -> bool:
    import pwd

    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def expanded(path: str) -> str:
    return path.replace(STATE, os.environ.get("REA_STATE_DIR", ""), 1) if path.startswith(STATE) else path


class Unmet(Struct, frozen=True):
    """What this machine cannot do of a tool's sandbox; `whole`: nothing of it."""

    why: str
    whole: bool


def unmet(tool: Tool) -> Unmet | None:
    if tool.sandbox is None:
        return None
    known = landlock.version()
    if known < 1:
        return Unmet("this kernel has no Landlock to shut it in", whole=True)
    if known < landlock.TCP_SINCE and not tool.sandbox.network:
        return Unmet(f"this kernel's Landlock (version {known}) keeps it off no network", whole=False)
    return None


def lacking(tools: Iterable[Tool], user: str) -> list[str]:
    """What this machine cannot do of what tools and settings ask for, in words for the operator."""
    shut = [tool for tool in tools if tool.sandbox is not None]
    offline = [tool.name for tool in shut if tool.sandbox is not None and not tool.sandbox.network]
    found: list[str] = []
    if user and os.geteuid() != 0:
        found.append(f"tools.user: only root can run tools as {user}; they run as this process's user")
    elif user and not _is_user(user):
        found.append(f"tools.user: there is no user {user!r}, so no tool runs")
    if shut and (known := landlock.version()) < 1:
        found.append(f"this kernel has no Landlock: {', '.join(tool.name for tool in shut)} cannot be shut in")
    elif offline and known < landlock.TCP_SINCE:
        found.append(f"this kernel's Landlock (version {known}) keeps no tool off the network: {', '.join(offline)}")
    return found
