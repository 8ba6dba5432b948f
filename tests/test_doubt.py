"""A call whose end nobody saw: what its probe says, and what becomes of it."""

import msgspec
import pytest
from msgspec import Raw

from rea_edge import doubt
from rea_edge.loop import OPEN_ENDS, STRIKES, IllegalMove, apply, next_effect
from rea_edge.records import (
    Act,
    Call,
    CancelAsked,
    Criterion,
    Doubted,
    EffectClass,
    Ended,
    Fault,
    Intended,
    Ok,
    Op,
    Recall,
    Record,
    Result,
    Resumed,
    Returned,
    Run,
    Verified,
    Verify,
)
from tests.test_loop import ALARM, FAN, READ, answer, call, ready

PROBE = Criterion(tool="read_sensor", args={"name": "bell"}, path="percent", op="==", value=40)
LATE = Fault(fault="timeout", message="it ran longer than 5 s")


def found(data: str) -> Ok:
    return Ok(data=Raw(data.encode()))


YES, NO, UNTOLD = found('{"percent":40.0}'), found('{"percent":0}'), found('{"other":40}')


def intended(effect: EffectClass = "once", verify: Criterion | None = PROBE) -> Run:
    return apply(answer(ready(), call(ALARM if effect == "once" else FAN)), Intended(n=1, effect=effect, verify=verify))


def crashed(effect: EffectClass = "once") -> Run:
    return apply(intended(effect), Resumed(clean=False))


def late(effect: EffectClass = "once") -> Run:
    return apply(intended(effect), Doubted(n=1, fault=LATE, seconds=5.0))


def probed(run: Run, result: Result) -> Run:
    effect = next_effect(run)
    assert effect == Verify(n=1, call=Call(name="read_sensor", args={"name": "bell"}), seconds=10.0)
    return apply(run, Verified(n=1, result=result, seconds=0.25))


def recorded(run: Run) -> Returned:
    effect = next_effect(run)
    assert isinstance(effect, Record) and isinstance(effect.event, Returned), effect
    return effect.event


@pytest.mark.parametrize("run", [pytest.param(crashed(), id="crashed"), pytest.param(late(), id="late")])
def test_a_call_that_took_effect_is_done_and_says_how_that_is_known(run: Run) -> None:
    event = recorded(probed(run, YES))
    assert isinstance(event.result, Ok) and not event.unknown
    said = msgspec.json.decode(event.result.data)
    assert said == {"done": True, "verified_by": "read_sensor", "found": {"percent": 40.0}}
    assert event.seconds == pytest.approx(0.25 if run.open[0].fault is None else 5.25)
    assert [done.result for done in apply(run, event).done] == ["ok"]


def test_a_call_that_a_crash_cut_off_without_effect_runs_again_with_the_same_number_and_a_new_intent() -> None:
    run = probed(crashed(), NO)
    assert next_effect(run) == Act(n=1, call=ALARM, effect="once", seconds=10.0)
    assert isinstance(next_effect(apply(run, Intended(n=1, verify=PROBE))), Verify)


def test_a_call_that_failed_without_effect_in_a_living_node_has_failed_and_is_not_tried_again() -> None:
    event = recorded(probed(late(), NO))
    assert isinstance(event.result, Fault) and not event.unknown
    assert event.result.fault == "timeout" and "read_sensor says that it did not take effect" in event.result.message


@pytest.mark.parametrize(
    "result",
    [
        pytest.param(Fault(fault="tool_error", message="no sensor"), id="the probe failed"),
        pytest.param(UNTOLD, id="nothing at its path"),
        pytest.param(found('{"percent":"40"}'), id="a value of another kind"),
        pytest.param(found('{"percent":null}'), id="no value"),
    ],
)
@pytest.mark.parametrize("run", [pytest.param(crashed(), id="crashed"), pytest.param(late(), id="late")])
def test_what_a_probe_cannot_tell_is_unknown(run: Run, result: Result) -> None:
    event = recorded(probed(run, result))
    assert event.unknown and isinstance(event.result, Fault) and "read_sensor could not tell" in event.result.message


def test_without_a_probe_a_call_in_doubt_is_unknown_at_once() -> None:
    assert recorded(apply(intended(verify=None), Resumed(clean=False))).unknown


@pytest.mark.parametrize("result", [NO, UNTOLD])
def test_an_idempotent_call_that_a_crash_cut_off_runs_again_unless_it_took_effect(result: Result) -> None:
    assert isinstance(next_effect(probed(crashed("idempotent"), result)), Act)
    assert isinstance(recorded(probed(crashed("idempotent"), YES)).result, Ok)


@pytest.mark.parametrize("result", [NO, UNTOLD])
def test_an_idempotent_call_that_was_late_is_never_unknown(result: Result) -> None:
    event = recorded(probed(late("idempotent"), result))
    assert isinstance(event.result, Fault) and not event.unknown


