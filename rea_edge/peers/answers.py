"""What a peer is asked and what its answer means here. Pure: what is not certain stays uncertain."""

from hashlib import sha256

import msgspec
from msgspec import Raw, Struct

from rea_edge.errors import Code
from rea_edge.pins import shown
from rea_edge.records import Fault, Ok, Result
from rea_edge.toolhost.faults import FaultName, fault
from rea_edge.topics import is_name
from rea_edge.wire import PUBLISH_MAX, VIA_MAX, Request

# Of each code: what it is here. The names of `loop.OPEN_ENDS` may have taken effect, the others have not.
FAULTS: dict[Code, FaultName] = {
    "tool_failed": "tool_error",
    "policy_denied": "denied",
    "approval_timeout": "denied",
    "busy": "busy",
    "expired": "refused",
    "bad_request": "refused",
    "too_large": "refused",
    "retained_refused": "refused",
}
MESSAGE_MAX = 400


class _Error(Struct, frozen=True, kw_only=True):
    code: str
    message: str = ""
    fault: str | None = None


class _Reply(Struct, frozen=True, kw_only=True):
    """The part of a reply that counts; the rest of it may be anything."""

    for_: str = msgspec.field(name="for")
    id: str | None = None
    ok: bool = False
    data: Raw = Raw(b"null")
    error: _Error | None = None


class _Kept(Struct, frozen=True, kw_only=True):
    """What a peer knows of a call."""

    id: str
    reply: Raw = Raw(b"null")


def result_of(node: str, request_id: str, payload: bytes) -> Result:
    """The result of a call by the reply to it. What cannot be read is `unclear`: something has been done with it."""
    if len(payload) > PUBLISH_MAX:
        return fault("bad_result", f"the answer of {node} has {len(payload)} bytes, at most {PUBLISH_MAX} are read")
    try:
        reply = msgspec.json.decode(payload, type=_Reply)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return fault("unclear", f"the answer of {node} cannot be read")
    if (reply.for_, reply.id) != ("call", request_id) or (reply.ok and reply.error is not None):
        return fault("unclear", f"the answer of {node} is not one to this call")
    if reply.ok:
        return _value(node, reply.data)
    if reply.error is None:
        return fault("unclear", f"the answer of {node} says neither yes nor no")
    # A code that is not known here, and one that a restart of the peer may have brought about, says nothing of the call.
    name = FAULTS.get(reply.error.code, "unclear")  # type: ignore[call-overload]  # any text may come
    if name == "tool_error" and _leaves_open(reply.error.fault):
        name = "unclear"  # for the peer it may run again, so that it calls this a failure; here it may not
    return fault(name, f"{node}: {shown(reply.error.message, MESSAGE_MAX) or shown(reply.error.code, 40)}")


def recalled(node: str, query_id: str, request_id: str, payload: bytes) -> tuple[Result | None, bool]:
    """The result of a call by the answer to a query for it; None while there is none. True: the peer knows of no such
    call, which says nothing of whether it once did."""
    try:
        answer = msgspec.json.decode(payload, type=_Reply)
        if (answer.for_, answer.id) != ("query", query_id):
            return None, False
        if answer.error is not None or not answer.ok:
            return None, answer.error is not None and answer.error.code == "unknown_task"
        kept = msgspec.json.decode(answer.data, type=_Kept)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None, False
    if kept.id != request_id or bytes(kept.reply) == b"null":
        return None, False
    return result_of(node, request_id, bytes(kept.reply)), False


def written(request: Request, topic: str, key: bytes | None) -> bytes:
    """The bytes of a request on this topic, signed where there is a key. Raises ValueError for what cannot be signed."""
    payload = msgspec.json.encode(request)
    if key is None:
        return payload
    from rea_edge.signature import signature

    keys = msgspec.json.decode(payload, type=dict[str, object])
    return msgspec.json.encode({**keys, "sig": signature(key, topic, keys)})


def unsendable(node: str, me: str, via: tuple[str, ...]) -> Fault | None:
    """Why a call on behalf of these must not be sent on, before anything is."""
    if node in via or me in via:
        chain = " < ".join((me, *via))
        return fault("denied", f"this call has come by {node if node in via else me} already ({chain}): a loop")
    if len(via) > VIA_MAX:
        return fault("denied", f"this call has come by {len(via)} others already, at most {VIA_MAX} are passed on")
    return None


def id_on_the_way(request_id: str, nonce: str) -> str:
    """The id that a peer knows a call by: our request id, and a nonce where each asking is to be a new one."""
    wanted = f"{request_id}-{nonce}" if nonce else request_id
    return wanted if is_name(wanted) else f"x{sha256(wanted.encode()).hexdigest()[:32]}"


def _leaves_open(name: str | None) -> bool:
    from rea_edge.loop import OPEN_ENDS  # whoever has called a tool has loaded it

    return name in OPEN_ENDS


def _value(node: str, data: Raw) -> Result:
    try:
        msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return fault("unclear", f"the value in the answer of {node} cannot be read")
    return Ok(data=Raw(bytes(data)))
