"""`rea-edge release`: the operator at the device takes note of a lost state, or lifts a halt. For a daemon that is
stopped; the one of `operate` asks a daemon that runs."""

import argparse
import ctypes
import os
import struct
from pathlib import Path

import msgspec

from rea_edge.config import DEFAULT_FILE, load
from rea_edge.daemon import halts
from rea_edge.errors import ConfigInvalid, StoreUnusable
from rea_edge.screen import Screen
from rea_edge.store import Store
from rea_edge.store.copy import StoreCopy, state_file

BUSY_S = 0.5
_CAPABILITIES_3 = 0x20080522
_DAC_READ_SEARCH = 2


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Exit 1 where the loss is found only now: nobody can have taken note of it. Raises `StoreBusy` while a daemon runs."""
    if not args.config and not os.access(DEFAULT_FILE, os.F_OK):
        how = "--config FILE names the stopped node to release, --node NAME one that runs"
        raise ConfigInvalid(str(DEFAULT_FILE), f"is not there: {how}")
    folder = load(Path(args.config) if args.config else DEFAULT_FILE, os.environ).node.state_dir
    try:
        known = state_file(folder).exists()
    except OSError as error:
        raise StoreUnusable(
            f"{folder} cannot be read: {error.strerror}; release as root or as the service's user"
        ) from error
    if not known:
        raise StoreUnusable(
            f"there is no state file in {folder}: if it is the service's folder, start the service, which begins a new "
            "state, and then release; if not, name that one as [node] state_dir or in STATE_DIRECTORY"
        )
    _become_owner(folder)
    with StoreCopy(folder) as copy:
        epoch = copy.epoch
    store = Store.open(folder, busy_s=BUSY_S)
    try:
        lost, found_now = store.lost, store.epoch != epoch
        halted = halts.standing(store)
        released = not found_now and not (lost is None and halted is None)
        if released:
            with store.transaction() as tx:
                tx.release()
                halts.lift(tx)
    finally:
        store.close()
    was = "; ".join(why for why in (lost, halted and halted.words()) if why)
    if args.json:
        told = {"lost": lost, "halted": halted and halted.words(), "released": released}
        screen.say(msgspec.json.encode(told).decode())
    elif not was:
        screen.say(f"nothing to release: no state was lost in {folder}, and nobody has halted the node")
    elif found_now:
        screen.say(f"found only now: {was}. What is left of it is in {folder}/broken-N; once you know, release again")
    else:
        screen.say(f"released: tools act again. It was: {was}")
    return 1 if found_now else 0


def _become_owner(folder: Path) -> None:
    """As root, files that SQLite makes would be root's, and the daemon could not write them.

    The way to them stays open: systemd keeps the folder of a dynamic user below /var/lib/private, which is root's alone.
    """
    if os.geteuid() == 0 and folder.exists():
        owner = folder.stat()
        os.setegid(owner.st_gid)
        os.seteuid(owner.st_uid)
        _search_anywhere()


def _search_anywhere() -> None:
    # CAP_DAC_READ_SEARCH was lost with the effective user, and is still permitted to us. Where it is not, what follows
    # says that it may not read the folder.
    head = struct.pack("Ii", _CAPABILITIES_3, 0)
    sets = ctypes.create_string_buffer(struct.calcsize("6I"))  # effective, permitted, inheritable; low and high
    libc = ctypes.CDLL(None)
    if libc.capget(head, sets) == 0:
        effective, *others = struct.unpack("6I", sets.raw)
        libc.capset(head, struct.pack("6I", effective | 1 << _DAC_READ_SEARCH, *others))
