"""Real exchanges, replayed through the scripted endpoint: each comes to the right decision, fault or failure by name."""

import msgspec
import pytest

from rea_edge import decision
from rea_edge.cancel import Cancel
from rea_edge.emulated.endpoint import ScriptedEndpoint
from rea_edge.endpoint import Endpoint
from rea_edge.errors import EndpointFailed
from rea_edge.outcome import incomplete
from rea_edge.records import Decision, Finish, Malformed
from rea_edge.replay import in_words
from tests.recordings.exchanges import as_sent, exchanges, offers_of, protocol_of
from tests.test_loop import HOT, READ, answer, call, ready, returned

READS = 'call read_sensor {"sensor":"cpu_temp"}'
CUT = "truncated: "
FAN_ON = 'call set_pin {"pin":"fan","on":true}'
# By number: what each begins with. A model's wrong act is right here if it is what the model decided.
WANTED = {
    0: READS, 1: READS, 2: READS, 3: FAN_ON, 4: "invalid_args: read_sensor", 5: CUT, 6: "finish 'One, two,'", 7: CUT, 8: CUT,
    9: CUT, 10: "invalid_args: read_sensor", 11: "unknown_tool: There is no tool no", 12: "bad_request", 13: "bad_request",
    14: "bad_request", 15: "bad_request", 16: CUT, 17: "bad_request", 18: "context_overflow", 19: "bad_request", 20: CUT,
    21: CUT, 22: CUT, 23: READS, 24: CUT, 25: "bad_request", 26: "loading", 27: CUT,
    28: "finish 'The light level is below 100, so the lamp has been turned on.'", 29: "invalid_args: set_pin",
    30: "finish 'the result for the user is", 31: READS, 32: READS, 33: FAN_ON, 34: "unparseable: ", 35: "unparseable: ",
    36: 'call restart_service {"name":"mosquitto"}', 37: "unparseable: ", 38: "finish 'CPU temperature: 25.0", 39: "unparseable: ",
    40: CUT, 41: "unparseable: ", 42: CUT, 43: 'call read {"sensor":"cpu_temp"}', 44: "finish ''",
    45: 'call restart {"name":"mosquitto"}', 46: "conflict: ",
}  # fmt: skip


def replayed(number: int) -> Decision | Malformed:
    exchange = exchanges()[number]
    with ScriptedEndpoint(lambda request: as_sent(exchange)) as server:
        endpoint = Endpoint(name="recorded", url=server.url, model="any", api_key=None)
        try:
            got = endpoint.ask(msgspec.json.encode(exchange["request"]), seconds=5.0, cancel=Cancel())
        finally:
            endpoint.close()
    message = msgspec.json.decode(got.message, type=dict[str, object])
    offers = offers_of(exchange)
    return decision.read_or_fault(message, got.finish_reason, offers, protocol_of(exchange), {})


def test_every_exchange_has_its_outcome() -> None:
    assert sorted(WANTED) == list(range(len(exchanges())))


@pytest.mark.parametrize("number", sorted(WANTED))
def test_a_recorded_exchange_comes_to_its_outcome(number: int) -> None:
    try:
        said = in_words(replayed(number))
    except EndpointFailed as failed:
        said = failed.kind
    assert said.startswith(WANTED[number])


@pytest.mark.parametrize("number", [6, 28, 30, 38])
def test_a_recorded_finish_that_rests_on_nothing_is_not_believed(number: int) -> None:
    finish = replayed(number)
    assert isinstance(finish, Finish)
    assert "must rest on at least one tool result" in str(incomplete(ready(), finish))


@pytest.mark.parametrize(("number", "believed"), [(6, False), (28, True), (30, True), (38, True)])
def test_with_a_result_only_the_one_that_breaks_off_is_sent_back(number: int, believed: bool) -> None:
    finish = replayed(number)
    assert isinstance(finish, Finish)
    run = returned(answer(ready(), call(READ)), HOT)
    assert (incomplete(run, finish) is None) is believed
