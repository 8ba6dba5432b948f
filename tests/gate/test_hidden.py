"""What an approver is shown of a call's arguments, and that he is told where that is not all of them."""

from pathlib import Path

import pytest

from rea_edge.config import Access, Broker, Node, Settings
from rea_edge.daemon.approvals import Approvals
from rea_edge.loop import start
from rea_edge.records import Act, Args, AskedApproval, Call, Job, Rule, Tool
from rea_edge.store import Store

SEND = Tool(name="send", description="Send.", parameters={}, effect="once")
SETTINGS = Settings(
    node=Node(id="n"),
    broker=Broker(),
    access=Access(identity="broker"),
    gates={"send": Rule(confirm="always", approvers=("bob",))},
)


@pytest.mark.parametrize(
    ("args", "hidden"),
    [
        pytest.param({"text": "All is well."}, False, id="all is shown"),
        pytest.param({"text": "password=open-all-doors"}, True, id="what looks like a secret"),
        pytest.param({"token": "abcdef0123456789"}, True, id="under a name of one"),
    ],
)
def test_an_approver_is_told_where_not_all_of_the_arguments_is_shown(tmp_path: Path, args: Args, hidden: bool) -> None:
    job = Job(call=Call(name="send", args=args), who="ann")
    act = Act(n=1, call=Call(name="send", args=args), effect="once", seconds=5.0)
    store = Store.open(tmp_path)
    try:
        asked = Approvals(SETTINGS, "n", store, lambda: 0.0).asked(start("r-1", job), act, "once", {"send": SEND})
    finally:
        store.close()
    assert isinstance(asked, AskedApproval)
    assert asked.hidden is hidden and ("***" in str(asked.shown)) is hidden
