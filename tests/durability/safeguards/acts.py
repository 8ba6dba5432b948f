"""What stands between a decision and a device: gate, free text, secrets, tool hosts, reloads."""

from tests.durability.safeguards.mutation import Mutation

BEFORE = "tests/e2e/test_before_reload.py"
DEATHS = "tests/toolhost/test_deaths.py"
SECRETS = "tests/toolhost/test_secrets.py"
TAINT = "tests/test_taint.py"
TRUST = "tests/gate/test_trust.py"

ACTS = (
    Mutation(
        "tools that act once do not wait for a release",
        (("gate.py", 'if policy.lost is not None and effect == "once":', "if False:"),),
        ("tests/e2e/test_lost_state.py",),
    ),
    Mutation(
        "a run from before a reload escapes the newest gate",
        (("daemon/effects.py", "return (self,) if newest is None else (self, newest)", "return (self,)"),),
        (BEFORE,),
    ),
    Mutation(
        "a call that waited for its device starts against a reload",
        (("daemon/calls.py", "denied = self._held_back(call, effect) or overtaken()", "denied = self._held_back(call, effect)"),),
        ("tests/e2e/test_waited.py",),
    ),
    Mutation(
        "a tool that must rest is tried again at once",
        (("daemon/effects.py", "once = once or self.gates.counts(call.name, self.toolbox.tools)", "pass"),),
        ("tests/e2e/test_waited.py",),
    ),
    Mutation(
        "null is in any range",
        (("gate.py", "if not _left_out(call, parameters, key) and", "if _given(call, parameters, key) is not None and"),),
        ("tests/gate/test_rules.py",),
    ),
    Mutation(
        "two sets of tools use one device at once",
        (("toolbox.py", "self._devices = devices or Devices()", "self._devices = Devices()"),),
        (BEFORE,),
    ),
    Mutation(
        "a daemon's first tool host does not wait for all before it",
        (("toolhost/host.py", "fcntl.flock(lock_fd, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)", "pass"),),
        (DEATHS,),
    ),
    Mutation(
        "a tool host does not wait for the one before it",
        (("toolhost/host.py", "        set_byte(lock_fd, number, fcntl.F_WRLCK)\n", "        pass\n"),),
        (DEATHS,),
    ),
    Mutation(
        "what a value may be on this node is not looked at",
        (("gate.py", "for key, allowed in rule.values.items():", "for key, allowed in ():"),),
        ("tests/gate/test_rules.py",),
    ),
    Mutation(
        "a call that is too dear for its task runs",
        (("daemon/effects.py", "if why := gate.too_dear(call.name, self.cost(call), job.limits, run.used):", 'if why := "":'),),
        ("tests/e2e/test_costs.py",),
    ),
    Mutation(
        "a call that costs is tried again by itself",
        (("daemon/effects.py", "run.said is not None or self.cost(call) > 0", "run.said is not None"),),
        ("tests/e2e/test_costs.py",),
    ),
    Mutation(
        "a call that was decided on after free text waits for nobody",
        (("daemon/approvals.py", "        if not act.tainted:\n", "        if True:\n"),),
        (TRUST,),
    ),
    Mutation(
        "a reload that trusts no free text any more changes nothing for a run",
        (("daemon/approvals.py", "self.trusts(run.job.type) and self._newer_trusts(run.job.type)", "self.trusts(run.job.type)"),),
        (TRUST,),
    ),
    Mutation(
        "what a reload says of free text never comes to a run from before it",
        (("daemon/inforce.py", "return found is None or found.approvals.trusts(task_type)", "return True"),),
        (BEFORE,),
    ),
    Mutation(
        "a tool that was outward when the run began is so no more",
        (("daemon/approvals.py", "taint.is_outward_in(run, act.call) or (now", "(now"),),
        (TRUST,),
    ),
    Mutation(
        "a tool that has become outward is taken for what it was",
        (("daemon/approvals.py", " or (now is not None and taint.is_outward(now))", ""),),
        (TRUST,),
    ),
    Mutation(
        "an act on another device is not outward",
        (("taint.py", 'return tool.outward or (tool.kind not in ON_THE_BOARD and tool.effect != "read")', "return tool.outward"),),
        (TAINT,),
    ),
    Mutation(
        "a run forgets that it has read free text",
        (("loop.py", "run = taint.after(run, head) if free else run", "run = taint.after(run, head) if False else run"),),
        (TAINT,),
    ),
    Mutation(
        "a request of a node that has read free text is as any",
        (("mailbox.py", 'tainted_by=BY_REQUEST if tainted else ""', 'tainted_by=""'),),
        ("tests/e2e/test_taint.py",),
    ),
    Mutation(
        "a model is told the markup of what a tool said",
        (("context.py", "clean = without_markup(value)", "clean = value"),),
        (TAINT,),
    ),
    Mutation(
        "a model is told the markup of why a tool failed",
        (("context.py", '"message": plain(message[:1000])', '"message": message[:1000]'),),
        (TAINT,),
    ),
    Mutation(
        "what is left when markup is taken out may be markup",
        (("markup.py", "while (clean := _MARKS.sub(INSTEAD, text)) != text:", "if (clean := _MARKS.sub(INSTEAD, text)) != text:"),),
        ("tests/test_markup.py",),
    ),
    Mutation(
        "a tool that needs a secret is given all",
        (("toolhost/client.py", "for name in tool.needs if name in self._secrets}", "for name in self._secrets}"),),
        (SECRETS,),
    ),
    Mutation(
        "a tool that needs no secret is given all",
        (
            ("toolhost/client.py", "if tool.needs:", "if True:"),
            ("toolhost/client.py", "for name in tool.needs if name in self._secrets}", "for name in self._secrets}"),
            ("toolhost/host.py", "confinement, bool(tool.needs))", "confinement, True)"),
        ),
        (SECRETS,),
    ),
    Mutation(
        "what a tool tells is kept with its secret",
        (("daemon/calls.py", "return result if tool is None else visible(result, tool, self._secrets)", "return result"),),
        ("tests/e2e/test_secrets.py",),
    ),
    Mutation(
        "keepers do not hold the byte of their host",
        (("toolhost/host.py", "fcntl.F_OFD_SETLK", "fcntl.F_SETLK"),),
        (DEATHS,),
    ),
    Mutation(
        "all sets of tools wait at one byte",
        (("toolhost/host.py", "os.SEEK_SET, number, 1, 0", "os.SEEK_SET, 0, 1, 0"),),
        (DEATHS,),
    ),
)  # fmt: skip
