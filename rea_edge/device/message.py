"""A call of an MQTT tool as the message it is: what is published where, what is awaited, where presence is said. Pure."""

from typing import Literal

import msgspec
from msgspec import UNSET, Struct, structs

from rea_edge.device.places import REQUEST_ID, Unfit, filled_value
from rea_edge.device.toggle import toggle_in
from rea_edge.device.topic import filled_topic, reaches
from rea_edge.parameters import given
from rea_edge.records import Args, Availability, Tool

PAYLOAD_MOST = 65_536  # bytes


class Message(Struct, frozen=True, kw_only=True):
    """Filled and checked. `publish` and `reply` are empty where there is none."""

    publish: str
    payload: bytes
    qos: Literal[0, 1]
    reply: str
    match: dict[str, object]
    availability: tuple[Availability, ...]


def message_of(tool: Tool, args: Args, request_id: str, root: str) -> Message:
    """The message of a call with valid arguments. Raises Unfit for one that must not, or cannot, be sent."""
    declared = tool.exchange
    assert declared is not None
    known = {**given(tool.parameters, args), REQUEST_ID: request_id}

    def topic(template: str) -> str:
        filled = filled_topic(template, tool.parameters, known) if template else ""
        if reaches(filled, root):
            raise Unfit(f"the topic {filled!r} is below {root}, where requests to nodes are")
        return filled

    publish = topic(declared.publish)
    payload = filled_value(declared.payload, known)
    if publish and tool.effect != "once" and (word := toggle_in(publish, payload)):
        raise Unfit(f"{word!r} does something else each time, and {tool.name} is declared as {tool.effect}")
    match = filled_value(declared.match, known)
    assert isinstance(match, dict)
    return Message(
        publish=publish,
        payload=as_bytes(payload),
        qos=qos_of(tool),
        reply=topic(declared.reply),
        match=match,
        availability=tuple(structs.replace(one, topic=topic(one.topic)) for one in declared.availability),
    )


def qos_of(tool: Tool) -> Literal[0, 1]:
    """A broker may deliver a QoS 1 message twice; so what must not be done twice, and cannot be verified, goes once."""
    if tool.exchange is None or (tool.effect == "once" and tool.verify is None):
        return 0
    return tool.exchange.qos


def as_bytes(payload: object) -> bytes:
    """A text as it is, anything else as JSON. Raises Unfit where it is too large, or no Unicode."""
    try:
        body = (
            payload.encode() if isinstance(payload, str) else b"" if payload is UNSET else msgspec.json.encode(payload)
        )
    except UnicodeEncodeError as exc:
        raise Unfit("an argument is no Unicode text (lone surrogate)") from exc
    if len(body) > PAYLOAD_MOST:
        raise Unfit(f"the payload would have {len(body)} bytes; {PAYLOAD_MOST} are the most")
    return body
