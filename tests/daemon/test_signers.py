"""How fresh a signed request must be, with and without a trusted clock, over names that are forgotten and restarts."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from rea_edge.config import Access, Secret
from rea_edge.errors import RequestRefused
from rea_edge.intake import AgedAs, Letter, instant
from rea_edge.report import rfc3339
from rea_edge.signature import signature
from rea_edge.signers import CONTROLS, MOST_S, Signers
from rea_edge.store import Store
from rea_edge.topics import Topics
from rea_edge.wire import CtlRequest, NodeRequest, Reply, Request

KEYS = {"ann": "a1" * 32, "bob": "b2" * 32}
NODE = Topics("rea/v1", "n")
SENT = "2026-01-31T12:00:00Z"
AT = instant(SENT)


class Desk:
    """Signers over a real store. `lived_s` is the test's to move; `again` is what a restart leaves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lived_s = 1000.0
        self.keys = dict(KEYS)
        self.identity = "keys"
        self.store = Store.open(folder)
        self.signers = self._signers()

    def _signers(self) -> Signers:
        texts = {name: Secret(text) for name, text in self.keys.items()}
        access = Access(identity="keys" if self.identity == "keys" else "broker", key_texts=texts)
        return Signers(lambda: access, self.store, lambda: self.lived_s)

    def again(self) -> None:
        self.store.close()
        self.store = Store.open(self.folder)
        self.signers = self._signers()

    def note(self, sent: float, who: str = "ann") -> None:
        with self.store.transaction() as tx:
            self.signers.note(tx, who, rfc3339(sent))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path / "state")
    yield desk
    desk.store.close()


def refused(ask: Callable[[], object]) -> str | None:
    try:
        ask()
    except RequestRefused as exc:
        return exc.code
    return None


def aged(desk: Desk, request: Request, what: AgedAs = "call", now: float | None = None, who: str = "ann") -> str | None:
    return refused(lambda: desk.signers.check_age(who, request, what, now))


def sent(at: float, **keys: object) -> Request:
    return msgspec.convert({"sent_at": rfc3339(at), **keys}, Request)


@pytest.mark.parametrize(
    ("request_", "what", "now", "code"),
    [
        pytest.param(Request(sent_at=SENT), "call", AT + 60.0, None, id="a minute old"),
        pytest.param(Request(sent_at=SENT), "call", AT + 60.1, "expired", id="older"),
        pytest.param(Request(sent_at=SENT), "query", AT + 3600.0, None, id="a query of an hour"),
        pytest.param(Request(sent_at=SENT), "query", AT + 3600.1, "expired", id="an older one"),
        pytest.param(Request(sent_at=SENT, ttl_ms=10_000_000), "call", AT + 9_999.0, None, id="as old as it says"),
        pytest.param(Request(sent_at=SENT, ttl_ms=10**12), "call", AT + MOST_S, None, id="half a day"),
        pytest.param(Request(sent_at=SENT, ttl_ms=10**12), "call", AT + MOST_S + 1, "expired", id="never older"),
        pytest.param(Request(sent_at=SENT), "call", AT - 6.0, "bad_request", id="from the future"),
        pytest.param(Request(), "call", AT, "bad_request", id="without a time"),
        pytest.param(Request(), "query", None, "bad_request", id="a query without a time, and no clock"),
        pytest.param(Request(sent_at=SENT), "call", None, "expired", id="no clock, and no epoch"),
        pytest.param(Request(sent_at=SENT, epoch="e"), "call", None, None, id="no clock, but made for this state"),
        pytest.param(Request(sent_at=SENT), "query", None, None, id="no clock, but it only reads"),
    ],
)
def test_a_signed_request_is_as_old_as_its_own_word_says(
    desk: Desk, request_: Request, what: AgedAs, now: float | None, code: str | None
) -> None:
    assert aged(desk, request_, what, now) == code


@pytest.mark.parametrize("restarted", [False, True], ids=["", "restarted"])
def test_without_a_clock_it_is_as_old_as_the_persons_newest_says(desk: Desk, *, restarted: bool) -> None:
    desk.note(AT)
    if restarted:
        desk.again()
    assert aged(desk, sent(AT - 60, epoch="e")) is None
    assert aged(desk, sent(AT - 61, epoch="e")) == "expired"
    assert aged(desk, sent(AT - 61, epoch="e"), who="bob") is None, "nobody's clock ages another's requests"
    desk.lived_s += 30
    assert aged(desk, sent(AT - 29, epoch="e")) is None
    assert aged(desk, sent(AT - 31, epoch="e")) == "expired"


def test_an_older_request_that_comes_later_makes_no_other_younger(desk: Desk) -> None:
    desk.note(AT)
    desk.lived_s += 20
    desk.note(AT + 5)
    assert aged(desk, sent(AT - 41, epoch="e")) == "expired"
    assert aged(desk, sent(AT - 39, epoch="e")) is None


def test_a_name_that_is_forgotten_is_long_too_old(desk: Desk) -> None:
    """The shortest that a name is kept is eight days of the state's life after the end, session_expiry_s being 0."""
    desk.note(AT)
    desk.lived_s += 8 * 86_400
    assert aged(desk, sent(AT, epoch="e", ttl_ms=10**12)) == "expired"
    assert aged(desk, sent(AT, ttl_ms=10**12), now=AT + 86_400) == "expired"


def test_a_new_key_is_not_bound_by_the_times_of_the_old_one(desk: Desk) -> None:
    desk.note(AT + 10**8)  # ann's clock was three years ahead
    desk.again()
    assert aged(desk, sent(AT, epoch="e")) == "expired"
    desk.keys["ann"] = "a2" * 32
    desk.again()
    assert aged(desk, sent(AT, epoch="e")) is None


