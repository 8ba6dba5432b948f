"""Whether a task may act on free text without a person's yes, where a reload has brought another word on that since."""

from pathlib import Path

import pytest
from msgspec import structs

from rea_edge.config import Broker, Node, Settings, TaskType
from rea_edge.daemon.approvals import Approvals
from rea_edge.loop import start
from rea_edge.records import Act, Call, Job, Tool
from rea_edge.store import Store

RING = Tool(name="ring", description="Ring.", parameters={}, effect="once")
ACT = Act(n=1, call=Call(name="ring", args={}), effect="once", seconds=5.0, tainted=True)


@pytest.mark.parametrize(
    ("begun", "newest", "runs"),
    [("allow", True, True), ("allow", False, False), ("ask", True, False), ("ask", False, False)],
)
def test_free_text_is_acted_on_only_where_the_run_began_so_and_today_says_so(
    tmp_path: Path, begun: str, newest: bool, runs: bool
) -> None:
    kind = structs.replace(TaskType(), untrusted=begun)  # type: ignore[arg-type]
    settings = Settings(node=Node(id="n"), broker=Broker(), task_types={"default": kind})
    run = structs.replace(start("r-1", Job(goal="g")), tainted_by="call 1 of read_log")
    store = Store.open(tmp_path)
    try:
        approvals = Approvals(settings, "n", store, lambda: 0.0, newer_trusts=lambda task_type: newest)
        assert (approvals.refusal(run, ACT, "once", {"ring": RING}) is None) is runs
    finally:
        store.close()
