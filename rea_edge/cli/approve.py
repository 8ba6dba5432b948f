"""Commands of an approver: asks, approve, deny. What is said yes to is shown before it is said."""

import argparse

import msgspec

from rea_edge.client import Client, new_id
from rea_edge.errors import RequestRefused
from rea_edge.records import Args
from rea_edge.screen import Screen, harmless
from rea_edge.wire import AskShown


def asks(client: Client, args: argparse.Namespace, screen: Screen) -> int:
    """What waits for a person; exit 0 also where nothing does."""
    found = client.asks()
    if args.json:
        screen.say(msgspec.json.encode(found).decode())
        return 0
    for one in found:
        _show(screen, one)
    if not found:
        screen.say(f"nothing waits for a person at {client.node}, or the broker does not let {client.who} see it")
    return 0


def approve(client: Client, args: argparse.Namespace, screen: Screen) -> int:
    return _say(client, args, screen, "yes")


def deny(client: Client, args: argparse.Namespace, screen: Screen) -> int:
    return _say(client, args, screen, "no")


def _say(client: Client, args: argparse.Namespace, screen: Screen, answer: str) -> int:
    """Exit 0 where it counts as what was meant."""
    one = _meant(client, args.task)
    if not args.json:
        _show(screen, one)
    keys: Args = {"id": new_id(), "request": one.request, "answer": answer, "ask_hash": one.ask_hash}
    heard = client.data("say", keys)
    counted = heard if isinstance(heard, dict) else {}
    why = f": {counted['why']}" if counted.get("why") else ""
    screen.say(msgspec.json.encode(counted).decode() if args.json else f"it counts as {counted.get('answer')}{why}")
    return 0 if counted.get("answer") == answer else 1


def _meant(client: Client, text: str) -> AskShown:
    """The one that waits under this request id, or for this task. Raises `RequestRefused` where it is none or not one."""
    who, _, task = text.rpartition("/")
    found = [one for one in client.asks() if text == one.request or (task == one.task and who in ("", one.who))]
    if len(found) == 1:
        return found[0]
    if not found:
        raise RequestRefused("unknown_task", f"nothing of {text} waits for a person, as far as {client.who} may see")
    raise RequestRefused("bad_request", f"several wait: name one of {', '.join(one.request for one in found)}")


def _show(screen: Screen, one: AskShown) -> None:
    behalf = f" on behalf of {', '.join(one.via)}" if one.via else ""
    # Arguments are a model's words, and may be meant for whoever reads them.
    screen.say(harmless(f"{one.request}: {one.tool} {msgspec.json.encode(one.args).decode()}"))
    screen.say(harmless(f"  asked for by {one.who}/{one.task}{behalf}" + (f": {one.goal}" if one.goal else "")))
    if one.tainted_by:
        screen.say(f"  the model had read text that may say anything, before it asked for this: {one.tainted_by}")
    if one.hidden:
        screen.say(
            "  not all of its arguments is shown (***): they hold what looks like a secret, or is meant to look so"
        )
    until = f", until {one.until}" if one.until else ""
    screen.say(f"  {one.risk}; it waits {one.expires_s:.0f} s{until}")
    screen.say(f"  {one.ask_hash}")
