"""A call of another node's tool with either end killed in the middle: how it ends is said by its effect."""

import shutil

import msgspec
import pytest

from rea_edge.emulated.endpoint import ScriptedEndpoint
from tests.brokers import Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, call, endpoint_table, finish, questions, script
from tests.e2e.pair import EFFECTS, Pair, code_of, reply_to, result

SHORT = EFFECTS + "timeout_s = {doze = 4.0, soak = 4.0, ring = 4.0}\n"


def begun(house: House, word: str, count: int = 1) -> None:
    wait_until(lambda: len(house.ledger(word)) >= count, f"{word} has begun {count} times", 30.0)


@pytest.mark.parametrize(
    ("tool", "word", "runs"),
    [
        pytest.param("doze", "ok", 2, id="a read runs again"),
        pytest.param("soak", "ok", 2, id="what is idempotent runs again"),
        pytest.param("ring", "unknown", 1, id="what acts once does not"),
    ],
)
def test_a_peer_that_is_killed_in_a_call_of_a_model_and_comes_back_ends_it_by_its_effect(
    mosquitto: Mosquitto, make_house: MakeHouse, tool: str, word: str, runs: int
) -> None:
    with ScriptedEndpoint(
        script(call(f"far__{tool}", seconds=1.5), call("far__look", name="tank"), finish("It is done."))
    ) as server:
        pair = Pair(make_house, mosquitto, near=endpoint_table(server.url, tool_s=20.0)).begin()
        with pair.near.client() as client:
            task_id, _ = client.submit({"goal": "Do it."})
            begun(pair.far, tool)
            pair.far.kill()
            pair.far.start()
            ended = client.watch(task_id, None)
        assert (ended.outcome, [one.result for one in ended.done]) == ("achieved", [word, "ok"]), ended
        assert len(pair.far.ledger(tool)) == runs
        assert ("unknown" in questions(server)[1].decode()) == (word == "unknown"), "what the model was told"


@pytest.mark.parametrize(
    ("tool", "code"),
    [
        pytest.param("doze", "tool_failed", id="a read has failed"),
        pytest.param("soak", "tool_failed", id="what is idempotent has failed", marks=pytest.mark.slow),
        pytest.param("ring", "outcome_unknown", id="of what acts once nobody knows"),
    ],
)
def test_a_peer_that_is_killed_in_a_call_and_stays_away_leaves_what_its_effect_allows_to_say(
    mosquitto: Mosquitto, make_house: MakeHouse, tool: str, code: str
) -> None:
    pair = Pair(make_house, mosquitto, more=SHORT).begin()
    with pair.near.client() as client:
        client.send("call", {"id": "c1", "args": {"seconds": 60.0 if tool != "ring" else 15.0}}, f"far__{tool}")
        begun(pair.far, tool)
        pair.far.kill()
        reply = reply_to(client, "c1")
        assert code_of(reply) == code, reply
        assert reply.error is not None and "far-1" in reply.error.message
        # The next one is not even sent.
        assert "offline" in str(result(client, "look", name="tank").error)


@pytest.mark.parametrize(
    ("tool", "code", "runs"),
    [
        pytest.param("doze", None, 2, id="a read is asked for anew"),
        pytest.param("soak", None, 1, id="what is idempotent is asked for by the same id, and told again"),
        pytest.param("ring", None, 1, id="of what acts once the outcome is asked for, and nothing sent again"),
    ],
)
def test_a_caller_that_is_killed_in_a_call_takes_it_up_by_its_effect(
    mosquitto: Mosquitto, make_house: MakeHouse, tool: str, code: str | None, runs: int
) -> None:
    pair = Pair(make_house, mosquitto).begin()
    with pair.near.client() as client:
        client.send("call", {"id": "c1", "args": {"seconds": 1.0}}, f"far__{tool}")
        begun(pair.far, tool)
        pair.near.kill()
        pair.near.start()
        assert code_of(reply_to(client, "c1")) == code
        begun(pair.far, tool, runs)
        assert len(pair.far.ledger(tool)) == runs
        assert [line.split()[1] for line in pair.far.ledger("soak")] == [
            line.split()[1] for line in pair.far.ledger("soak")
        ][:1]


