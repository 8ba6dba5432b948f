"""What makes a call wait for a person's word, and a halt hold."""

from tests.durability.safeguards.mutation import Mutation

APPROVALS = "tests/durability/test_approvals.py"

PEOPLE = (
    Mutation(
        "a halted node acts",
        (
            ("gate.py", 'if policy.halted is not None and effect != "read":', "if False:"),
            ("daemon/calls.py", 'if halted is not None and effect != "read" else None', "if False else None"),
        ),
        ("tests/e2e/test_halt.py",),
    ),
    Mutation(
        "a halt leaves running what runs",
        (("daemon/halts.py", "                call.set()\n", "                pass\n"),),
        ("tests/e2e/test_halt.py",),
    ),
    Mutation(
        "a halt holds from memory alone",
        (("daemon/halts.py", "tx.meta_set(_KEY, msgspec.json.encode(halted).decode())", "pass"),),
        ("tests/e2e/test_halt.py",),
    ),
    Mutation(
        "a yes counts for whatever call waits",
        (("approval.py", 'case "yes" if named == ask.ask_hash:', 'case "yes":'),),
        (APPROVALS,),
    ),
    Mutation(
        "anybody's word counts",
        (("asks.py", "elif why := self._stranger(ask, run, who):", 'elif why := "":'),),
        (APPROVALS,),
    ),
    Mutation(
        "an approver says yes to his own call",
        (("approval.py", "if name != job.who and name not in job.via", "if name not in job.via"),
         ("asks.py", "if who == run.job.who or who in run.job.via:", "if who in run.job.via:")),
        (APPROVALS,),
    ),
    Mutation(
        "a yes that comes too late counts",
        (("asks.py", "if ask.until_s <= now_s:", "if False:"),),
        (APPROVALS,),
    ),
    Mutation(
        "a yes that was not used in time holds for ever",
        (("approval.py", "if now_s - said.at_s > ask.seconds:", "if False:"),),
        (APPROVALS,),
    ),
    Mutation(
        "a run that waits for a person is taken up by a lane",
        (("journal.py", 'case "ended" | "waiting":', 'case "ended":'),),
        (APPROVALS,),
    ),
    Mutation(
        "a call that was approved may start again by the same yes",
        (("loop.py", "return approval.used(doubt.intended(run, event))", "return doubt.intended(run, event)"),),
        ("tests/test_approval.py",),
    ),
)  # fmt: skip
