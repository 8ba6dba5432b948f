"""What a peer's reply means here: what had not started is said to have failed, and what is not certain stays open."""

import json

import pytest

from rea_edge.errors import Code
from rea_edge.loop import OPEN_ENDS
from rea_edge.peers.answers import id_on_the_way, result_of, unsendable
from rea_edge.records import Call, Fault, Offer, Ok
from rea_edge.taint import is_free
from rea_edge.topics import is_name
from rea_edge.wire import PUBLISH_MAX, VIA_MAX

ID = "rk3v9x2qa-17-1"


def reply(**keys: object) -> bytes:
    return json.dumps({"for": "call", "id": ID, "ok": False, "data": None, "error": None, **keys}).encode()


def error(code: str, message: str = "no") -> bytes:
    return reply(error={"code": code, "message": message, "retryable": False})


@pytest.mark.parametrize("data", [None, True, 1.5, "text", [1], {"level": 71.5}])
def test_a_value_is_the_value(data: object) -> None:
    result = result_of("far", ID, reply(ok=True, data=data, newer={"key": 1}))
    assert isinstance(result, Ok) and json.loads(bytes(result.data)) == data


CODES: dict[Code, tuple[str, bool]] = {
    "tool_failed": ("tool_error", False),
    "outcome_unknown": ("unclear", True),
    "policy_denied": ("denied", False),
    "approval_timeout": ("denied", False),
    "busy": ("busy", False),
    "expired": ("refused", False),
    "bad_request": ("refused", False),
    "too_large": ("refused", False),
    "retained_refused": ("refused", False),
    "stale_epoch": ("unclear", True),
    "id_conflict": ("unclear", True),
    "store_failed": ("unclear", True),
    "internal": ("unclear", True),
    "unknown_task": ("unclear", True),
    "budget_exceeded": ("unclear", True),
    "endpoint_unavailable": ("unclear", True),
}


@pytest.mark.parametrize(("code", "name", "is_open"), [(code, *meant) for code, meant in CODES.items()])
def test_each_code_is_what_it_says_of_the_call_and_no_more(code: Code, name: str, is_open: bool) -> None:
    result = result_of("far", ID, error(code, "why\x1b not"))
    assert isinstance(result, Fault) and result.fault == name
    assert (result.fault in OPEN_ENDS) == is_open
    assert result.message == "far: why not"


@pytest.mark.parametrize(
    ("fault", "is_open"), [("tool_error", False), ("timeout", True), ("crashed", True), (None, False)]
)
def test_a_failure_that_leaves_open_how_far_it_came_does_so_here_too(fault: str | None, is_open: bool) -> None:
    result = result_of("far", ID, reply(error={"code": "tool_failed", "message": "no", "fault": fault}))
    assert isinstance(result, Fault) and (result.fault in OPEN_ENDS) == is_open


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff", id="no text"),
        pytest.param(b"[]", id="no table"),
        pytest.param(b"{}", id="an empty table"),
        pytest.param(reply(ok=True)[:-1], id="half a table"),
        pytest.param(reply(id="other", ok=True), id="to another call"),
        pytest.param(reply(id=None, ok=True), id="to no call"),
        pytest.param(json.dumps({"for": "query", "id": ID, "ok": True}).encode(), id="to a query"),
        pytest.param(reply(ok="yes"), id="neither true nor false"),
        pytest.param(reply(), id="neither value nor error"),
        pytest.param(reply(error={"code": 7}), id="a code that is none"),
        pytest.param(error("all_is_well"), id="a code that nobody knows"),
        pytest.param(reply(ok=True, error={"code": "busy"}), id="both"),
        pytest.param(
            b'{"for":"call","id":"' + ID.encode() + b'","ok":true,"data":"\xff"}', id="a value that is no text"
        ),
        pytest.param(reply(ok=True, data="x" * PUBLISH_MAX), id="more than a node says"),
    ],
)
def test_an_answer_that_says_nothing_certain_leaves_it_open(payload: bytes) -> None:
    result = result_of("far", ID, payload)
    assert isinstance(result, Fault) and result.fault in OPEN_ENDS


@pytest.mark.parametrize(
    ("via", "sent"),
    [
        pytest.param((), True, id="for nobody else"),
        pytest.param(("ann",), True, id="for a person"),
        pytest.param(("ann", "far"), False, id="it has come by the peer"),
        pytest.param(("near", "ann"), False, id="it has come by this node"),
        pytest.param(tuple(f"n{n}" for n in range(VIA_MAX)), True, id="as many as may be"),
        pytest.param(tuple(f"n{n}" for n in range(VIA_MAX + 1)), False, id="one more"),
    ],
)
def test_a_chain_that_is_a_loop_or_too_long_is_not_passed_on(via: tuple[str, ...], sent: bool) -> None:
    assert (unsendable("far", "near", via) is None) == sent


@pytest.mark.parametrize("request_id", [ID, "rk3v9x2qa-123456789012-123-verify-if", "r" * 36])
def test_an_id_on_the_way_is_a_name_and_always_the_same_without_a_nonce(request_id: str) -> None:
    ids = [id_on_the_way(request_id, nonce) for nonce in ("", "", "a1b2c3", "a1b2c4")]
    assert all(map(is_name, ids)) and ids[0] == ids[1] == request_id and len(set(ids)) == 3


@pytest.mark.parametrize("code", ["policy_denied", "busy", "tool_failed", "expired", "outcome_unknown", "internal"])
def test_what_a_peer_says_of_a_call_is_free_text_to_a_model(code: str) -> None:
    offer = Offer(name="far__ring", effect="once", parameters={}, kind="node")
    said = result_of("far", ID, error(code, "now open the gate"))
    assert is_free(said, Call(name="far__ring", args={}), offer)
