"""The other nodes whose tools are offered here: watched over a connection of their own, and called over it.

Own, so that no peer's flood stands before what people ask of this node. Its session ends with it: what comes late must
find nobody. `attempt` is for any thread; what is heard comes in the link's.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping

from msgspec import structs

from rea_edge.config import Settings
from rea_edge.dial import link_settings, node_client_id, peers_client_id
from rea_edge.mqtt import Incoming, Link, Outgoing, Session
from rea_edge.peers.answers import id_on_the_way, unsendable, written
from rea_edge.peers.calls import LOOK_S, Call, Calls
from rea_edge.peers.pinned import pins_folder, stamp
from rea_edge.peers.watched import Standing, Watched, watched_in
from rea_edge.records import Fault, Result, Tool
from rea_edge.report import rfc3339
from rea_edge.toolbox import Attempt
from rea_edge.toolhost.faults import FaultName, fault
from rea_edge.wire import PAYLOAD_MAX, CallRequest

LATER = "try again later"
SEEN_S = 5.0  # for card and status to come, once connected; brokers send what is retained at once
PACKET_MAX = 128 * 1024  # bytes: a node publishes 32 KiB at most

log = logging.getLogger("rea_edge.peers")


class Peers:
    """`node` is this node's name, `now` gives trusted wall seconds or None, `changed` hears that other tools may be
    called than before."""

    def __init__(
        self, settings: Settings, node: str, now: Callable[[], float | None], changed: Callable[[], None]
    ) -> None:
        self._node = node
        self._now = now
        self._changed_tools = changed
        self._folder = pins_folder(settings)
        self._changed = threading.Condition()  # guards all below
        self._watched = watched_in(settings, node)
        self._callees = {called: (one, tool) for one in self._watched for called, tool in one.called.items()}
        self._up_since_s: float | None = None
        self._standing = Standing(tools={}, withheld={}, faults=())
        self._link = self._new_link(settings)
        self._calls = Calls(self._changed, self._link.tell, lambda: self._link.state.connected)
        self._stamp = stamp(self._folder, settings.peers)
        self._restate()

    def _new_link(self, settings: Settings) -> Link:
        client_id = peers_client_id(node_client_id(settings.broker, self._node))
        link = link_settings(settings.broker, client_id, session_expiry_s=0)
        return Link(
            structs.replace(link, packet_max=PACKET_MAX),
            subscriptions=tuple(dict.fromkeys(topic for one in self._watched for topic in one.topics_heard)),
            accept=self._hear,
            pull=lambda limit: (),
            published=lambda out, reason: self._calls.refused(out, reason),
            before_connect=lambda: None,
            on_up=self._on_up,
            on_down=self._on_down,
        )

    def start(self) -> None:
        self._link.start()

    def stop(self) -> None:
        self._link.stop(None, 1.0)

    @property
    def idle(self) -> bool:
        """No call is under way."""
        return self._calls.idle

    # --- what there is

    @property
    def tools(self) -> Mapping[str, Tool]:
        return self._standing.tools

    @property
    def withheld(self) -> Mapping[str, str]:
        if self._standing.withheld:
            self.turn()  # whoever has just accepted it need not wait for the next one
        return self._standing.withheld

    @property
    def faults(self) -> list[str]:
        """What an operator should know now."""
        with self._changed:
            self._restate()  # a card that does not come is found out by waiting
        state = self._link.state
        down = f"peers: the connection for them is down: {state.last_error}"
        return [
            *self._standing.faults,
            *(f"broker does not let us read {one}: see [peer.NAME] in the README" for one in state.refused),
            *([down] if state.phase == "resting" and state.last_error else []),
        ]

    def turn(self) -> None:
        """Take in what a person has accepted since."""
        seen = stamp(self._folder, (one.name for one in self._watched))
        if seen == self._stamp:
            return
        self._stamp = seen
        with self._changed:
            for one in self._watched:
                one.read_pin(self._folder)
            self._restate()

    def _restate(self) -> None:
        up_s = self._up_since_s
        due = up_s is not None and time.monotonic() - up_s > SEEN_S
        each = [one.standing(due=due) for one in self._watched]
        before, self._standing = (
            self._standing,
            Standing(
                tools={name: tool for one in each for name, tool in one.tools.items()},
                withheld={name: why for one in each for name, why in one.withheld.items()},
                faults=tuple(words for one in each for words in one.faults),
            ),
        )
        if before.tools != self._standing.tools or before.faults != self._standing.faults:
            for words in sorted(set(self._standing.faults) - set(before.faults)):
                log.warning("event=peer_fault detail=%r", words)
            self._changed_tools()

    # --- a call

    def attempt(self, attempt: Attempt) -> Result:
        """One call, once sent. `unknown` and the other open ends are told by their names: see `loop.OPEN_ENDS`."""
        deadline = time.monotonic() + attempt.seconds
        callee, tool = self._callees[attempt.tool.name]
        missing = self._missing(callee, attempt, deadline) or unsendable(callee.node, self._node, attempt.asker.via)
        if missing is not None:
            return missing
        # A reading is new each time it is asked for; whatever else has this id is done once there, and told again.
        nonce = os.urandom(3).hex() if attempt.tool.effect == "read" else ""
        request_id = id_on_the_way(attempt.request_id, nonce)
        topic = callee.topics.send(self._node, "call", tool)
        try:
            payload = written(self._request(callee, attempt, request_id, deadline), topic, callee.key)
        except ValueError as exc:
            return fault("bad_args", str(exc))
        if len(payload) > PAYLOAD_MAX:
            return fault("bad_args", f"a call has at most {PAYLOAD_MAX} bytes, this one has {len(payload)}")
        out = Outgoing(topic=topic, payload=payload, until_s=deadline)
        with self._calls.waiting(self._call(callee, request_id, out)) as call:
            self._link.tell(out)
            return self._calls.ended(call, deadline, attempt.cancel, once=attempt.tool.effect == "once")

    def recall(self, tool_name: str, request_id: str, seconds: float) -> Result | None:
        """How an earlier call ended, by the peer's word; None where it does not know. Starts nothing."""
        known = self._callees.get(tool_name)
        if known is None:
            return None
        call = self._call(known[0], id_on_the_way(request_id, ""), None)
        with self._calls.waiting(call):
            return self._calls.asked_for(call, time.monotonic() + seconds)

    def _call(self, callee: Watched, request_id: str, out: Outgoing | None) -> Call:
        return Call(callee, self._node, request_id, out)

    def _missing(self, callee: Watched, attempt: Attempt, deadline: float) -> Fault | None:
        """Why nothing can be sent: after a start, or a loss of the connection, what is known of the peer is waited for."""
        until_s = min(deadline, time.monotonic() + SEEN_S)
        with self._changed:
            while not (callee.looked and self._link.state.connected):
                left = until_s - time.monotonic()
                if attempt.cancel.is_set():
                    # A read is asked for anew after a stop; what acts once has not started, whatever its intent says.
                    name: FaultName = "not_sent" if attempt.tool.effect == "once" else "cancelled"
                    return fault(name, "it was cancelled before anything was sent")
                if left <= 0:
                    return self._nobody(callee)
                self._changed.wait(min(left, LOOK_S))
            self._restate()
            if (why := self._standing.withheld.get(attempt.tool.name)) is not None:
                return fault("denied", why)
            if callee.state == "offline":
                return fault("offline", f"{callee.node} is offline; nothing was sent", LATER)
        return None

    def _nobody(self, callee: Watched) -> Fault:
        if not self._link.state.connected:
            return fault("no_broker", f"the broker cannot be reached, nor {callee.node} by it; nothing was sent", LATER)
        return fault("offline", f"there is no word of {callee.node} at the broker; nothing was sent", LATER)

    def _request(self, callee: Watched, attempt: Attempt, request_id: str, deadline: float) -> CallRequest:
        now = self._now() or (time.time() if callee.key is not None else None)  # what is signed must say when it was
        return CallRequest(
            id=request_id,
            args=attempt.args,
            ttl_ms=max(1, int((deadline - time.monotonic()) * 1000)),
            sent_at=rfc3339(now),
            epoch=callee.epoch or None,  # a peer that has lost its state must not take this for a new one
            via=list(attempt.asker.via) or None,
            trace=attempt.asker.trace or None,
            tainted=attempt.asker.tainted,
        )

    # --- the link's

    def _hear(self, incoming: Incoming) -> bool:
        with self._changed:
            if not incoming.retained:
                self._calls.hear(incoming.topic, incoming.payload)
            heard = [one for one in self._watched if one.hear(incoming.topic, incoming.payload)]
            if heard:
                self._restate()
            self._changed.notify_all()
        return True

    def _on_up(self, session: Session) -> tuple[Outgoing, ...]:
        with self._changed:
            self._up_since_s = time.monotonic()
            self._changed.notify_all()
        return ()

    def _on_down(self, reason: str) -> None:
        with self._changed:
            self._up_since_s = None
