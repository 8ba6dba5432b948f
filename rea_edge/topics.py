"""The topic grammar of the wire: every topic is built and parsed here. Pure; knows no payload.

Below `{root}/{node}/`: direction and person come first, so that five access patterns secure a broker.
"""

import re
from typing import Literal, NamedTuple

What = Literal["task", "ctl", "call", "query", "say", "node"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,36}")
_ROOT = re.compile(r"[A-Za-z0-9_-]{1,36}(/[A-Za-z0-9_-]{1,36}){0,3}")
_PLAIN: dict[str, What] = {"task": "task", "ctl": "ctl", "say": "say", "node": "node"}
_WITH_LEAF: dict[str, What] = {"call": "call", "query": "query"}


APPROVERS = "_approvers"  # stands where a person's name does: what all approvers are told


class Inbound(NamedTuple):
    """Who sends what; `leaf` is the tool of a call and the subject of a query, else empty."""

    who: str
    what: What
    leaf: str


def is_name(text: str) -> bool:
    """Whether `text` can name a node, a person or a request (1 to 36 of `A-Z a-z 0-9 _ -`)."""
    return _NAME.fullmatch(text) is not None


def is_root(text: str) -> bool:
    """Whether `text` can be a root: one to four names with slashes between."""
    return _ROOT.fullmatch(text) is not None


class Topics:
    """The topics of one node. `root` and `node` must have passed `is_root` and `is_name`."""

    def __init__(self, root: str, node: str) -> None:
        assert is_root(root) and is_name(node), (root, node)
        self.node = node
        self.base = f"{root}/{node}"

    @property
    def requests(self) -> tuple[str, ...]:
        """The filters for what may wait in a queue. Disjoint with `controls`; together they are all requests."""
        return tuple(f"{self.base}/in/+/{rest}" for rest in ("task", "call/+", "query/+"))

    @property
    def controls(self) -> tuple[str, ...]:
        """The filters for what must not wait behind that."""
        return tuple(f"{self.base}/in/+/{rest}" for rest in ("ctl", "say", "node"))

    def inbound(self, topic: str) -> Inbound | None:
        """Read a topic under `in/`; None if it is none of ours. Names that begin with `_` are reserved."""
        prefix = f"{self.base}/in/"
        if not topic.startswith(prefix):
            return None
        who, *rest = topic.removeprefix(prefix).split("/")
        if not is_name(who) or who.startswith("_"):
            return None
        match rest:
            case [word] if word in _PLAIN:
                return Inbound(who, _PLAIN[word], "")
            case [word, leaf] if word in _WITH_LEAF and 0 < len(leaf) <= 64:
                return Inbound(who, _WITH_LEAF[word], leaf)
            case _:
                return None

    def send(self, who: str, what: What, leaf: str = "") -> str:
        """Where `who` publishes a request of this kind."""
        return f"{self.base}/in/{who}/{what}/{leaf}" if leaf else f"{self.base}/in/{who}/{what}"

    def state(self, who: str, task_id: str) -> str:
        return f"{self.base}/out/{who}/task/{task_id}/state"

    def state_of(self, topic: str) -> tuple[str, str] | None:
        """Whose task a state is about, and its id; None for any other topic."""
        match topic.removeprefix(f"{self.base}/out/").split("/"):
            case [who, "task", task_id, "state"] if is_name(who) and is_name(task_id):
                return who, task_id
            case _:
                return None

    def event(self, who: str, task_id: str) -> str:
        return f"{self.base}/out/{who}/task/{task_id}/event"

    def reply(self, who: str, request_id: str | None) -> str:
        """Where a reply goes; a request without a readable id is answered under `_bad`."""
        return f"{self.base}/out/{who}/reply/{request_id or '_bad'}"

    def last(self, who: str) -> str:
        return f"{self.base}/out/{who}/last"

    def ask(self, request: str) -> str:
        return f"{self.base}/out/{APPROVERS}/{request}/ask"

    def ask_of(self, topic: str) -> str | None:
        """The request that a topic asks approvers about; None for any other topic."""
        match topic.removeprefix(f"{self.base}/out/").split("/"):
            case [who, request, "ask"] if who == APPROVERS and is_name(request):
                return request
            case _:
                return None

    def decided(self, request: str) -> str:
        return f"{self.base}/out/{APPROVERS}/{request}/decided"

    def all(self, what: Literal["status", "card", "health"]) -> str:
        return f"{self.base}/out/_all/{what}"

    def fence(self, session: int) -> str:
        return f"{self.base}/out/_self/{session}"

    @property
    def fences(self) -> str:
        return f"{self.base}/out/_self/+"

    def control_fence(self, session: int) -> str:
        """The fence of the session of the controls, which nothing of the other one's may delay."""
        return f"{self.base}/out/_self/ctl/{session}"

    @property
    def control_fences(self) -> str:
        return f"{self.base}/out/_self/ctl/+"

    @property
    def claims(self) -> str:
        """Where nodes of one id find out about each other."""
        return f"{self.base}/out/_self/who"

    @property
    def own(self) -> str:
        """The filter for all that this node says."""
        return f"{self.base}/out/#"

    def person(self, who: str) -> str:
        """The filter for everything this node says to `who`."""
        return f"{self.base}/out/{who}/#"

    def may_answer_at(self, who: str, topic: str) -> bool:
        """Whether an MQTT 5 response topic lies where this person may be answered, and is one that any broker takes:
        a wildcard or a control character would end the connection, again and again."""
        plain = topic.isascii() and topic.isprintable() and not set(topic) & set("+#")
        return plain and topic.startswith(f"{self.base}/out/{who}/") and len(topic) <= 256
