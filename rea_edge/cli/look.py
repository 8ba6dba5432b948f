"""Commands that look at this machine: check (configuration, tools, broker, endpoint); show and replay of a copied state."""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from rea_edge import approval
from rea_edge.cancel import Cancel
from rea_edge.cli import acl
from rea_edge.cli.explain import explained, missing_program
from rea_edge.cli.found import Found, tell
from rea_edge.cli.login import Login
from rea_edge.cli.readings import show_readings
from rea_edge.config import DEFAULT_FILE, Access, Settings, load
from rea_edge.config import Endpoint as EndpointSettings
from rea_edge.daemon.misnamed import misnamed
from rea_edge.daemon.view import trace
from rea_edge.dial import person_client_id
from rea_edge.endpoints import client_of
from rea_edge.errors import ConfigInvalid, EndpointFailed, NodeSilent, RequestRefused
from rea_edge.journal import readable
from rea_edge.marks import marks_of
from rea_edge.members import INSTEAD
from rea_edge.peers import accepted_tools, watched_in
from rea_edge.probe import Profile, probe
from rea_edge.records import Rule, Tool
from rea_edge.replay import read_again
from rea_edge.screen import Screen, Steps
from rea_edge.store import RunRow
from rea_edge.store.copy import StoreCopy
from rea_edge.taint import is_outward
from rea_edge.toolbox import hash_of, host_of
from rea_edge.toolhost.confine import lacking
from rea_edge.toolhost.probes import usable

ENDPOINT_S = 180.0  # of six small questions; a small board takes half a minute for each


def check(args: argparse.Namespace, screen: Screen) -> int:
    """Exit 78 where configuration or a tool file is wrong, 1 where only broker or endpoint does not answer."""
    file = Path(args.config) if args.config else DEFAULT_FILE
    if not args.acl and (args.login or args.password_file or args.broker):
        raise ValueError("--as, --password-file and --broker go with --acl")
    try:
        settings = load(file, os.environ)
    except ConfigInvalid as exc:
        tell(screen, [Found("configuration", False, str(exc))], as_json=args.json)
        return 78
    found: list[Found] = [Found("configuration", True, ", ".join(str(part) for part in settings.files))]
    found.append(Found("access", True, _access_words(settings.access, settings.gates)))
    if args.acl:
        found += acl.check(settings, args)
        tell(screen, found, as_json=args.json)
        return 0 if all(one.ok for one in found) else 1
    tools: list[Tool] = []
    looks: list[tuple[str, Callable[[], Iterator[Found]]]] = [
        ("tools", lambda: _tools(settings, tools)),
        ("broker", lambda: _broker(settings)),
        ("endpoints", lambda: _endpoints(settings, hash_of(tools))),
    ]
    for what, look in looks:
        if not args.json:
            screen.say(screen.paint(f"looking at {what} ...", "dim"))
        found += look()
    tell(screen, found, as_json=args.json)
    if any(not one.ok for one in found if one.what.startswith("tool")):
        return 78
    return 0 if all(one.ok for one in found) else 1


def show_state(args: argparse.Namespace, screen: Screen) -> int:
    """The journal of a task, read from a copy of a state folder."""
    with StoreCopy(Path(args.state)) as copy:
        rows = _rows_of(args.task, copy)
        if not rows:
            raise _no_task(args)
        for row in rows:
            run, events = trace(copy, row)
            if args.json:
                found = {"id": row.id, "who": row.who, "goal": run.job.goal, "events": events}
                screen.say(msgspec.json.encode(found).decode())
                continue
            title = run.job.goal or f"call of {run.job.call.name if run.job.call else 'a tool'}"
            screen.say(f"{row.who}/{row.id}: {title}")
            steps = Steps(screen)
            for event in events:
                steps.show(event, at=event.at or "")
    return 0


def replay_state(args: argparse.Namespace, screen: Screen) -> int:
    """The recorded answers of a task, read once more from a copy of a state folder."""
    with StoreCopy(Path(args.state)) as copy:
        rows = _rows_of(args.task, copy)
        if not rows:
            raise _no_task(args)
        events = [event for row in rows for event in readable(copy.events(row.row))]
    return show_readings(list(read_again(events)), args, screen)


def _rows_of(task: str, copy: StoreCopy) -> list[RunRow]:
    who, _, task_id = task.rpartition("/")
    return [row for row in copy.runs(10_000) if row.id == task_id and who in ("", row.who)]


def _no_task(args: argparse.Namespace) -> RequestRefused:
    return RequestRefused("unknown_task", f"there is no task {args.task} in {args.state}")


