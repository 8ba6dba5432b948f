"""`rea-edge peers`: other nodes whose tools are offered here, and `peers accept`, a person's word for what a card says."""

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from rea_edge.cli.login import Login
from rea_edge.client import Client
from rea_edge.config import DEFAULT_FILE, Settings, load
from rea_edge.config.client import Client as ClientSettings
from rea_edge.config.peers import name_here
from rea_edge.dial import person_client_id
from rea_edge.errors import OperatorError, ToolInvalid
from rea_edge.mqtt import Incoming
from rea_edge.peers import Watched, pins_folder, watched_in, write_pin
from rea_edge.pins import Card, Declaration, Pin, changed_keys, read_card, shown, tool_of
from rea_edge.records import Args, Tool
from rea_edge.report import rfc3339
from rea_edge.screen import Screen
from rea_edge.taint import is_outward

SEEN_S = 3.0  # for cards and statuses to come; a broker sends what is retained at once


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Exit 0 where the broker has answered, and for `accept` where all of the peer's tools are pinned now."""
    file = Path(args.config) if args.config else DEFAULT_FILE
    settings = load(file, os.environ)
    if args.action is None:
        return _list(settings, args, screen)
    if args.peer not in settings.peers:
        known = ", ".join(settings.peers) or "none"
        raise ValueError(f"peers accept takes the NAME of a [peer.NAME] in {file}; there are {known}")
    return _accept(settings, args, screen)


def _list(settings: Settings, args: argparse.Namespace, screen: Screen) -> int:
    watched = watched_in(settings, settings.node.id)
    _look_at(watched, settings)
    rows = [_row(one) for one in watched]
    if args.json:
        screen.say(msgspec.json.encode(rows).decode())
        return 0
    for row, one in zip(rows, watched, strict=True):
        since = f"accepted {one.pin.at}" if one.pin is not None else "not accepted"
        screen.say(f"{one.name}: {one.node}, {row['state']}, {since}")
        for tool in one.peer.tools:
            screen.say(f"  {name_here(one.name, tool)}: {_tool_words(one, tool)}")
        for fault in one.standing(due=True).faults:
            screen.say(f"  {screen.paint(fault, 'yellow')}")
    if not rows:
        screen.say("no other nodes: there is no [peer.NAME] in the configuration")
    return 0


def _accept(settings: Settings, args: argparse.Namespace, screen: Screen) -> int:
    chosen = [one for one in watched_in(settings, settings.node.id) if one.name == args.peer]
    _look_at(chosen, settings)
    (one,) = chosen
    declared = _all_declared(one, settings)
    old = one.pin.tools if one.pin is not None else {}
    assert one.card is not None
    pin = Pin(
        node=one.node, root=one.root, at=rfc3339(time.time()), tools_hash=one.card.tools_hash, tools=declared
    )  # fmt: skip
    if not args.json:
        for tool, said in declared.items():
            _show(screen, one, tool, said, old.get(tool))
    file = write_pin(pins_folder(settings), one.name, pin)
    if args.json:
        screen.say(msgspec.json.encode({"peer": one.name, "file": str(file), **structs.asdict(pin)}).decode())
    else:
        screen.say(f"accepted, in {file}; a daemon that runs takes it up within some seconds")
    return 0


def _all_declared(one: Watched, settings: Settings) -> dict[str, Declaration]:
    """What the card says of every tool that is named. Raises OperatorError where one of them cannot be accepted."""
    card = one.card
    if card is None:
        raise OperatorError(one.standing(due=True).faults[0])
    if card.cut:
        card = _whole(one, card, settings)
    wrong = [f"{tool} {card.wrong[tool]}" for tool in one.peer.tools if tool in card.wrong]
    wrong += [f"{tool} is not there" for tool in one.peer.tools if tool not in card.wrong and tool not in card.tools]
    wrong += [why for tool, declared in card.tools.items() if (why := _unusable(one, tool, declared))]
    if wrong:
        raise OperatorError(f"peer {one.name}: {'; '.join(wrong)}; nothing was accepted")
    return {tool: card.tools[tool] for tool in one.peer.tools}


