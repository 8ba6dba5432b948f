"""Commands of an operator to a node that runs: halt, release, reload."""

import argparse

import msgspec

from rea_edge.client import Client
from rea_edge.records import Args
from rea_edge.screen import Screen

RELOAD_WAIT_S = 150.0  # beyond the node's silence: every tool file is loaded twice, each time for up to 10 s


def halt(client: Client, args: argparse.Namespace, screen: Screen) -> int:
    said = _ordered(client, "halt")
    told = f"{said.get('halted')}; {said.get('ended')} calls were under way and are ended."
    return _tell(args, screen, said, [f"{told} Lift it with: rea-edge release --node {client.node}"])


def release(client: Client, args: argparse.Namespace, screen: Screen) -> int:
    said = _ordered(client, "release")
    was = [str(said[key]) for key in ("lost", "halted") if said.get(key)]
    told = f"released: tools act again. It was: {'; '.join(was)}" if was else "nothing to release"
    return _tell(args, screen, said, [told])


def reload(client: Client, args: argparse.Namespace, screen: Screen) -> int:
    said = _ordered(client, "reload", wait_s=RELOAD_WAIT_S)
    later, faults = _words(said.get("needs_restart")), _words(said.get("faults"))
    told = ["reloaded: new tasks and calls have the new configuration and tools"]
    told += [f"  needs a restart to take effect: {one}" for one in later]
    return _tell(args, screen, said, [*told, *(f"  {one}" for one in faults)])


def _ordered(client: Client, do: str, *, wait_s: float = 0.0) -> Args:
    said = client.data("node", {"do": do}, wait_s=wait_s)
    return said if isinstance(said, dict) else {}


def _tell(args: argparse.Namespace, screen: Screen, said: Args, told: list[str]) -> int:
    for line in [msgspec.json.encode(said).decode()] if args.json else told:
        screen.say(line)
    return 0


def _words(found: object) -> list[str]:
    return [str(one) for one in found] if isinstance(found, list) else []
