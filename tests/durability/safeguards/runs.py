"""What makes a run survive a crash, and its budget with it: intents, reservations, charges, doubts, ends."""

from tests.durability.safeguards.mutation import BORDERS, Mutation

CONTROLS = "tests/durability/test_controls.py"

RUNS = (
    Mutation(
        "the intent is noted and not committed",
        (("runner.py", "self._commit(held, Intended(n=act.n,", "held.note(Intended(n=act.n,"),),
        (BORDERS,),
    ),
    Mutation(
        "what a call costs is not written before it starts",
        (("runner.py", "or verify is not None or cost)", "or verify is not None)"),),
        (BORDERS,),
    ),
    Mutation(
        "what a call costs is charged when it ends",
        (("doubt.py", "used=budget.pay(run.used, event.cost)", "used=run.used"),),
        (BORDERS,),
    ),
    Mutation(
        "what a call costs is not counted for all tasks",
        (("journal.py", "self._books.pay(tx, cost)", "pass"),),
        (BORDERS,),
    ),
    Mutation(
        "two calls may share what is left for one",
        (("daemon/spending.py", "if (why := self._too_dear(tx, cost)) is not None:", "if (why := None) is not None:"),),
        ("tests/daemon/test_spending.py",),
    ),
    Mutation(
        "a call that who carried it out knows nothing of is taken for done",
        (("doubt.py", "_cut_off(head) if result is None", "Ok(data=Raw(b'1')) if result is None"),),
        (BORDERS,),
    ),
    Mutation(
        "an open intent is started again",
        (("loop.py", 'if run.phase == "acting" and run.open[0].intended:', "if False:"),),
        (BORDERS,),
    ),
    Mutation(
        "an open call is not asked after",
        (("doubt.py", "if head.checked is not None or head.verify is None or not probing:", "if True:"),),
        (BORDERS,),
    ),
    Mutation(
        "a call that a probe finds done is done again",
        (("doubt.py", "may_run_again = took is False or", "may_run_again = took is not None or"),),
        (BORDERS,),
    ),
    Mutation(
        "a probe that says no is taken for a yes",
        (("doubt.py", "if took is True and", "if took is not None and"),),
        ("tests/test_doubt.py",),
    ),
    Mutation(
        "an outcome that is not known is not said to be",
        (("doubt.py", 'unknown=head.effect == "once")', "unknown=False)"),),
        (BORDERS,),
    ),
    Mutation(
        "a call runs again that its probe cannot tell of",
        (("doubt.py", "may_run_again = took is False or", "may_run_again = took is not True or"),),
        ("tests/test_doubt.py",),
    ),
    Mutation(
        "a call that a crash cut off and that is refused then is said not to have run",
        (("loop.py", "doubt.begun(run)", "run"),),
        (BORDERS, "-k", "forbidden"),
    ),
    Mutation(
        "a call that a stop cut off leaves no row",
        (("runner.py", "self._commit(held, CutOff(n=act.n,", "held.note(CutOff(n=act.n,"),),
        ("tests/e2e/test_cut_off.py",),
    ),
    Mutation(
        "a settled call is settled once more",
        (("loop.py", "case _, Settled(n=n) if settled.is_open(run, n):", "case _, Settled():"),),
        ("tests/test_settled.py",),
    ),
    Mutation(
        "a call starts whose cancel came behind its intent",
        (("runner.py", "held.run.cancel is None and not cancel.cancelled", "True"),),
        (CONTROLS, "-m", "slow", "-k", "cancel"),
    ),
    Mutation(
        "an end is written over a cancel that was acknowledged",
        (("journal.py", "if wanted and isinstance(wanted[-1], Ended) and any(", "if False and any("),),
        (CONTROLS, "-m", "slow", "-k", "cancel"),
    ),
    Mutation(
        "unclean starts are not counted",
        (("loop.py", "strikes = run.strikes + 1 if under_way and not event.clean else", "strikes ="),),
        (BORDERS,),
    ),
    Mutation(
        "a reservation is noted and not committed",
        (("runner.py", "self._commit(held, asked)", "held.note(asked)"),),
        (BORDERS,),
    ),
    Mutation(
        "a reservation is given back by a restart",
        (
            (
                "loop.py",
                "used = budget.write_off(run.used, run.reserved)",
                "used = budget.write_off(run.used, run.reserved, charged=not run.reserved)",
            ),
        ),
        (BORDERS,),
    ),
    Mutation(
        "a reservation that stays is not said to be an estimate",
        (("loop.py", "used = budget.write_off(run.used, run.reserved)", "used = run.used"),),
        (BORDERS,),
    ),
    Mutation(
        "a call runs before its decision is committed",
        (
            (
                "runner.py",
                "        self._commit(held)\n        if held.run.cancel is not None:\n            return  # it came in",
                "        if held.run.cancel is not None:\n            return  # it came in",
            ),
        ),
        (BORDERS,),
    ),
    Mutation(
        "an end is published in a commit of its own",
        (
            (
                "journal.py",
                "            if any(is_kept(event) for event in wanted):\n                self._publish(tx, row, run)\n",
                "        if any(is_kept(event) for event in wanted):\n            with self._store.transaction() as tx:\n"
                "                self._publish(tx, row, run)\n",
            ),
        ),
        (BORDERS,),
    ),
    Mutation(
        "a prompt is not compared with what was sent",
        (("loop.py", "if run.recheck and not context.begins_as_sent(run):", "if False:"),),
        ("tests/durability/test_prefix.py",),
    ),
    Mutation(
        "what all tasks spend is not charged with the question",
        (("journal.py", "            self._charge(tx, run)\n", ""),),
        (BORDERS,),
    ),
    Mutation(
        "a reservation that is open at midnight is nobody's",
        (("allowance.py", "return Count(amount=reserved, since_s=now_s, period=period)", "return Count(since_s=now_s, period=period)"),),
        ("tests/test_allowance.py",),
    ),
    Mutation(
        "a wall clock that is set ahead ages what is kept",
        (("timeline.py", "if now.wall is None or line.wall_boot == now.boot:", "if now.wall is None:"),),
        ("tests/test_timeline.py", "tests/daemon/test_upkeep.py"),
    ),
)  # fmt: skip
