"""A sender: puts requests to a node over MQTT and hears its answers. What the command line and the demo are built on.

Keeps the sender's side of the contract: ids made here, expiry set, sent again until answered or accepted. Holds no
words for people.
"""

import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec

from rea_edge.canonical import body_hash
from rea_edge.config.client import Client as Settings
from rea_edge.dial import link_settings, person_client_id
from rea_edge.errors import NodeSilent, RequestRefused
from rea_edge.intake import BODY_KEYS
from rea_edge.mqtt import Incoming, Link, Outgoing, Session
from rea_edge.report import rfc3339
from rea_edge.signature import signature
from rea_edge.topics import APPROVERS, Topics, What
from rea_edge.wire import PAYLOAD_MAX, AskShown, NodeStatus, Reply, TaskEvent, TaskState

SILENT_S = 10.0  # a node (or broker) that says nothing for so long is reported as silent
RESEND_S = 3.0
QUIET_S = 10.0  # without a word of a running task before the node is asked how it stands
POLL_S = 0.2  # how soon a refusal by the broker is noticed
_REFUSED = 128  # MQTT 5 reason codes from here on are failures
LOGIN = "the login is username and password_file of [broker] in client.toml, or REA_EDGE_USERNAME and REA_EDGE_PASSWORD_FILE"
EPOCH_S = 3.0  # that a signed request waits for the node's status, which names its state
INBOX = 1000  # messages that wait to be read; live events beyond it are dropped


