"""`rea-edge check --acl`: whether the broker's rules bind names to logins, tried out from outside with two logins.

Everything is proved by what arrives: a broker grants subscriptions that it delivers nothing for, and over 3.1.1 it
acknowledges what it drops. Nothing that is sent does anything: where it does reach a node it is a request with a key
that no request has, or a topic that nobody reads; nothing is retained, and all of it expires.
"""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from rea_edge.cli.found import Found
from rea_edge.cli.login import Login
from rea_edge.client import new_id
from rea_edge.config import Settings
from rea_edge.config.client import Client, client_settings
from rea_edge.dial import node_client_id, person_client_id
from rea_edge.errors import ConfigInvalid, NodeSilent
from rea_edge.topics import APPROVERS, Topics

FENCE_S = 5.0
SETTLE_S = 1.0  # after the fence: a cluster may keep the order of one topic only
NOBODY = "acl-other"  # a name that nobody has
NAMES = 5  # of others that are tried, besides that
NAMED = 4  # topics that are named in one finding
KINDS = ("task", "ctl", "call/acl_check", "query/acl_check", "say", "node")


class Probe(Struct, frozen=True, kw_only=True):
    """One publication of somebody's."""

    topic: str
    payload: bytes
    by: Login


class Hole(Struct, frozen=True, kw_only=True):
    """What must not arrive `at` anybody. `rule` is what to do where it does. `unseen` are those among the probes that
    nobody here would hear if they were let through: of them only the broker can say, and only over MQTT 5."""

    what: str
    rule: str
    probes: Sequence[Probe]
    at: Sequence[Login]
    unseen: Sequence[Probe] = ()


def check(settings: Settings, args: argparse.Namespace) -> Iterator[Found]:
    """What the broker allows that it should not, or not that it should; each with what to do."""
    try:
        person = client_settings(
            {"broker": args.broker, "node": settings.node.id, "config": args.config}, _environ(args)
        )
        login = person.broker.username
        if login is None or login == settings.broker.username:
            yield Found("acl", False, _NO_LOGIN)
            return
        yield from _Trial(settings, person, login).findings()
    except (ConfigInvalid, NodeSilent) as exc:
        yield Found("acl", False, f"{exc}; {_DOORS}")


_NO_LOGIN = (
    "a second login is needed, of a person and not the node's: --as NAME --password-file FILE (or client.toml), and"
    " --broker URL where people come in by another door than nodes"
)
_DOORS = "node and person must both be let in: --as NAME --password-file FILE, and --broker URL for the door of people"


def _environ(args: argparse.Namespace) -> Mapping[str, str]:
    given = {"REA_EDGE_USERNAME": args.login, "REA_EDGE_PASSWORD_FILE": args.password_file}
    return {**os.environ, **{name: value for name, value in given.items() if value}}


