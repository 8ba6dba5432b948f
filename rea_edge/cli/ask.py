"""Commands that talk to a node: task, status, tools, tasks, call, cancel, settle, show, replay; and those of `approve` and
`operate`."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec

from rea_edge.cli import approve, operate
from rea_edge.cli.readings import show_readings
from rea_edge.client import Client, new_id
from rea_edge.errors import NodeSilent, RequestRefused
from rea_edge.journal import decode_event
from rea_edge.parameters import needed_in, shapes_of
from rea_edge.records import Args
from rea_edge.replay import read_again
from rea_edge.screen import Screen, Steps, status_lines, table, verdict
from rea_edge.wire import NodeStatus, TaskEvent

CALL_WAIT_S = 150.0  # beyond the node's silence: a direct call may wait for its device, or for a person


def task(client: Client, args: argparse.Namespace, screen: Screen) -> int:
    keys: Args = {"goal": args.goal, "mode": "query" if args.query else "act"}
    keys |= {key: value for key, value in (("id", args.id), ("type", args.kind)) if value}
    if args.dry_run:
        keys["dry_run"] = True
    if args.steps is not None:
        keys["limits"] = {"steps": args.steps}
    task_id, _ = client.submit(keys)
    if not args.json:
        screen.say(screen.paint(f"accepted as {client.who}/{task_id} by {client.node}", "dim"))
    steps = Steps(screen)
    state = client.watch(task_id, None if args.json else steps.show, None if args.json else steps.quiet)
    screen.say(msgspec.json.encode(state).decode() if args.json else verdict(screen, state))
    return 0 if state.outcome == "achieved" else 1


def status(client: Client, args: argparse.Namespace, screen: Screen) -> int:
    found, unknown = client.status(), {}
    if found.state != "offline":
        # What the broker keeps may be old: a node that is there says so itself. Without its state it answers nothing.
        with suppress(RequestRefused):
            data = _one(client.data("query", {}, "status"))
            found = msgspec.convert(data.get("status"), NodeStatus)
            unknown = _one(_one(data.get("health")).get("unknown"))
    if args.json:
        screen.say(msgspec.json.encode({**msgspec.to_builtins(found), "unknown": unknown}).decode())
    else:
        for line in status_lines(screen, client.node, found):
            screen.say(line)
        for call in _rows(unknown.get("calls")):
            screen.say(_to_settle(call))
    return 0 if found.state == "online" else 1


def _to_settle(call: Args) -> str:
    task = f"{call['who']}/{call['id']}"
    since = f" of {call['at']}" if call.get("at") else ""
    return f"  unknown: {call['tool']}{since}; look, then: rea-edge settle {task} --n {call['n']} done|not_done"


def tools(client: Client, args: argparse.Namespace, screen: Screen) -> int:
    rows = list(pages(client, "tools", {}))
    if args.json:
        screen.say(msgspec.json.encode(rows).decode())
        return 0
    shown = [{**row, "parameters": _signature(row.get("parameters"))} for row in rows]
    for line in table(shown, ("name", "effect", "parameters", "description")):
        screen.say(line)
    return 0


def tasks(client: Client, args: argparse.Namespace, screen: Screen) -> int:
    rows = list(pages(client, "tasks", {}))
    if args.json:
        screen.say(msgspec.json.encode(rows).decode())
        return 0
    for line in table(rows, ("id", "state", "outcome", "at")):
        screen.say(line)
    return 0


def call(client: Client, args: argparse.Namespace, screen: Screen) -> int:
    keys: Args = {"id": new_id(), "args": _arguments(args.args)} | ({"dry_run": True} if args.dry_run else {})

    def still() -> None:
        why = "its device is busy or slow, or a person must say yes (rea-edge asks)"
        print(f"rea-edge: no answer of {client.node} yet: {why}", file=sys.stderr, flush=True)

    try:
        reply = client.ask("call", keys, args.tool, wait_s=CALL_WAIT_S, still=still)
    except NodeSilent as exc:
        raise NodeSilent(f"{exc}; if it has the call, this tells how it ended: rea-edge show {keys['id']}") from None
    if args.json:
        screen.say(msgspec.json.encode(reply).decode())
    elif reply.error is not None:
        screen.say(f"{screen.paint(reply.error.code, 'red')}: {reply.error.message}")
    else:
        screen.say(msgspec.json.encode(reply.data).decode())
    return 0 if reply.ok else 1


def cancel(client: Client, args: argparse.Namespace, screen: Screen) -> int:
    client.data("ctl", {**_named(args.task), "do": "cancel"})
    screen.say("{}" if args.json else f"cancel of {args.task} is on the node's disk")
    return 0


def settle(client: Client, args: argparse.Namespace, screen: Screen) -> int:
    data = client.data("ctl", {**_named(args.task), "do": "settle", "n": args.n, "outcome": args.outcome})
    told = f"call {args.n} of {args.task} is settled as {args.outcome}"
    screen.say(msgspec.json.encode(data).decode() if args.json else told)
    return 0


def show(client: Client, args: argparse.Namespace, screen: Screen) -> int:
    first = client.data("query", {**_named(args.task), "limit": 1}, "journal")
    events = list(pages(client, "journal", _named(args.task)))
    if args.json:
        screen.say(msgspec.json.encode({**_one(first), "events": events}).decode())
        return 0
    via = _one(first).get("via")
    behalf = f" (on behalf of {', '.join(map(str, via))})" if isinstance(via, list) and via else ""
    screen.say(f"{args.task}{behalf}: {_one(first).get('goal')}")
    steps = Steps(screen)
    for event in events:
        steps.show(msgspec.convert(event, TaskEvent), at=str(event.get("at") or ""))
    return 0


def replay(client: Client, args: argparse.Namespace, screen: Screen) -> int:
    events = [decode_event(msgspec.json.encode(row)) for row in pages(client, "answers", _named(args.task))]
    return show_readings(list(read_again(events)), args, screen)


COMMANDS: dict[str, Callable[[Client, argparse.Namespace, Screen], int]] = {
    "task": task, "status": status, "tools": tools, "tasks": tasks, "call": call, "cancel": cancel, "settle": settle,
    "show": show, "replay": replay, "asks": approve.asks, "approve": approve.approve, "deny": approve.deny,
    "halt": operate.halt, "release": operate.release, "reload": operate.reload,
}  # fmt: skip


def pages(client: Client, what: str, keys: Args) -> Iterator[Args]:
    """All rows of a listing, page by page."""
    after: int | None = 0
    while after is not None:
        reply = client.ask("query", {"id": new_id(), "after": after, "limit": 100, **keys}, what)
        if reply.error is not None:
            client.data("query", {"after": after, **keys}, what)  # raises what the node said
        data = reply.data
        yield from _rows(data.get("events") if isinstance(data, dict) else data)
        after = reply.next


def _named(text: str) -> Args:
    """`TASK` or `WHO/TASK` as the keys of a request; without WHO it is the sender's own."""
    who, _, task_id = text.rpartition("/")
    return {"task": task_id, **({"who": who} if who else {})}


def _rows(data: object) -> list[Args]:
    return [row for row in data if isinstance(row, dict)] if isinstance(data, list) else []


def _one(data: object) -> Args:
    return data if isinstance(data, dict) else {}


def _arguments(pairs: list[str]) -> Args:
    """`key=value` words as arguments. Raises ValueError for a word without `=`."""
    args: Args = {}
    for pair in pairs:
        key, sign, text = pair.partition("=")
        if not sign or not key:
            raise ValueError(f"{pair!r} is not KEY=VALUE")
        try:
            args[key] = msgspec.json.decode(text)
        except msgspec.DecodeError:
            args[key] = text
    return args


def _signature(parameters: object) -> str:
    if not isinstance(parameters, dict):
        return ""
    needed = needed_in(parameters)
    return ", ".join(name if name in needed else f"[{name}]" for name in shapes_of(parameters))