class Client:
    """A connection of one person to one node. Use as a context manager. Raises `NodeSilent` after `silent_s`.

    `approver`: also hears what waits for a person, where the broker lets him."""

    def __init__(self, settings: Settings, *, silent_s: float = SILENT_S, approver: bool = False) -> None:
        if settings.node is None:
            raise NodeSilent("no node is named: give --node NAME, set REA_EDGE_NODE, or name it in client.toml")
        self.who = settings.who
        self.node = settings.node
        self.topics = Topics(settings.broker.root, settings.node)
        self._silent_s = silent_s
        self._url = settings.broker.url
        self._key = bytes.fromhex(settings.signing_key.reveal()) if settings.signing_key else None
        self._up = queue.Queue[None]()
        self._inbox = queue.Queue[Incoming](INBOX)
        self._asks: dict[str, bytes] = {}  # by topic: what waits for a person
        self._early: list[Incoming] = []  # of the task that is followed, met while waiting for something else
        self._followed: tuple[str, ...] = ()
        self._status: Incoming | None = None
        self._have_status = threading.Event()
        self._refused = ""
        self._link = Link(
            link_settings(settings.broker, person_client_id(settings.who), session_expiry_s=0),
            subscriptions=tuple(map(self.topics.person, (settings.who, "_all", *([APPROVERS] if approver else [])))),
            accept=self._accept,
            pull=lambda limit: (),
            published=self._published,
            before_connect=lambda: None,
            on_up=self._on_up,
            on_down=lambda reason: None,
        )

    def __enter__(self) -> Self:
        self._link.start()
        try:
            self._up.get(timeout=self._silent_s)
        except queue.Empty:
            error = self._link.state.last_error or "no answer"
            self._link.stop(None, 0.2)
            if error.startswith("refused"):
                raise NodeSilent(f"the broker at {self._url} does not let us in: {error}; {LOGIN}") from None
            raise NodeSilent(
                f"the broker at {self._url} cannot be reached: {error}; is it another? --broker URL"
            ) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._link.stop(None, 1.0)

    # --- requests

    def ask(
        self,
        what: What,
        keys: Mapping[str, object],
        leaf: str = "",
        *,
        wait_s: float = 0.0,
        still: Callable[[], None] | None = None,
    ) -> Reply:
        """Send a request and give its reply, however it turns out; `wait_s` is how long it may work on it.

        The same request is sent again until it is answered: its id makes that harmless. Likewise a query for which the
        node is too busy: a long listing is many. `still` is called once, where there is none at first.
        """
        request_id = str(keys.get("id") or new_id())
        topic = self.topics.send(self.who, what, leaf)
        payload = self._written(topic, {"id": request_id, **keys})
        end_s = time.monotonic() + self._silent_s + wait_s
        wanted = self.topics.reply(self.who, request_id)
        for message in self._until(end_s, lambda: self._send(topic, payload), still):
            if message.topic == wanted and not message.retained:
                reply = msgspec.json.decode(message.payload, type=Reply)
                if what != "query" or reply.error is None or reply.error.code != "busy":
                    return reply
            if message.topic in self._followed:
                self._early.append(message)
        raise NodeSilent(self._silence(wait_s))

    def send(self, what: What, keys: Mapping[str, object], leaf: str = "") -> None:
        """Send a request once and do not wait for what comes of it."""
        topic = self.topics.send(self.who, what, leaf)
        self._send(topic, self._written(topic, keys))

    def data(self, what: What, keys: Mapping[str, object], leaf: str = "", *, wait_s: float = 0.0) -> object:
        """As `ask`, but gives the data and raises `RequestRefused` for an error."""
        reply = self.ask(what, keys, leaf, wait_s=wait_s)
        if reply.error is not None:
            raise RequestRefused(reply.error.code, reply.error.message, retryable=reply.error.retryable)
        return reply.data

    def submit(self, keys: Mapping[str, object]) -> tuple[str, TaskState]:
        """Send a task until the node says that it is on its disk; gives the id and the state that said so.

        Raises `RequestRefused` where the node refuses it.
        """
        task_id = str(keys.get("id") or new_id())
        request = {"id": task_id, **keys}
        wanted = body_hash({key: request[key] for key in BODY_KEYS if key in request})
        topic = self.topics.send(self.who, "task")
        payload = self._written(topic, request)
        end_s = time.monotonic() + self._silent_s
        self._early.clear()
        for message in self._until(end_s, lambda: self._send(topic, payload)):
            if message.topic == self.topics.reply(self.who, task_id):
                self._raise_refusal(msgspec.json.decode(message.payload, type=Reply))
            if message.topic == self.topics.event(self.who, task_id):
                self._early.append(message)
            if message.topic == self.topics.state(self.who, task_id) and message.payload:
                state = msgspec.json.decode(message.payload, type=TaskState)
                if state.accepted and state.body == wanted:
                    self._early.append(message)
                    return task_id, state
        raise NodeSilent(self._silence())

    def follow(self, task_id: str, *, silent_s: float | None = None) -> Iterator[TaskEvent | TaskState]:
        """Events and states of a task as they come, up to and with the state that says how it ended.

        Ends without such a state after `silent_s` without any word of the task (default: never).
        """
        events, states = self.topics.event(self.who, task_id), self.topics.state(self.who, task_id)
        self._followed = (events, states)
        while True:
            try:
                message = self._early.pop(0) if self._early else self._inbox.get(timeout=silent_s)
            except queue.Empty:
                return
            if message.topic == events:
                yield msgspec.json.decode(message.payload, type=TaskEvent)
            elif message.topic == states and message.payload:
                state = msgspec.json.decode(message.payload, type=TaskState)
                yield state
                if state.state == "ended":
                    return

    def watch(
        self,
        task_id: str,
        show: Callable[[TaskEvent, float], None] | None,
        quiet: Callable[[float, list[str]], None] | None = None,
    ) -> TaskState:
        """Wait until a task has ended and give the state that says so; `show` gets each event and its second.

        `quiet` gets the second and the node's faults, once in a while where there is no word of the task.
        """
        began_s = time.monotonic()
        while True:
            for word in self.follow(task_id, silent_s=QUIET_S):
                if isinstance(word, TaskState):
                    if word.state == "ended":
                        return word
                elif show is not None:
                    show(word, time.monotonic() - began_s)
            # Nothing for a while: a state may have been missed, or the node is gone (then this says so).
            known = msgspec.convert(self.data("query", {"task": task_id}, "task"), TaskState)
            if known.state == "ended":
                return known
            if quiet is not None:
                quiet(time.monotonic() - began_s, self.status_asked().faults)

    def status(self) -> NodeStatus:
        """The newest status of the node, as it is retained; raises `NodeSilent` where there is none."""
        end_s = time.monotonic() + self._silent_s
        while self._status is None and (left_s := end_s - time.monotonic()) > 0:
            self._have_status.wait(left_s)
        if self._status is None:
            raise NodeSilent(self._silence())
        return self._known()

    def status_asked(self) -> NodeStatus:
        """The status as the node itself gives it now: what is retained may be old."""
        data = self.data("query", {}, "status")
        return msgspec.convert(data.get("status") if isinstance(data, dict) else None, NodeStatus)

    def asks(self) -> list[AskShown]:
        """What waits for a person, as it is retained, for who hears it."""
        with suppress(RequestRefused):
            self.status_asked()  # a fence: whatever the broker keeps has come before this answer
        return self.asks_kept()

    def asks_kept(self) -> list[AskShown]:
        """As `asks`, by what has come from the broker so far."""
        found: list[AskShown] = []
        for payload in list(self._asks.values()):
            with suppress(msgspec.DecodeError):  # no node's: whoever may write there
                found.append(msgspec.json.decode(payload, type=AskShown))
        return found

    def hear(self, topic: str, seconds: float) -> Incoming | None:
        """The next message on a topic of ours; None if none comes."""
        for message in self._until(time.monotonic() + seconds, lambda: None):
            if message.topic == topic:
                return message
        return None

    # --- inside

    def _until(
        self, end_s: float, again: Callable[[], None], still: Callable[[], None] | None = None
    ) -> Iterator[Incoming]:
        """Messages as they come until `end_s`; `again` is called now and each `RESEND_S`, `still` the second time."""
        due_s, sent = 0.0, 0
        while (now_s := time.monotonic()) < end_s and not self._refused:
            if now_s >= due_s:
                again()
                sent += 1
                if sent == 2 and still is not None:
                    still()
                due_s = now_s + RESEND_S
            try:
                yield self._inbox.get(timeout=max(0.0, min(end_s - now_s, POLL_S)))
            except queue.Empty:
                continue

    def _written(self, topic: str, keys: Mapping[str, object]) -> bytes:
        """The bytes of a request: signed, where there is a key, with the time and the state it is meant for."""
        if self._key is None:
            return msgspec.json.encode(keys)
        self._have_status.wait(EPOCH_S)
        # The broker may have made the status up: then the node refuses the request, and nothing else comes of it.
        known = self._known().epoch if self._status is not None else ""
        epoch = {"epoch": known} if known else {}
        signed = {"id": new_id(), "sent_at": rfc3339(time.time()), **epoch, **keys}
        return msgspec.json.encode({**signed, "sig": signature(self._key, topic, signed)})

    def _send(self, topic: str, payload: bytes) -> None:
        # The node could not tell whose it was: of what is too large it reads no id.
        if len(payload) > PAYLOAD_MAX:
            raise RequestRefused("too_large", f"a request has at most {PAYLOAD_MAX} bytes, this one has {len(payload)}")
        self._link.tell(Outgoing(topic=topic, payload=payload, qos=1, expires_in_s=60))

    def _accept(self, incoming: Incoming) -> bool:
        if incoming.topic == self.topics.all("status") and incoming.payload:
            self._status = incoming
            self._have_status.set()
        if incoming.topic.startswith(f"{self.topics.base}/out/{APPROVERS}/") and incoming.topic.endswith("/ask"):
            self._asks.pop(incoming.topic, None)
            if incoming.payload:
                self._asks[incoming.topic] = incoming.payload
        try:
            self._inbox.put_nowait(incoming)
        except queue.Full:
            # What matters is delivered again; what is retained stands on the broker, however many tasks there were.
            return incoming.qos == 0 or incoming.retained
        return True

    def _published(self, out: Outgoing, reason: int | None) -> None:
        if reason is not None and reason >= _REFUSED:
            self._refused = out.topic

    def _on_up(self, session: Session) -> tuple[Outgoing, ...]:
        self._up.put(None)
        return ()

    def _silence(self, wait_s: float = 0.0) -> str:
        if self._refused:
            return f"the broker refused {self._refused}: its access rules do not let {self.who} send there"
        heard = (
            f"its last status is {self._known().state}" if self._status else "this broker has no status of such a node"
        )
        return f"node {self.node} has not answered for {self._silent_s + wait_s:.0f} s; {heard}"

    def _known(self) -> NodeStatus:
        assert self._status is not None
        return msgspec.json.decode(self._status.payload, type=NodeStatus)

    @staticmethod
    def _raise_refusal(reply: Reply) -> None:
        if reply.error is not None:
            raise RequestRefused(reply.error.code, reply.error.message, retryable=reply.error.retryable)


def new_id() -> str:
    """An id for a request: unique enough that nobody makes the same one twice."""
    return secrets.token_hex(8)
