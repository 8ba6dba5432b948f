"""A day of people's orders on a daemon that is killed, or whose disk fails, at any call on its state files.

The orders are signed: a task whose call costs and waits for a yes, the yes, a halt, its release, a reload. Whoever has
sent one sends it again until he is answered, and what he was told stays so.
"""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from rea_edge.client import Client
from rea_edge.emulated.endpoint import ScriptedEndpoint
from rea_edge.errors import RequestRefused
from rea_edge.journal import decode_event, run_from
from rea_edge.records import Intended
from rea_edge.store.copy import StoreCopy
from rea_edge.wire import AskShown, Reply
from tests.brokers import Mosquitto, wait_until
from tests.durability.tampering import KILL, counted, tampering, watching
from tests.durability.test_asking import check_yes
from tests.durability.test_killed_daemon import CALLS
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, call, endpoint_table, finish, script, wait_online
from tests.e2e.test_approval import say
from tests.e2e.test_signed import ANN, BOB, keyed

DAY_S = 60.0  # generous: a day takes two seconds or three, and a start more where others are at work
COST = 0.1
GATE = f'[task.default]\nmin_observations = 0\n[gate.ring]\nconfirm = "always"\napprovers = ["bob"]\ncost = {COST}\n'
Moment = tuple[str, int]


def told(asked: Callable[[], Reply]) -> Reply:
    """The answer of a node that did what it was asked: again as long as a crash or a full disk leaves it open."""
    while True:
        reply = asked()
        if reply.error is None:
            return reply
        assert reply.error.code in ("outcome_unknown", "store_failed"), reply


def order(ann: Client, do: str) -> None:
    told(lambda: ann.ask("node", {"do": do}, wait_s=DAY_S))


def accepted(ann: Client, name: str) -> None:
    while True:
        try:
            ann.submit({"id": name, "goal": "Ring."})
            return
        except RequestRefused as exc:
            assert exc.code == "store_failed", exc


def ask_of(bob: Client, name: str) -> AskShown:
    found: list[AskShown] = []

    def is_asked() -> bool:
        found[:] = [one for one in bob.asks() if one.task == name]
        return bool(found)

    wait_until(is_asked, f"bob is asked for {name}", DAY_S)
    return found[0]


def day(house: House, name: str) -> None:
    """All orders of a day, one after the other, over whatever happens to the daemon meanwhile."""
    with (
        house.client("ann", key=ANN, silent_s=DAY_S) as ann,
        house.client("bob", key=BOB, silent_s=DAY_S, approver=True) as bob,
    ):
        accepted(ann, name)
        assert told(lambda: say(bob, ask_of(bob, name), id=name)).ok
        state = ann.watch(name, None)
        assert state.outcome == "achieved" and [one.result for one in state.done] in (["ok"], ["unknown"]), state
        assert state.usage.cost == COST, "it was paid for once, whatever became of it"
        order(ann, "halt")
        assert ann.status_asked().state == "degraded", "a halt that was told holds"
        order(ann, "release")
        assert ann.status_asked().state == "online", "and so does a release"
        order(ann, "reload")


@contextmanager
def rehearsed(mosquitto: Mosquitto, make_house: MakeHouse) -> Iterator[tuple[House, list[Moment]]]:
    """A house that has lived through one day, and the moments of it."""
    with ScriptedEndpoint(script(call("ring"), finish("It rang."))) as endpoint:
        house = keyed(make_house(mosquitto, extra=f"{endpoint_table(endpoint.url, cost=1)}\n{GATE}"))
        with house.client(silent_s=DAY_S) as anyone:
            house.start()  # the first start makes the state, which a day finds
            wait_online(anyone, DAY_S)
            house.kill()
        trace = house.folder / "trace"
        house.start(*watching(house.folder / "state", trace))
        day(house, "rehearsal")
        house.kill()
        calls = counted(trace)
        yield house, [(name, number) for name in CALLS for number in range(1, calls[name] + 1)]


def lived(house: House, name: str, moment: Moment, what: str) -> bool:
    """One day, in which the daemon is tampered with once and started again if it ends; gives whether it did."""
    house.start(*tampering(house.folder / "state", house.folder / "trace", *moment, what))
    with ThreadPoolExecutor(1) as pool:
        orders = pool.submit(day, house, name)
        wait_until(lambda: orders.done() or not house.alive, "the day is over, or the daemon", 2 * DAY_S)
        fell = not house.alive
        if fell:
            assert house.wait(0) == (-9 if what == KILL else 74)
            house.start()
        orders.result()
    house.kill()
    return fell


@pytest.mark.parametrize(
    ("what", "lives", "share"),
    [
        pytest.param(KILL, 1, 0.0, id="sample"),
        pytest.param(KILL, 0, 0.7, marks=pytest.mark.slow, id="all"),
        pytest.param("error=EIO", 0, 0.5, marks=pytest.mark.slow, id="all-EIO"),
        pytest.param("error=ENOSPC", 0, 0.0, marks=pytest.mark.slow, id="all-ENOSPC"),
    ],
)
def test_what_people_were_told_stays_so_whatever_call_on_the_state_files_fails(
    mosquitto: Mosquitto, make_house: MakeHouse, what: str, lives: int, share: float
) -> None:
    with rehearsed(mosquitto, make_house) as (house, moments):
        chosen = random.Random(what).sample(moments, lives or len(moments))
        fell = [lived(house, f"d{number}", moment, what) for number, moment in enumerate(chosen)]
        assert sum(fell) >= share * len(fell), f"{sum(fell)} of {len(fell)} lives ended"
        rang = [line.split()[1] for line in house.ledger("ring")]
        assert len(set(rang)) == len(rang), "an effect took place twice"
        with StoreCopy(house.folder / "state") as copy:
            assert copy.meta_get("halted") is None
            rows = copy.runs(1000)
            assert len(rows) == 1 + len(chosen)
            for row in rows:
                run = run_from(copy, row)
                (done,) = run.done
                assert done.result == "unknown" or f"{run.id}-1" in rang, "what is told to have run has run"
                events = [decode_event(body) for body in copy.events(row.row)]
                check_yes(events)
                assert [event.cost for event in events if isinstance(event, Intended)] == [COST]
