"""Tools that are devices of somebody else on MQTT: a call of one is an exchange with it. Carries out, decides nothing.

What follows from how an exchange ended (whether it took effect, whether to try again) is the caller's, by the fault.
"""

from math import ceil

from msgspec import UNSET, Raw, Struct, UnsetType, json

from rea_edge import schema
from rea_edge.device.message import Message, message_of
from rea_edge.device.places import Unfit
from rea_edge.device.reply import answer_in, is_away, refusal_in
from rea_edge.mqtt import Outgoing
from rea_edge.mqtt.exchange import Exchange
from rea_edge.mqtt.talk import Ask, Missed
from rea_edge.records import Fault, Ok, Result, Tool
from rea_edge.taint import PUBLISHED
from rea_edge.toolbox import Attempt
from rea_edge.toolhost.faults import FaultName, fault
from rea_edge.toolhost.frames import DEEPEST, too_deep


class Exchanged:
    """The carrier of MQTT tools. `root` is where the nodes' own requests are, which no tool may reach."""

    def __init__(self, exchange: Exchange, root: str) -> None:
        self._exchange = exchange
        self._root = root

    def attempt(self, attempt: Attempt) -> Result:
        tool = attempt.tool
        assert tool.exchange is not None
        try:
            message = message_of(tool, attempt.args, attempt.request_id, self._root)
        except Unfit as exc:
            return fault("bad_args", f"nothing was sent: {exc}")
        end = self._exchange.ask(_asked(message, tool, attempt.seconds), attempt.seconds, attempt.cancel)
        if isinstance(end, Missed):
            return Ending(end, message, attempt).fault()
        if end.payload is None:
            return Ok(data=Raw(PUBLISHED))
        if why := refusal_in(end.payload, tool.exchange.error, message.match):
            return fault("tool_error", f"the device answered: {why}")
        value = _answer(end.payload, message, tool)
        if too_deep(value):
            return fault("bad_result", f"the reply is nested deeper than {DEEPEST} levels")
        return Ok(data=Raw(json.encode(value)))


def _asked(message: Message, tool: Tool, seconds: float) -> Ask:
    assert tool.exchange is not None
    error = tool.exchange.error
    # A device that comes back to a broker that kept it must not do it long after the call has ended. Brokers count
    # whole seconds, and some the one that has begun.
    expires_in_s = ceil(seconds) + 1
    out = (
        Outgoing(topic=message.publish, payload=message.payload, qos=message.qos, expires_in_s=expires_in_s)
        if message.publish
        else None
    )
    said_at = {one.topic: one for one in message.availability}
    return Ask(
        out=out,
        reply=message.reply,
        matches=lambda payload: (
            bool(refusal_in(payload, error, message.match)) or _answer(payload, message, tool) is not UNSET
        ),
        presence=tuple(said_at),
        away=lambda topic, payload: is_away(said_at[topic], payload),
    )


def _answer(payload: bytes, message: Message, tool: Tool) -> object | UnsetType:
    """What the device said; UNSET also for what is not what the tool returns: rubbish is no reading."""
    assert tool.exchange is not None
    value = answer_in(payload, tool.exchange.path, message.match)
    if value is UNSET or tool.returns is None:
        return value
    return value if schema.compile(tool.returns, place=tool.name).shape.admits(value) else UNSET


class Ending(Struct, frozen=True):
    """An exchange that gave no result, in words for who asked for it."""

    end: Missed
    message: Message
    attempt: Attempt

    def fault(self) -> Fault:
        end, seconds = self.end, f"{self.attempt.seconds:.3g} s"
        match end.why:
            case "no_broker":
                words = f"nothing was sent: no connection to the broker within {seconds}: {end.detail}"
                return fault("no_broker", words, "try again later")
            case "alone":
                words = f"nothing was sent: the node would lose its own connection, for {end.detail}"
                return fault("denied_by_broker", words, "tell the operator: its login must be allowed a second session")
            case "denied":
                return fault("denied_by_broker", end.detail, "tell the operator; mostly its access rules forbid it")
            case "offline":
                return fault("offline", f"nothing was sent: the device is not there: {end.detail}", "try again later")
            case "broker_gone":
                hint = "if it does so each time, its access rules may forbid this message"
                return fault("broker_gone", f"the broker ended the connection in the middle: {end.detail}", hint)
            case "too_large":
                return fault("output", end.detail)
            case "cancelled":
                return self._cancelled()
            case "unacknowledged":
                return fault("timeout", f"the broker did not say within {seconds} that it has the message")
            case "no_reply":
                return fault("timeout", self._silence(seconds))

    def _cancelled(self) -> Fault:
        # What nobody can have heard has no unknown outcome; a read has none anyway.
        unheard = bool(self.message.publish) and not self.end.sent and self.attempt.tool.effect != "read"
        name: FaultName = "not_sent" if unheard else "cancelled"
        return fault(name, "it was cancelled before anything was sent" if unheard else "it was cancelled")

    def _silence(self, seconds: str) -> str:
        topic, others = self.message.reply, self.end.others
        if others:
            return f"no answer on {topic} within {seconds}: {others} other message(s) came there"
        rules = f"read {topic}" + (f" and write {self.message.publish}" if self.message.publish else "")
        return (
            f"no answer on {topic} within {seconds}: the device may be off, or the broker's access rules do not let this "
            f"node {rules}"
        )