def _whole(one: Watched, card: Card, settings: Settings) -> Card:
    """A card that was too large for a message, with what its node says of the tools when it is asked for them."""
    from rea_edge.cli.ask import pages

    broker = structs.replace(settings.broker, root=one.root)
    with Client(
        ClientSettings(broker=broker, node=one.node, who=settings.node.id, signing_key=one.peer.signing_key)
    ) as client:
        rows = [msgspec.convert(row, Tool) for row in pages(client, "tools", {})]
    entries = [
        {
            "name": tool.name,
            "effect": tool.effect,
            "description": tool.description,
            "parameters": tool.parameters,
            "returns": tool.returns,
            "takes_s": tool.timeout_s * (tool.retries + 1),
            "confirm": tool.rule.confirm if tool.rule is not None else "never",
            "outward": is_outward(tool),
            "cost": tool.rule.cost if tool.rule is not None else 0.0,
        }
        for tool in rows
        if tool.name in one.peer.tools
    ]
    told = msgspec.json.encode({"tools": entries, "tools_hash": card.tools_hash})
    return read_card(told, one.peer.tools)


def _unusable(one: Watched, tool: str, declared: Declaration) -> str | None:
    try:
        tool_of(declared, one.terms(tool))
    except ToolInvalid as exc:
        return str(exc)
    return None


def _show(screen: Screen, one: Watched, tool: str, said: Declaration, old: Declaration | None) -> None:
    """What is about to be accepted, as data: nothing that a card says may move the terminal."""
    screen.say(f"{name_here(one.name, tool)}: {_effect_words(one, tool, said)}")
    screen.say(f"  it says: {msgspec.json.encode(shown(said.description, 300)).decode()}")
    screen.say(f"  parameters: {shown(msgspec.json.encode(said.parameters).decode(), 2000)}")
    screen.say(f"  its answer is waited for {tool_of(said, one.terms(tool)).timeout_s:g} s")
    if said.confirm != "never":
        screen.say(f"  a person there must say yes to it (confirm = {said.confirm}): give it time by timeout_s")
    if old is None:
        screen.say("  new")
    elif changed := changed_keys(old, said):
        screen.say(screen.paint(f"  changed since it was accepted: {', '.join(changed)}", "yellow"))


def _effect_words(one: Watched, tool: str, said: Declaration) -> str:
    pinned = one.peer.effect.get(tool)
    if pinned is None and said.effect != "once":
        return f'taken for once; its card says {said.effect}: to go by that, effect = {{ {tool} = "{said.effect}" }}'
    return f"{said.effect} by its card" + (f", {pinned} here; the stricter counts" if pinned else "")


def _tool_words(one: Watched, tool: str) -> str:
    said = one.pin.tools.get(tool) if one.pin is not None else None
    if said is None:
        return "not accepted"
    wrong = one.differences().get(tool)
    return wrong if wrong is not None else f"as accepted; {_effect_words(one, tool, said)}"


def _row(one: Watched) -> Args:
    standing = one.standing(due=True)
    return {
        "peer": one.name,
        "node": one.node,
        "state": one.state or "unknown",
        "accepted": one.pin.at if one.pin is not None else None,
        "tools": [
            {
                "name": called,
                "tool": tool,
                "accepted": one.pin is not None and tool in one.pin.tools,
                "changed": one.differences().get(tool),
                "effect": standing.tools[called].effect if called in standing.tools else None,
            }
            for called, tool in one.called.items()
        ],
        "faults": list(standing.faults),
    }


def _look_at(watched: Sequence[Watched], settings: Settings) -> None:
    """Let the peers hear what the broker keeps of them. Raises NodeSilent where it does not answer."""

    def told(incoming: Incoming) -> None:
        for one in watched:
            one.hear(incoming.topic, incoming.payload)

    topics = dict.fromkeys(topic for one in watched for topic in one.topics_heard[:2])
    if watched:
        with Login(settings.broker, person_client_id("peers"), *topics, told=told) as login:
            login.waits(SEEN_S, lambda: all(one.looked for one in watched))