class _Trial:
    """Two logins at one node's topics: `_node` as the daemon's, `_person` as somebody else's."""

    def __init__(self, settings: Settings, person: Client, who: str) -> None:
        self._settings = settings
        self._client = person
        self._who = who
        self._nonce = new_id()
        self._count = 0
        self._root, self._topics = settings.broker.root, Topics(settings.broker.root, settings.node.id)
        self._base, self._out = self._topics.base, f"{self._topics.base}/out"
        self._elsewhere = f"{self._root}/acl-{self._nonce}"  # a node that is not there
        self._outside = f"rea-edge-acl-check/{self._nonce}"
        self._others = _others(settings, who)
        self._own = self._topics.send(who, "query", "acl_check")
        self._reads = f"{who} read {self._root}/+/out/{who}/# and {self._root}/+/out/_all/#"
        wide = (f"{self._base}/in/#", f"{self._out}/#", f"{self._root}/#", f"{self._root}/+/in/#", f"{self._outside}/#")
        # As the node's own id, but not the same: with that we would end the connection of a node that runs.
        own_id = f"{node_client_id(settings.broker, settings.node.id)}-{person_client_id('check')}"
        self._node = Login(settings.broker, own_id, *wide)
        close = (f"{self._out}/{name}/#" for name in (who, *self._others, "_self", APPROVERS))
        shared = f"$share/acl-{self._nonce}/{self._root}/#"
        more = (f"{self._root}/+/out/_all/#", shared)
        self._person = Login(person.broker, person_client_id(who), *wide, *close, *more)

    def findings(self) -> Iterator[Found]:
        with self._node as node:
            with self._person as person:
                requests = [self._probe(person, self._own)]
                answers = [
                    self._probe(node, f"{self._out}/{end}") for end in (f"{self._who}/reply/acl", "_all/acl_check")
                ]
                ways = [
                    self._arrives("own requests", requests, node, f"{self._who} write {self._root}/+/in/{self._who}/#"),
                    self._arrives("own answers", answers, person, self._reads),
                ]
                yield from ways
                if not all(way.ok for way in ways):
                    yield Found("acl", False, "nothing more can be told: what does not arrive at all proves nothing")
                    return
                if self._approves:
                    asks = [self._probe(node, f"{self._out}/{APPROVERS}/acl/check")]
                    yield self._arrives(_ASKS, asks, person, f"{self._who}, an approver, read {self._asks}")
                yield from self._denied([*self._writing(), *self._reading(), *self._of_the_node()])
            yield self._takeover(node)

    # --- what the person may write, what he may read, what the node may

    def _writing(self) -> Iterator[Hole]:
        person, both = self._person, (self._node, self._person)
        named = [self._probe(person, f"{self._base}/in/{name}/{kind}") for name in self._others for kind in KINDS]
        only = f"let {self._who} write {self._root}/+/in/{self._who}/# and no more"
        yield Hole(what="requests under another's name", rule=only, probes=named, at=both)
        ends = [f"{name}/reply/acl" for name in (self._who, *self._others)]
        ends += ["_all/acl_check", f"_self/acl-{self._nonce}", f"{APPROVERS}/acl/check"]
        said = [f"{self._out}/{end}" for end in ends] + [f"{self._elsewhere}/out/_all/acl_check"]
        only = f"let nobody but the node itself write {self._out}/#"
        yield Hole(what="what nodes say", rule=only, probes=[self._probe(person, topic) for topic in said], at=both)

    def _reading(self) -> Iterator[Hole]:
        node, at = self._node, (self._person,)
        ends = [f"{name}/{end}" for name in self._others for end in ("reply/acl", "task/acl/state", "last-acl")]
        told = [self._probe(node, f"{self._out}/{end}") for end in (*ends, f"_self/acl-{self._nonce}")]
        yield Hole(what="answers to others", rule=f"let {self._reads} only", probes=told, at=at)
        if not self._approves:
            asks = [self._probe(node, f"{self._out}/{APPROVERS}/acl/check")]
            yield Hole(what=_ASKS, rule=f"let only approvers read {self._asks}", probes=asks, at=at)
        rule = f"let people read nothing below {self._root}/+/in"
        yield Hole(what="requests", rule=rule, probes=[self._probe(self._person, self._own)], at=at)

    def _of_the_node(self) -> Iterator[Hole]:
        node, login = self._node, self._settings.broker.username or "the node"
        unseen = [
            self._probe(node, f"{self._elsewhere}/in/{self._settings.node.id}/query/acl_check"),
            self._probe(node, f"{self._outside}/x"),
        ]
        ends = (f"{self._elsewhere}/out/_all/acl_check", f"{self._elsewhere}/out/{self._who}/reply/acl", self._own)
        yield Hole(
            what="what the node's login may write",
            rule=f"let {login} write {self._out}/#, and no more",
            probes=[*(self._probe(node, topic) for topic in ends), *unseen],
            at=(node, self._person),
            unseen=unseen,
        )
        asked = [self._probe(self._person, f"{self._elsewhere}/in/{self._who}/query/acl_check")]
        only = f"let {login} read {self._base}/in/# only"
        yield Hole(what="requests to other nodes", rule=only, probes=asked, at=(node,))

    def _takeover(self, node: Login) -> Found:
        """Another connection, once the first has gone: where logins are client ids it would end that one."""
        fence = Probe(topic=self._own, payload=self._probe(node, "").payload, by=node)
        downs = node.downs
        try:
            with Login(self._client.broker, node.client_id) as thief:
                thief.tell(fence.topic, fence.payload)
                taken = not node.hears_unbroken(fence.payload, FENCE_S, downs)
        except NodeSilent:
            taken = node.downs > downs  # it is not let in, or not for long
        if not taken:
            return Found("acl: client id", True, "a person cannot take over a node's session")
        todo = "make people's logins their client ids (Mosquitto: use_username_as_clientid), at a door of their own"
        return Found("acl: client id", False, f"whoever connects with a node's client id takes its session: {todo}")

    # --- inside

    @property
    def _approves(self) -> bool:
        return any(self._who in rule.approvers for rule in self._settings.gates.values())

    @property
    def _asks(self) -> str:
        return f"{self._root}/+/out/{APPROVERS}/#"

    def _probe(self, by: Login, topic: str) -> Probe:
        self._count += 1
        return Probe(topic=topic, payload=b'{"acl_check":"%s-%d"}' % (self._nonce.encode(), self._count), by=by)

    def _arrives(self, what: str, probes: Sequence[Probe], at: Login, rule: str) -> Found:
        for probe in probes:
            probe.by.send(probe.topic, probe.payload)
        lost = [probe.topic for probe in probes if not at.hears(probe.payload, FENCE_S)]
        words = f"does not arrive: {', '.join(lost)}; let {rule}" if lost else "arrive"
        return Found(f"acl: {what}", not lost, words)

    def _denied(self, holes: Sequence[Hole]) -> Iterator[Found]:
        taken = {
            probe.payload: probe.by.send(probe.topic, probe.payload) is None for hole in holes for probe in hole.probes
        }
        self._settle()
        told = self._node.state.protocol == "5"
        for hole in holes:
            through = [
                probe.topic
                for probe in hole.probes
                if any(login.hears(probe.payload) for login in hole.at)
                or (probe in hole.unseen and told and taken[probe.payload])
            ]
            unknown = [probe.topic for probe in hole.unseen if not told and probe.topic not in through]
            yield _found(hole, through, unknown)

    def _settle(self) -> None:
        """Whatever was sent before has arrived by now, if it ever does."""
        answers = f"{self._out}/{self._who}/reply/acl"
        for by, at, topic in ((self._person, self._node, self._own), (self._node, self._person, answers)):
            fence = self._probe(by, topic)
            by.send(fence.topic, fence.payload)
            if not at.hears(fence.payload, FENCE_S):
                raise NodeSilent(f"what is published to {topic} has arrived before, and does no longer")
        self._node.hears(b"", SETTLE_S)


_ASKS = "what waits for approvers"


def _found(hole: Hole, through: Sequence[str], unknown: Sequence[str]) -> Found:
    if through:
        more = f" and {len(through) - NAMED} more" if len(through) > NAMED else ""
        said = f"the broker lets through {', '.join(through[:NAMED])}{more}: {hole.rule}"
        return Found(f"acl: {hole.what}", False, said)
    said = f"; not known over MQTT 3.1.1, which does not say: {', '.join(unknown)}" if unknown else ""
    return Found(f"acl: {hole.what}", True, f"kept back{said}")


def _others(settings: Settings, who: str) -> tuple[str, ...]:
    """Other people's names: of the settings, one that begins like this one, and nobody's."""
    access = settings.access
    named = [*access.operators, *(access.senders or ()), *access.keys]
    named += [name for rule in settings.gates.values() for name in rule.approvers]
    named += [name for names in access.callers.values() for name in names]
    others = list(dict.fromkeys(name for name in named if name != who))[:NAMES]
    return (*others, f"{who}x" if len(who) < 36 else f"{who[:-1]}_", NOBODY)
