"""How old a request may be when it arrives (rule 4), what proves its age, and what names it."""

import pytest

from rea_edge.errors import RequestRefused
from rea_edge.intake import AgedAs, as_request, check_age, instant
from rea_edge.wire import CtlRequest, Request, TaskRequest

SENT = "2026-01-31T12:00:00Z"
AT = instant(SENT)


def code(request: Request, what: AgedAs, *, waited_s: float | None, expires: bool, now: float | None) -> str | None:
    try:
        check_age(request, what, waited_s=waited_s, expires=expires, now=now)
    except RequestRefused as refused:
        return refused.code
    return None


@pytest.mark.parametrize(
    ("what", "age_s", "refused"),
    [
        pytest.param("call", 60.0, None, id="a call of a minute"),
        pytest.param("call", 60.1, "expired", id="an older call"),
        pytest.param("task", 60.1, "expired", id="an older act"),
        pytest.param("ctl", 60.1, "expired", id="an older control"),
        pytest.param("query", 3600.0, None, id="a query of an hour"),
        pytest.param("query", 3600.1, "expired", id="an older query"),
    ],
)
def test_a_request_may_be_as_old_as_its_kind_allows(what: AgedAs, age_s: float, refused: str | None) -> None:
    sent = Request(sent_at=SENT)
    assert code(sent, what, waited_s=None, expires=False, now=AT + age_s) == refused
    assert code(Request(), what, waited_s=age_s, expires=False, now=None) == refused


@pytest.mark.parametrize(
    ("request_", "waited_s", "expires", "now", "refused"),
    [
        pytest.param(Request(ttl_ms=5000, sent_at=SENT), None, False, AT + 5.1, "expired", id="its own time counts"),
        pytest.param(Request(ttl_ms=5000), 5.1, False, None, "expired", id="also while it waited"),
        pytest.param(Request(), float("inf"), True, None, None, id="the broker would have dropped it"),
        pytest.param(Request(), float("inf"), False, None, "expired", id="nothing proves its age"),
        pytest.param(Request(), None, False, None, None, id="it came straight"),
        pytest.param(Request(sent_at=SENT), float("inf"), False, None, "expired", id="sent_at, but our clock is not set"),
        pytest.param(Request(sent_at=SENT), float("inf"), False, AT + 1, None, id="sent_at is the proof"),
        pytest.param(Request(sent_at=SENT), None, False, AT - 4.9, None, id="a clock a little ahead"),
        pytest.param(Request(sent_at=SENT), None, False, AT - 5.1, "bad_request", id="from the future"),
        pytest.param(Request(sent_at="2026-01-31T12:00:00"), None, False, AT, "bad_request", id="no offset"),
    ],
)  # fmt: skip
def test_only_a_proof_makes_a_request_young(
    request_: Request, waited_s: float | None, expires: bool, now: float | None, refused: str | None
) -> None:
    assert code(request_, "call", waited_s=waited_s, expires=expires, now=now) == refused


@pytest.mark.parametrize(
    ("kind", "keys", "words"),
    [
        pytest.param(TaskRequest, {"gaol": "Look."}, ", goal, id, type, mode, limits", id="a key"),
        pytest.param(TaskRequest, {"goal": "Look.", "mode": "look"}, "; expected one of act, query", id="a word"),
        pytest.param(
            TaskRequest, {"goal": "Look.", "limits": {"step": 3}}, "; the keys are steps, tokens,", id="a key below"
        ),
        pytest.param(CtlRequest, {"id": "a", "task": "b", "do": "stop"}, "one of cancel, pause, resume", id="an order"),
    ],
)
def test_a_refusal_says_what_would_be_right(kind: type[Request], keys: dict[str, object], words: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        as_request(keys, kind)
    assert words in str(refused.value)
