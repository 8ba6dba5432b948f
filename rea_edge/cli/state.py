"""Commands about a state file: check --state (is it whole, what is in it) and export (all that can be read of it).

Both read a copy, and write nothing. Lines of the export hold no configured secret.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Raw

from rea_edge.cli.found import Found, tell
from rea_edge.config import DEFAULT_FILE, load
from rea_edge.errors import ConfigInvalid, StoreUnusable
from rea_edge.records import Args
from rea_edge.redact import redacted
from rea_edge.report import rfc3339
from rea_edge.screen import Screen
from rea_edge.store.rescue import Rescue, in_order, rescue
from rea_edge.store.rows import Column, run_name
from rea_edge.store.survey import Survey, survey

NAMED = 20  # rows that cannot be read; the others are counted


def check(args: argparse.Namespace, screen: Screen) -> int:
    """Exit 74 where a start would set the file aside, or where a row of it cannot be read."""
    found = survey(Path(args.state))
    if args.json:
        screen.say(msgspec.json.encode(found).decode())
    else:
        tell(screen, list(_words(found)))
    return 74 if found.wrong or found.unreadable else 0


def _words(found: Survey) -> Iterator[Found]:
    wal = "no WAL" if found.wal_bytes is None else f"a WAL of {found.wal_bytes} bytes"
    yield Found("file", True, f"{found.file}, {found.bytes} bytes, {wal}")
    if found.wrong is None:
        unclean = "not closed in order" + ("" if found.wal_bytes else ", and its WAL is missing: rows may be lost")
        yield Found("state", True, f"whole; {'closed in order' if found.clean else unclean}")
    else:
        todo = "the next start sets it aside as broken-N and begins a new state"
        yield Found(
            "state", False, f"{found.wrong}; {todo}; rea-edge export --state {found.file} saves what can be read"
        )
    if found.epoch is None and not found.runs:
        return
    named = ", ".join(found.unreadable[:NAMED])
    more = f" and {len(found.unreadable) - NAMED} more" if len(found.unreadable) > NAMED else ""
    yield Found("rows", not found.unreadable, f"{named}{more} cannot be read" if named else "every check sum is right")
    if found.epoch:
        yield Found("epoch", found.sentinel in (None, found.epoch), _epoch_words(found))
    runs = ", ".join(f"{count} {state}" for state, count in found.runs.items()) or "none"
    yield Found("runs", True, f"{runs}; {found.messages} messages wait to be published")
    if found.lost:
        yield Found("lost", True, f"it replaces a state that was lost and not released yet: {found.lost}")
    if found.broken:
        yield Found("set aside", True, f"{', '.join(found.broken)}: rea-edge export --state reads each of them")


def _epoch_words(found: Survey) -> str:
    sentinel = "no sentinel" if found.sentinel is None else f"sentinel {found.sentinel}"
    if found.seen is None:
        return f"{found.epoch}, {sentinel}, no witness"
    return (
        f"{found.epoch}, {sentinel}, witness {found.seen.epoch} (runs up to {found.seen.newest}, here {found.newest})"
    )


def export(args: argparse.Namespace, screen: Screen) -> int:
    """JSON lines: the state, each run with its request and events, what waits to be published. Exit 74 if not all."""
    try:
        found = rescue(Path(args.state))
    except OSError as error:
        raise StoreUnusable(f"{args.state}: {error}") from error
    secrets = _secrets(args)
    for line in _lines(found):
        screen.say(bytes(redacted(Raw(msgspec.json.encode(line)), secrets)).decode())
    lacking = [*found.faults, *found.missing()]
    for words in lacking[:NAMED]:
        print(f"rea-edge: {words}", file=sys.stderr)
    if len(lacking) > NAMED:
        print(f"rea-edge: and {len(lacking) - NAMED} more", file=sys.stderr)
    return 74 if lacking else 0


def _secrets(args: argparse.Namespace) -> tuple[str, ...]:
    try:
        return load(Path(args.config) if args.config else DEFAULT_FILE, os.environ).secrets
    except ConfigInvalid as exc:
        print(f"rea-edge: no secrets are known, so none is hidden (--config FILE names them): {exc}", file=sys.stderr)
        return ()


def _lines(found: Rescue) -> Iterator[Args]:
    epoch = found.meta("epoch")
    yield {"type": "state", "epoch": epoch, "lost": found.meta("lost"), "node": found.meta("node")}
    runs = {run["row"]: (run, carved) for run, carved in found.of("run")}
    requests = {one["run"]: one["body"] for one, _ in found.of("request")}
    events: dict[Column, list[Args]] = {}
    for event, carved in found.of("event"):
        events.setdefault(event["run"], []).append(_event(event, carved))
    for row in sorted({*runs, *requests, *events}, key=lambda row: in_order((row,))):
        run, carved = runs.get(row, (None, True))
        yield {"type": "run", "row": row, "run": _name(epoch, row), **_run(run, requests.get(row)), **_mark(carved)}
        yield from events.get(row, [])
    for message, carved in found.of("outbox"):
        kept = {name: message[name] for name in ("kind", "topic", "qos")}
        flags = {"retain": bool(message["retain"]), **_mark(carved)}
        yield {"type": "message", **kept, **flags, "payload": _shown(message["payload"])}


def _event(event: dict[str, Column], carved: bool) -> Args:
    where: Args = {"type": "event", "row": event["run"], "seq": event["seq"], "at": _at(event["at"])}
    return {**where, **_mark(carved), "event": _shown(event["body"])}


def _mark(carved: bool) -> Args:
    return {"carved": True} if carved else {}


def _run(run: dict[str, Column] | None, request: Column) -> Args:
    if run is None:
        return {"state": None, "request": _shown(request)}
    named = {name: run[name] for name in ("kind", "who", "id", "body", "state", "outcome", "seq")}
    return {**named, "at": _at(run["at"]), "ended_s": run["ended_at"], "request": _shown(request)}


def _name(epoch: str | None, row: Column) -> str | None:
    return run_name(epoch, row) if epoch and isinstance(row, int) else None


def _at(seconds: Column) -> str | None:
    return rfc3339(seconds) if isinstance(seconds, float) else None


def _shown(body: Column) -> object:
    """Bytes as the JSON or the text that they are."""
    if not isinstance(body, bytes):
        return body
    try:
        return Raw(msgspec.json.format(body, indent=-1))
    except msgspec.MsgspecError:
        return body.decode("utf-8", "backslashreplace")
