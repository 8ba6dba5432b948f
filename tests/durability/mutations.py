"""Takes away one safeguard at a time and shows which test turns red. One that no test misses is not proved.

    python -m tests.durability.mutations [WORD]

Works on copies; WORD chooses those whose name has it. Exit code 1 if a change went unnoticed, or does not fit any more.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from tests.durability.devices import DEVICES
from tests.durability.mutation import Change, Mutation
from tests.durability.recording import ROOT

BORDERS = "tests/durability/test_borders.py"
APPROVALS = "tests/durability/test_approvals.py"
CONTROLS = "tests/durability/test_controls.py"
POWER = "tests/durability/test_power.py"
CUT = f"{POWER}::test_a_power_cut_at_any_moment_loses_nothing_acknowledged_and_invents_nothing"
FIRST_CUT = f"{POWER}::test_a_power_cut_during_the_very_first_start_costs_nothing_and_is_no_loss"
QUARANTINE = "tests/store/test_quarantine.py"
ACKNOWLEDGED = "tests/durability/test_acknowledged.py"


class Seen(Struct, frozen=True):
    """`red` is the first test that failed, empty if none did."""

    red: str
    seconds: float


MUTATIONS = (
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
        "a settled call is settled once more",
        (("loop.py", "case _, Settled(n=n) if settled.is_open(run, n):", "case _, Settled():"),),
        ("tests/test_settled.py",),
    ),
    Mutation(
        "a cancel that came before its task is forgotten",
        (("mailbox.py", "cancel = early.take(tx, who, request_id, self._clock())", "cancel = None"),),
        (f"{CONTROLS}::test_a_control_at_a_sampled_border_is_as_one_in_some_order",),
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
        "tools that act once do not wait for a release",
        (("gate.py", 'if policy.lost is not None and effect == "once":', "if False:"),),
        ("tests/e2e/test_lost_state.py",),
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
                "            if any(is_kept(event) for event in wanted):\n                self._publish(tx, self.row, run)\n",
                "        if any(is_kept(event) for event in wanted):\n            with self._store.transaction() as tx:\n"
                "                self._publish(tx, self.row, run)\n",
            ),
        ),
        (BORDERS,),
    ),
    Mutation(
        "a message is acknowledged before it is committed",
        (
            (
                "mqtt/connection.py",
                "            if not self._ears.accept(incoming) and message.qos:",
                "            client.ack(message.mid, message.qos)\n            client.loop_write()\n"
                "            if not self._ears.accept(incoming) and message.qos:",
            ),
        ),
        (ACKNOWLEDGED,),
    ),
    Mutation(
        "a message that could not be committed is acknowledged",
        (("mailbox.py", "        except StoreBroken:\n            raise\n", "        except StoreBroken:\n            pass\n"),),
        (ACKNOWLEDGED,),
    ),
    Mutation(
        "a task that is sent again is a new one",
        (
            ("store/layout.py", "crc INTEGER NOT NULL, UNIQUE (kind, who, id))", "crc INTEGER NOT NULL)"),
            ("store/writing.py", " ON CONFLICT (kind, who, id) DO NOTHING", ""),
            ("mailbox.py", "known = self._store.run_of(kind, who, request_id)", "known = None"),
        ),
        ("tests/e2e/test_tasks.py",),
    ),
    Mutation(
        "a task is found by its id without its sender",
        (
            (
                "store/reading.py",
                'return self._one_run(db, "WHERE run.kind = ? AND run.who = ? AND run.id = ?", kind, who, id)',
                'return self._one_run(db, "WHERE run.kind = ? AND run.id = ?", kind, id)',
            ),
        ),
        ("tests/store/test_transactions.py",),
    ),
    Mutation(
        "the check sum of a run is not compared",
        (("store/reading.py", 'whole = crc == crc_of("run", columns)', "whole = True"),),
        (QUARANTINE,),
    ),
    Mutation(
        "the check sum of an event is not compared",
        (("store/reading.py", 'crc == crc_of("event", columns) and', ""),),
        (QUARANTINE,),
    ),
    Mutation(
        "the check sum of a message is not compared",
        (("store/reading.py", 'if crc != crc_of("outbox", columns):', "if False:"),),
        (QUARANTINE,),
    ),
    Mutation(
        "the check sum of a setting is not compared",
        (("store/reading.py", "if not isinstance(value, str) or crc !=", "if not isinstance(value, str) or False and crc !="),),
        (QUARANTINE,),
    ),
    Mutation(
        "a commit is not flushed",
        (("store/layout.py", '("synchronous", "FULL", 2)', '("synchronous", "NORMAL", 1)'),),
        (CUT,),
    ),
    Mutation(
        "the journal is SQLite's default",
        (
            ("store/layout.py", '("journal_mode", "WAL", "wal")', '("journal_mode", "DELETE", "delete")'),
            ("store/layout.py", '("locking_mode", "EXCLUSIVE", "exclusive")', '("locking_mode", "NORMAL", "normal")'),
            ("store/opening.py", 'db.rows("PRAGMA locking_mode = EXCLUSIVE")', "pass"),
        ),
        (CUT,),
    ),
    Mutation(
        "a commit leaves no witness",
        (("store/store.py", "if changes.touched is not None:", "if False:"),),
        (QUARANTINE,),
    ),
    Mutation(
        "a state has no sentinel",
        (("store/opening.py", "if read_sentinel(folder) != epoch:", "if False:"),),
        (QUARANTINE,),
    ),
    Mutation(
        "the sentinel is not flushed before it takes its place",
        (("store/folder.py", '.encode())\n        os.fsync(fd)\n', ".encode())\n"),),
        (FIRST_CUT,),
    ),
    Mutation(
        "the folders above a new state are not flushed",
        (("store/folder.py", "            sync_folder(above)\n", "            pass\n"),),
        (CUT,),
    ),
    Mutation(
        "a start does not say that it has begun",
        (("store/opening.py", '    write_meta(db, "open", "1")\n', ""),),
        (CUT,),
    ),
    Mutation(
        "once tools run in a node that lost its state",
        (("gate.py", 'if policy.lost is not None and effect == "once":', "if False:"),),
        ("tests/e2e/test_lost_state.py",),
    ),
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
        "a request for another state is taken",
        (("intake.py", "if request.epoch is not None and request.epoch != epoch:", "if False:"),),
        ("tests/e2e/test_requests.py",),
    ),
    Mutation(
        "a daemon's first tool host does not wait for all before it",
        (("toolhost/host.py", "fcntl.flock(lock_fd, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)", "pass"),),
        ("tests/toolhost/test_deaths.py",),
    ),
    Mutation(
        "a tool host does not wait for the one before it",
        (("toolhost/host.py", "        set_byte(lock_fd, number, fcntl.F_WRLCK)\n", "        pass\n"),),
        ("tests/toolhost/test_deaths.py",),
    ),
    Mutation(
        "a message is taken off the outbox when it is sent",
        (("mqtt/connection.py", "        if qos:\n            self._in_flight.put(", "        if False:\n            self._in_flight.put("),),
        ("tests/mqtt/test_faults.py",),
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
    Mutation(
        "each refusal of a flood is told",
        (("answers.py", "if not self._fairness.is_told(bucket, time.monotonic()):", "if False:"),),
        ("tests/e2e/test_flood.py",),
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
    Mutation(
        "senders do not take turns",
        (("daemon/queue.py", "key=lambda row: (order.get(row.who, -1), row.row)", "key=lambda row: row.row"),),
        ("tests/daemon/test_queue.py",),
    ),
    Mutation(
        "whoever knows a name is its owner",
        (("signers.py", "if key is None or not is_signed(key, topic, letter.keys):", "if key is None:"),),
        ("tests/daemon/test_signers.py",),
    ),
    Mutation(
        "a signature holds on every topic",
        (("signature.py", '"topic": topic})', '"topic": ""})'),),
        ("tests/test_signature.py",),
    ),
    Mutation(
        "the broker says how old a signed request is",
        (("mailbox.py", "            self._signers.check_age(who, request, what, self._clock())\n            return\n", "            pass\n"),),
        ("tests/e2e/test_signed.py",),
    ),
    Mutation(
        "a signed request may be as old as it likes",
        (("signers.py", "intake.TTL_MS[what]) / 1000, MOST_S)", "intake.TTL_MS[what]) / 1000, 1e12)"),),
        ("tests/daemon/test_signers.py",),
    ),
    Mutation(
        "when a signed request was sent is not written down with it",
        (("mailbox.py", "                self._signers.note(tx, who, sent_at)\n", ""),),
        ("tests/e2e/test_signed.py",),
    ),
    Mutation(
        "a signed control that is put there again acts again",
        (("signers.py", "if any(one.sig == sig for one in fresh):", "if False:"),),
        ("tests/daemon/test_signers.py", "tests/e2e/test_signed.py"),
    ),
    *DEVICES,
)  # fmt: skip


def tried(mutation: Mutation) -> Seen:
    """Run its tests against a copy with the change; raises `ValueError` where it does not fit or nothing can run."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rea-mutation-") as place:
        copy = Path(place)
        for name in ("rea_edge", "tests", "tools", "systemd"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        for change in mutation.changes:
            _make(copy, change)
        red = _first_red(copy, mutation.tests)
    return Seen(red, time.monotonic() - began_s)


def _make(copy: Path, change: Change) -> None:
    if complaint := misfit(copy, change):
        raise ValueError(complaint)
    name, old, new = change
    file = copy / "rea_edge" / name
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def misfit(root: Path, change: Change) -> str:
    """Why the change cannot be made to the code below `root`, empty if it can."""
    name, old, _ = change
    count = (root / "rea_edge" / name).read_text(encoding="utf-8").count(old)
    return "" if count == 1 else f"{name} has {count} times {old!r}: the mutation must follow the code"


def _first_red(copy: Path, tests: Sequence[str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-rf", "--tb=no", "-p", "no:cacheprovider", *tests],
        cwd=copy, env={**os.environ, "PYTHONPATH": str(copy)}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode not in (0, 1) or (done.returncode == 1) != (found is not None):
        raise ValueError(f"the tests could not run: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return found[1] if found else ""


def unnoticed(word: str = "") -> Iterator[str]:
    """The mutations that no test noticed, each with the reason; says on the way what was noticed by which test."""
    for mutation in MUTATIONS:
        if word not in mutation.name:
            continue
        try:
            seen = tried(mutation)
        except ValueError as error:
            yield f"{mutation.name}: {error}"
            continue
        print(f"{'red ' if seen.red else 'GREEN'} {seen.seconds:5.1f} s  {mutation.name}: {seen.red}", flush=True)
        if not seen.red:
            yield f"{mutation.name}: no test turned red"


if __name__ == "__main__":
    sys.exit(1 if list(map(print, unnoticed(*sys.argv[1:2]))) else 0)