def test_a_crash_in_the_probe_asks_it_again_and_three_in_a_row_leave_it_unknown() -> None:
    run = intended()
    for _ in range(STRIKES - 1):
        run = apply(run, Resumed(clean=False))
        assert isinstance(next_effect(run), Verify)
    assert recorded(apply(run, Resumed(clean=False))).unknown


def test_a_call_that_crashes_the_node_each_time_it_runs_is_not_run_for_ever() -> None:
    run, runs = answer(ready(), call(ALARM)), 0
    while isinstance(next_effect(run), Act):
        runs += 1
        run = apply(apply(run, Intended(n=1, verify=PROBE)), Resumed(clean=False))
        if isinstance(next_effect(run), Verify):
            run = probed(run, NO)
    assert runs == STRIKES and recorded(run).unknown


def test_a_cancelled_run_finds_out_what_took_effect_before_it_ends_and_starts_nothing() -> None:
    for told, word in ((YES, "ok"), (NO, "failed"), (UNTOLD, "unknown")):
        run = probed(apply(crashed(), CancelAsked(by="ann")), told)
        run = apply(run, recorded(run))
        assert [done.result for done in run.done] == [word]
        end = next_effect(run)
        assert isinstance(end, Record) and isinstance(end.event, Ended) and end.event.outcome == "cancelled"


@pytest.mark.parametrize(
    ("op", "value", "data", "took"),
    [
        ("==", True, '{"percent":true}', True),
        ("==", True, '{"percent":false}', False),
        ("==", True, '{"percent":1}', None),
        (">=", 39.5, '{"percent":40}', True),
        (">=", 40.5, '{"percent":40}', False),
        ("!=", "shut", '{"percent":"open"}', True),
        ("==", "open", '{"percent":"open"}', True),
    ],
)
def test_the_value_decides_only_where_it_can_be_compared(op: Op, value: object, data: str, took: bool | None) -> None:
    probe = msgspec.structs.replace(PROBE, op=op, value=value)
    run = apply(apply(intended(verify=probe), Resumed(clean=False)), Verified(n=1, result=found(data), seconds=0.1))
    if took is False:
        assert isinstance(next_effect(run), Act)
    else:
        assert recorded(run).unknown == (took is None)


PARAMETERS: dict[str, object] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "percent": {"type": "integer", "default": 50}, "how": {}},
    "required": ["name"],
}
DECLARED = Criterion(tool="look", args={"name": "{name}", "deep": 1}, path="percent", op="==", value="{percent}")


def test_a_probe_is_filled_with_the_arguments_as_they_are_or_their_defaults() -> None:
    given = doubt.filled(DECLARED, {"name": "a", "percent": 7}, PARAMETERS)
    assert given is not None and (given.args, given.value) == ({"name": "a", "deep": 1}, 7)
    default = doubt.filled(DECLARED, {"name": "a"}, PARAMETERS)
    assert default is not None and default.value == 50
    assert doubt.filled(msgspec.structs.replace(DECLARED, value="{how}"), {"name": "a"}, PARAMETERS) is None


@pytest.mark.parametrize(
    ("run", "event"),
    [
        pytest.param(intended(verify=None), Verified(n=1, result=YES, seconds=0.1), id="no probe"),
        pytest.param(intended(), Verified(n=2, result=YES, seconds=0.1), id="another call"),
        pytest.param(answer(ready(), call(READ)), Doubted(n=1, fault=LATE, seconds=0.1), id="not started"),
    ],
)
def test_a_probe_has_its_place_only_while_its_call_is_in_doubt(run: Run, event: Verified | Doubted) -> None:
    with pytest.raises(IllegalMove):
        apply(run, event)


# --- a call that somebody else carries out, who can be asked


def elsewhere() -> Run:
    run = apply(answer(ready(), call(ALARM)), Intended(n=1, recall=True))
    return apply(run, Resumed(clean=False))


def test_who_carries_a_call_out_is_asked_how_it_ended_and_it_is_not_started_again() -> None:
    assert next_effect(elsewhere()) == Recall(n=1, call=ALARM, seconds=10.0)


@pytest.mark.parametrize(
    ("said", "word"),
    [
        pytest.param(YES, "ok", id="it was done"),
        pytest.param(Fault(fault="tool_error", message="no"), "failed", id="it failed"),
        pytest.param(Fault(fault="denied", message="no"), "denied", id="it was denied"),
        pytest.param(Fault(fault="unknown", message="?"), "unknown", id="nobody knows there"),
        pytest.param(None, "unknown", id="he knows of no such call"),
    ],
)
def test_what_he_says_is_its_end_and_where_he_says_nothing_it_is_unknown(said: Result | None, word: str) -> None:
    run = elsewhere()
    run = apply(run, doubt.recalled(run.open[0], said, 0.5, OPEN_ENDS))
    assert [one.result for one in run.done] == [word] and run.open == ()


def test_a_call_elsewhere_that_kills_who_asks_about_it_again_and_again_is_unknown() -> None:
    run = elsewhere()
    for _ in range(STRIKES - 1):
        run = apply(run, Resumed(clean=False))
    assert recorded(run).unknown