def _access_words(access: Access, gates: Mapping[str, Rule]) -> str:
    if access.identity == "none":
        return "identity none: whoever may publish may send and call, and nobody operates"
    anyone = "anyone" if access.identity == "broker" else "whoever has a key"
    senders = anyone if access.senders is None else ", ".join(access.senders) or "nobody else"
    signed = f"; what {', '.join(access.keys)} send must be signed" if access.keys else ""
    tried = " (rea-edge check --acl tries whether the broker keeps to it)" if access.identity == "broker" else ""
    operators, approvers = (", ".join(names) or "none" for names in (access.operators, access.approvers))
    if own := [f"[gate.{name}]" for name, rule in gates.items() if rule.approvers]:
        approvers = f"{approvers}{' but' if approvers == 'none' else ', and'} those of {', '.join(own)}"
    people = f"operators {operators}; approvers {approvers}; senders {senders}{signed}"
    return f"identity {access.identity}: {people}{tried}"


def _tools(settings: Settings, into: list[Tool]) -> Iterator[Found]:
    """What loads and what does not; the tools are put into a list, for those who look after us."""
    # A folder of its own: the daemon may be running beside us on the configured one.
    with tempfile.TemporaryDirectory(prefix="rea-edge-check-") as folder:
        try:
            host = host_of(settings, Path(folder))
        except ConfigInvalid as exc:
            yield Found("tools", False, str(exc))
            return
        try:
            loaded = host.start()
        finally:
            host.stop(0.0)
    own, unfit = usable(loaded.tools, settings.broker.root)
    tools = [*own, *accepted_tools(settings)]
    into += tools
    for fault in (*loaded.faults, *unfit):
        yield Found("tool file", False, fault)
    for unmet in lacking(tools, settings.tools.user):
        yield Found("sandbox", False, unmet)
    for one in watched_in(settings, settings.node.id):
        for fault in one.standing(due=False).faults:
            yield Found("peer", False, fault)
    for fault in misnamed(settings, {tool.name: tool for tool in tools}):
        yield Found("tool names", False, fault)
    for tool in tools:
        needed = approval.terms(tool.rule, settings.gates.get(tool.name), settings.access.approvers)
        if why := approval.hindrance(needed, tool.name, settings.access.identity):
            yield Found(f"approval of {tool.name}", False, why)
        told, missing = explained(tool, settings), missing_program(tool)
        heard = f"{told.way}, " if told.way else ""
        reach = ", outward" if is_outward(tool) else ""
        words = missing or f"{tool.effect}{reach}, {tool.timeout_s:g} s, {heard}from {tool.source}"
        yield Found(f"tool {tool.name}", not missing, words, told)


def _broker(settings: Settings) -> Iterator[Found]:
    try:
        # A client id of our own: with the daemon's we would take its connection away.
        with Login(settings.broker, person_client_id("check")) as login:
            yield Found("broker", True, f"{settings.broker.url} answers, MQTT {login.state.protocol}")
    except (ConfigInvalid, NodeSilent) as exc:
        yield Found("broker", False, str(exc))


def _profile_words(one: EndpointSettings, profile: Profile) -> str:
    context = one.context_tokens or profile.context_tokens or "unknown (4096 is assumed)"
    if one.context_tokens and profile.context_tokens and one.context_tokens > profile.context_tokens:
        context = f"{profile.context_tokens}, less than context_tokens = {one.context_tokens}"
    native = "no"
    if profile.native:
        native = f"yes ({'several' if profile.parallel else 'one'} in a message, arguments as {profile.arguments})"
    parts = [
        f"context {context}",
        f"native tool calls {native}",
        f"tool_choice {', '.join(profile.tool_choice) or ('refused' if profile.arguments else 'unknown')}",
        f"grammar {_yes(profile.llama_cpp)}",
        f"JSON Schema {_yes(profile.json_schema)}",
        f"counts tokens {_yes(profile.usage)}",
        f"refuses {', '.join(map(_spared, profile.without)) or 'nothing'}",
    ]
    return "; ".join(["answers" if profile.depth == "full" else "answers, but too slowly to find out all", *parts])


def _spared(name: str) -> str:
    return f"{name} ({INSTEAD[name]} is sent)" if name in INSTEAD else f"{name} (left out)"


def _yes(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"


def _endpoints(settings: Settings, tools: str) -> Iterator[Found]:
    if not settings.endpoints:
        yield Found("endpoint", True, "none: a tool node, direct calls only")
    for one in settings.endpoints:
        place = f"endpoint {one.name}"
        endpoint = client_of(one)
        try:
            profile = probe(endpoint, seconds=ENDPOINT_S, cancel=Cancel(), depth="full")
        except EndpointFailed as exc:
            hint = f"; is the model server running at {one.url}?" if exc.kind == "connect" else ""
            yield Found(place, False, f"{exc.kind}: {exc.message}{hint}")
        else:
            yield Found(place, True, f"{_profile_words(one, profile)}; {_examined(settings, one, tools)}")
        finally:
            endpoint.close()


def _examined(settings: Settings, one: EndpointSettings, tools: str) -> str:
    marks = marks_of(settings.node.state_dir, one.url, one.model, tools)
    if marks is None:
        return "no exam with these tools (rea-edge exam)"
    taken = f"auto takes {marks.best.protocol}" if marks.best else "auto goes by the probe"
    return f"exam of {marks.at}: {marks.words()}; {taken}"
