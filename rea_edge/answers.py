"""Answers to requests: to whom they go, how, and which are not said. Holds no request's meaning."""

import logging
import time
from collections.abc import Callable

import msgspec

from rea_edge.errors import RequestRefused
from rea_edge.fairness import Fairness
from rea_edge.mqtt import Outgoing
from rea_edge.records import Frozen
from rea_edge.report import Report
from rea_edge.signers import Signers
from rea_edge.topics import Topics
from rea_edge.wire import PUBLISH_MAX, Reply

URGENT = ("ctl", "say", "node")  # their answers do not wait behind the refusals of a flood

log = logging.getLogger("rea_edge.mailbox")


class Sender(Frozen, frozen=True, kw_only=True):
    """Whom a reply goes to, and what he called his request."""

    who: str
    what: str
    id: str | None
    response_topic: str = ""
    correlation: bytes = b""
    sig: str = ""  # of a request whose signature is right


class Answers:
    """`tell` sends from memory: a reply that is lost is asked for again by the sender's own resend."""

    def __init__(
        self, *, topics: Topics, report: Report, fairness: Fairness, signers: Signers, tell: Callable[[Outgoing], None]
    ) -> None:
        self._topics = topics
        self._report = report
        self._fairness = fairness
        self._signers = signers
        self._tell = tell

    def refuse(self, sender: Sender, refused: RequestRefused) -> None:
        """Say why a request is not taken; of a flood most refusals are not said."""
        # Of his controls a sender is told also while he floods the node with something else.
        bucket = f"{sender.who}!" if sender.what in URGENT else sender.who
        if self._signers.signs(sender.who) and not sender.sig:
            bucket = f"{sender.who}?"  # somebody else's, perhaps: his own refusals are told all the same
        if not self._fairness.is_told(bucket, time.monotonic()):
            return
        log.info("event=refused what=%s who=%s id=%s code=%s", sender.what, sender.who, sender.id, refused.code)
        reply = self._report.refused(sender.what, sender.id, refused.code, refused.message, refused.retryable)
        self.answer(sender, reply)

    def answer(self, sender: Sender, reply: Reply) -> None:
        """Say what came of a request; what is too large for one message is said to be."""
        self._signers.answered(sender.sig, reply)
        payload = msgspec.json.encode(reply)
        if len(payload) > PUBLISH_MAX:
            refused = self._report.refused(
                sender.what, sender.id, "too_large", "the answer is too large: ask for less with `limit`", False
            )
            payload = msgspec.json.encode(refused)
        topic = sender.response_topic or self._topics.reply(sender.who, sender.id)
        urgent = sender.what in URGENT
        self._tell(Outgoing(topic=topic, payload=payload, correlation=sender.correlation or None, urgent=urgent))
