"""The node's side of the question whether another node acts in its name; the rule is in `rival`. Sends claims only.

All of it runs in the link's thread, except `standing_by` and `words`.
"""

import logging
import socket
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from rea_edge.clock import boot_id
from rea_edge.daemon.rival import Claim, Rival, Seen, Verdict
from rea_edge.mqtt import Incoming, Outgoing, Presence
from rea_edge.store import Store, Transaction
from rea_edge.topics import Topics
from rea_edge.wire import NodeStatus

KNOWN = 8  # earlier processes of this state: a status they left behind is nobody else's
RESTATE_S = 1.0  # between two words against somebody who speaks in our name

T = TypeVar("T", Claim, NodeStatus)

log = logging.getLogger("rea_edge.presence")


class NodePresence:
    """`tell` sends from memory, `restate` says again how this node is, `admitted(bool)` hears whether it acts.

    `outrun(session)` hears, before this node acts, of a connection that another process made with this state.
    """

    def __init__(
        self,
        *,
        topics: Topics,
        store: Store,
        instance: str,
        up_since_s: float,
        tell: Callable[[Outgoing], None],
        restate: Callable[[], None],
        admitted: Callable[[bool], None],
        outrun: Callable[[int], None],
    ) -> None:
        self._topics = topics
        self._epoch = store.epoch
        self._outrun = outrun
        self._instance = instance
        self._up_since_s = up_since_s
        self._tell = tell
        self._restate = restate
        self._admitted = admitted
        self._known = tuple((store.meta_get("instances") or "").split())
        self._rival = Rival(instance, self._known, up_since_s)
        self._told: Verdict | None = None
        self._restated_s = float("-inf")

    def for_link(self, standby_id: str) -> Presence:
        return Presence(
            topics=(self._topics.all("status"), self._topics.claims),
            first_up=self._first_up,
            admitted=self._verdict,
            standby_id=standby_id,
        )

    def begin(self) -> None:
        """Before the first CONNECT of a life."""
        self._rival.begin()

    def remember(self, tx: Transaction) -> None:
        """In the transaction that counts the connection: a status we leave behind must be known as ours."""
        if self._instance not in self._known:
            self._known = (*self._known, self._instance)[-KNOWN:]
            tx.meta_set("instances", " ".join(self._known))

    def hear(self, incoming: Incoming) -> bool:
        """False where the message is about something else."""
        now_s = time.monotonic()
        if incoming.topic == self._topics.claims:
            claim = _read(incoming.payload, Claim)
            if claim is not None and self._rival.hear_claim(claim, now_s):
                self._claim()
        elif incoming.topic == self._topics.all("status"):
            status = _read(incoming.payload, NodeStatus)
            if status is not None:
                self._compare(status)
            if status is not None and self._rival.hear_status(_seen(status), now_s):
                self._contradict(now_s)
        else:
            return False
        return True

    @property
    def standing_by(self) -> bool:
        return self._rival.doing == "stands_by"

    def words(self) -> list[str]:
        return self._rival.words(time.monotonic())

    def _compare(self, status: NodeStatus) -> None:
        # While we act, what another copy of this state counts is its own affair.
        if self._told != "yes" and status.epoch == self._epoch and status.instance != self._instance:
            self._outrun(status.session)

    def _first_up(self) -> None:
        self._rival.subscribed(time.monotonic())
        self._claim()

    def _verdict(self) -> Verdict:
        now_s = time.monotonic()
        verdict = self._rival.verdict(now_s)
        if self._rival.claim_due(now_s):
            self._claim()
        if verdict != self._told and verdict != "wait":
            self._told = verdict
            for word in self._rival.words(now_s):
                log.error("event=rival detail=%r", word)
            self._admitted(verdict == "yes")
        return verdict

    def _claim(self) -> None:
        up_ms = int((time.monotonic() - self._up_since_s) * 1000)
        claim = Claim(
            instance=self._instance, host=socket.gethostname(), boot=boot_id(), up_ms=up_ms, doing=self._rival.doing
        )
        self._tell(Outgoing(topic=self._topics.claims, payload=msgspec.json.encode(claim), urgent=True))

    def _contradict(self, now_s: float) -> None:
        if now_s - self._restated_s >= RESTATE_S:
            self._restated_s = now_s
            self._claim()
            self._restate()


def _seen(status: NodeStatus) -> Seen:
    claim = Claim(instance=status.instance, host=status.host, boot=status.boot, up_ms=status.up_ms)
    return Seen(claim=claim, state=status.state, session=status.session)


def _read(payload: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(payload, type=kind)
    except msgspec.DecodeError:
        return None  # anybody's
