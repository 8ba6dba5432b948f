"""Whether a task that has read free text needs a person's yes, where a reload has brought another word on that since."""

from pathlib import Path

import pytest
from msgspec import structs

from rea_edge.config import Broker, Node, Settings, TaskType
from rea_edge.daemon.approvals import Approvals
from rea_edge.loop import apply, start
from rea_edge.records import Act, Begun, Call, Job, Offer, Run, Tool
from rea_edge.store import Store

RING = Tool(name="ring", description="Ring.", parameters={}, effect="once")
ACT = Act(n=1, call=Call(name="ring", args={}), effect="once", seconds=5.0, tainted=True)
BEGUN = Begun(
    endpoint="e",
    model="m",
    protocol="json",
    offers=(),
    opening=(),
    ask="",
    context_tokens=1,
    min_observations=0,
    answer_tokens=1,
)


def has_read(run: Run) -> Run:
    return structs.replace(run, tainted_by="call 1 of read_log")


@pytest.mark.parametrize(
    ("begun", "newest", "runs"),
    [("allow", True, True), ("allow", False, False), ("ask", True, False), ("ask", False, False)],
)
def test_free_text_is_acted_on_only_where_the_run_began_so_and_today_says_so(
    tmp_path: Path, begun: str, newest: bool, runs: bool
) -> None:
    kind = structs.replace(TaskType(), untrusted=begun)  # type: ignore[arg-type]
    settings = Settings(node=Node(id="n"), broker=Broker(), task_types={"default": kind})
    run = has_read(start("r-1", Job(goal="g")))
    store = Store.open(tmp_path)
    try:
        approvals = Approvals(settings, "n", store, lambda: 0.0, newer_trusts=lambda task_type: newest)
        assert (approvals.refusal(run, ACT, "once", {"ring": RING}) is None) is runs
    finally:
        store.close()


@pytest.mark.parametrize(
    ("begun", "now", "runs"),
    [
        pytest.param(False, False, True, id="it never was"),
        pytest.param(True, False, False, id="it was when the run began"),
        pytest.param(False, True, False, id="it has become so"),
    ],
)
def test_a_tool_that_is_or_was_outward_needs_a_yes_once_free_text_was_read(
    tmp_path: Path, begun: bool, now: bool, runs: bool
) -> None:
    mail = Tool(name="mail", description="Mail.", parameters={}, effect="idempotent", outward=now)
    offer = Offer.of(structs.replace(mail, outward=begun))
    run = has_read(apply(start("r-1", Job(goal="g")), structs.replace(BEGUN, offers=(offer,))))
    act = structs.replace(ACT, call=Call(name="mail", args={}), effect="idempotent")
    store = Store.open(tmp_path)
    try:
        approvals = Approvals(Settings(node=Node(id="n"), broker=Broker()), "n", store, lambda: 0.0)
        assert (approvals.refusal(run, act, "idempotent", {"mail": mail}) is None) is runs
    finally:
        store.close()