@pytest.mark.parametrize(
    "forgets", [pytest.param(False, id="is away", marks=pytest.mark.slow), pytest.param(True, id="has lost its state")]
)
def test_of_a_call_that_acts_once_nobody_knows_the_end_where_its_peer_cannot_say(
    mosquitto: Mosquitto, make_house: MakeHouse, forgets: bool
) -> None:
    """Both ends are killed; a call that the peer knows nothing of may have been made all the same, so it stays unknown."""
    pair = Pair(make_house, mosquitto, more=SHORT).begin()
    with pair.near.client() as client:
        client.send("call", {"id": "c1", "args": {"seconds": 15.0}}, "far__ring")
        begun(pair.far, "ring")
        pair.near.kill()
        pair.far.kill()
        if forgets:
            shutil.rmtree(pair.far.folder / "state")
            pair.far.start()
        pair.near.start()
        assert code_of(reply_to(client, "c1")) == "outcome_unknown"
        assert len(pair.far.ledger("ring")) == 1


def test_of_a_call_that_acts_once_a_peer_that_was_killed_says_that_it_is_unknown(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    pair = Pair(make_house, mosquitto).begin()
    with pair.near.client() as client:
        client.send("call", {"id": "c1", "args": {"seconds": 15.0}}, "far__ring")
        begun(pair.far, "ring")
        for house in (pair.near, pair.far):
            house.kill()
            house.start()
        reply = reply_to(client, "c1")
        assert code_of(reply) == "outcome_unknown" and "far-1" in str(reply.error)
        assert len(pair.far.ledger("ring")) == 1


@pytest.mark.parametrize("tool", [pytest.param("soak", marks=pytest.mark.slow), "ring"])
def test_a_broker_that_is_killed_in_a_call_costs_no_outcome(
    mosquitto: Mosquitto, make_house: MakeHouse, tool: str
) -> None:
    """The reply may be published while the near node is not back yet: it asks for it."""
    pair = Pair(make_house, mosquitto).begin()
    with pair.near.client() as client:
        client.send("call", {"id": "c1", "args": {"seconds": 2.0}}, f"far__{tool}")
        begun(pair.far, tool)
        mosquitto.kill()
        mosquitto.start()
        seen = msgspec.convert(client.data("query", {"task": "c1"}, "call", wait_s=30.0), dict[str, object])
        assert seen["state"] in ("running", "ended")

        def ended() -> bool:
            return client.data("query", {"task": "c1"}, "call", wait_s=30.0)["state"] == "ended"  # type: ignore[index]

        wait_until(ended, "the call ends", 40.0)
        kept = msgspec.convert(client.data("query", {"task": "c1"}, "call"), dict[str, object])
        assert msgspec.convert(kept["reply"], dict[str, object])["ok"], kept
        assert len(pair.far.ledger(tool)) == 1


@pytest.mark.parametrize(
    ("tool", "code"),
    [pytest.param("ring", "outcome_unknown", marks=pytest.mark.slow), pytest.param("soak", "tool_failed")],
)
def test_a_peer_that_loses_its_state_in_a_call_does_not_take_it_for_a_new_one(
    mosquitto: Mosquitto, make_house: MakeHouse, tool: str, code: str
) -> None:
    pair = Pair(make_house, mosquitto, more=EFFECTS + "timeout_s = {soak = 8.0, ring = 8.0}\n").begin()
    with pair.near.client() as client:
        client.send("call", {"id": "c1", "args": {"seconds": 15.0}}, f"far__{tool}")
        begun(pair.far, tool)
        pair.far.kill()
        shutil.rmtree(pair.far.folder / "state")
        pair.far.start()
        assert code_of(reply_to(client, "c1")) == code
        assert len(pair.far.ledger(tool)) == 1