# --- who must sign


def checked(desk: Desk, who: str, keys: dict[str, object], *, plain: bool = False) -> str | None:
    topic = NODE.send(who, "task")
    inbound = NODE.inbound(topic)
    assert inbound is not None
    return refused(lambda: desk.signers.check(topic, inbound, Letter(keys=keys, plain=plain)))


def signed(who: str, keys: dict[str, object], key: str = "") -> dict[str, object]:
    return {**keys, "sig": signature(bytes.fromhex(key or KEYS[who]), NODE.send(who, "task"), keys)}


@pytest.mark.parametrize(
    ("who", "keys", "code"),
    [
        pytest.param("ann", signed("ann", {"id": "t", "goal": "x"}), None, id="signed"),
        pytest.param("ann", {"id": "t", "goal": "x"}, "policy_denied", id="not signed"),
        pytest.param("ann", {"goal": "x"}, "policy_denied", id="as a plain text is"),
        pytest.param("ann", signed("ann", {"goal": "x"}), "bad_request", id="without an id"),
        pytest.param("ann", signed("ann", {"id": "a b", "goal": "x"}), "bad_request", id="with an id that is none"),
        pytest.param("ann", signed("ann", {"id": "t"}, KEYS["bob"]), "policy_denied", id="with another's key"),
        pytest.param("bob", signed("ann", {"id": "t"}), "policy_denied", id="in another's name"),
        pytest.param("zoe", signed("zoe", {"id": "t"}, KEYS["ann"]), "policy_denied", id="by somebody without a key"),
        pytest.param("zoe", {"id": "t"}, "policy_denied", id="not signed, by somebody without a key"),
    ],
)
def test_only_what_a_person_has_signed_is_his(desk: Desk, who: str, keys: dict[str, object], code: str | None) -> None:
    assert checked(desk, who, keys) == code
    assert desk.signers.refused == (code == "policy_denied")


def test_where_the_broker_names_people_only_those_with_a_key_must_sign(desk: Desk) -> None:
    desk.identity = "broker"
    desk.again()
    assert checked(desk, "zoe", {"id": "t"}) is None and checked(desk, "zoe", {"id": "t", "sig": "x"}) is None
    assert checked(desk, "ann", {"id": "t"}) == "policy_denied"


def test_whatever_is_wrong_is_said_in_the_same_words(desk: Desk) -> None:
    words = set()
    for sig in (None, 7, "x", signature(bytes(32), NODE.send("ann", "task"), {"id": "t"})):
        with pytest.raises(RequestRefused) as caught:
            inbound = NODE.inbound(NODE.send("ann", "task"))
            assert inbound is not None
            desk.signers.check(NODE.send("ann", "task"), inbound, Letter(keys={"id": "t", "sig": sig}))
        words.add(str(caught.value))
    assert len(words) == 1


# --- controls that would do something a second time


def release(number: int = 1, at: float = AT) -> NodeRequest:
    return NodeRequest(id=f"r{number}", do="release", sent_at=rfc3339(at), sig=f"hmac-sha256:{number:064x}")


def test_a_control_that_comes_again_is_answered_and_not_done_again(desk: Desk) -> None:
    assert desk.signers.said_before("ann", release()) is None
    answer = Reply(for_="node", id="r1", ok=True)
    desk.signers.answered(release().sig or "", answer)
    assert desk.signers.said_before("ann", release()) == answer
    assert desk.signers.said_before("ann", release(2)) is None
    assert desk.signers.said_before("zoe", release()) is None, "who has no key is not remembered"


def test_a_reload_that_goes_on_is_no_riddle_to_who_sends_it_again(desk: Desk) -> None:
    reload = msgspec.structs.replace(release(), do="reload")
    for _ in range(2):
        assert desk.signers.said_before("ann", reload) is None
    answer = Reply(for_="node", id="r1", ok=True)
    desk.signers.answered(reload.sig or "", answer)
    assert desk.signers.said_before("ann", reload) == answer


def test_after_a_restart_a_control_that_was_met_is_not_done_and_its_end_is_not_guessed(desk: Desk) -> None:
    desk.signers.said_before("ann", release())
    desk.again()
    assert refused(lambda: desk.signers.said_before("ann", release())) == "outcome_unknown"


@pytest.mark.parametrize("clock", [False, True], ids=["no clock", "a clock"])
def test_a_control_is_forgotten_only_when_it_is_too_old(desk: Desk, *, clock: bool) -> None:
    desk.signers.said_before("ann", release())
    for later_s in (30.0, 64.0, 66.0):
        desk.lived_s = 1000.0 + later_s
        desk.again()
        old = aged(desk, sent(AT, epoch="e"), "ctl", AT + later_s if clock else None)
        known = refused(lambda: desk.signers.said_before("ann", release()))
        assert (known, old)[later_s > 65] == ("outcome_unknown", "expired")[later_s > 65]


def test_no_flood_of_controls_makes_an_earlier_one_be_forgotten(desk: Desk) -> None:
    for number in range(CONTROLS):
        assert desk.signers.said_before("ann", release(number)) is None
    assert refused(lambda: desk.signers.said_before("ann", release(CONTROLS))) == "busy"
    desk.again()
    assert refused(lambda: desk.signers.said_before("ann", release(0))) == "outcome_unknown"


def test_a_cancel_costs_no_memory(desk: Desk) -> None:
    cancel = CtlRequest(id="x", task="t", do="cancel", sent_at=SENT, sig="s")
    assert desk.signers.said_before("ann", cancel) is None
    desk.again()
    assert desk.signers.said_before("ann", cancel) is None
