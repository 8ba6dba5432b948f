"""What stands between a decision and a device: gate, free text, secrets, tool hosts, reloads."""

from tests.durability.safeguards.mutation import Mutation

DEATHS = "tests/toolhost/test_deaths.py"

ACTS = (
    Mutation(
        "tools that act once do not wait for a release",
        (("gate.py", 'if policy.lost is not None and effect == "once":', "if False:"),),
        ("tests/e2e/test_lost_state.py",),
    ),
    Mutation(
        "a run from before a reload escapes the newest gate",
        (("daemon/effects.py", "return (self,) if newest is None else (self, newest)", "return (self,)"),),
        ("tests/e2e/test_reload.py",),
    ),
    Mutation(
        "two sets of tools use one device at once",
        (("toolbox.py", "self._devices = devices or Devices()", "self._devices = Devices()"),),
        ("tests/e2e/test_reload.py",),
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
)  # fmt: skip
