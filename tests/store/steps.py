"""Runs of many steps on a real store, with an endpoint and a tool that are functions: what the journal takes.

As a program it makes a run in a folder, for whoever watches the disk under it: FOLDER EFFECT STEPS.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Raw

from rea_edge.cancel import Cancel
from rea_edge.journal import Held, Journal, encode
from rea_edge.records import (
    Act,
    Answer,
    AskedApproval,
    Begun,
    Call,
    Criterion,
    EffectClass,
    Job,
    Limits,
    Moved,
    Offer,
    Ok,
    Protocol,
    Recall,
    Result,
    Run,
    Switched,
    Verify,
)
from rea_edge.report import Report
from rea_edge.runner import Runner
from rea_edge.store import Store
from rea_edge.topics import Topics

TOPICS = Topics("rea/v1", "n1")
LIMITS = Limits(steps=100_000, tokens=100_000_000, task_s=100_000.0)


class Steps:
    """`steps` times the same call of a tool of this effect, each with another result of `size` bytes, then a finish."""

    def __init__(self, steps: int, effect: EffectClass, size: int) -> None:
        self._left = steps
        self._effect: EffectClass = effect
        self._size = size

    def begin(self, job: Job, cancel: Cancel) -> Begun:
        return Begun(
            endpoint="scripted",
            model="any",
            protocol="native",
            offers=(Offer(name="look", effect=self._effect, parameters={"type": "object"}),),
            opening=(Raw(msgspec.json.encode({"role": "user", "content": job.goal})),),
            ask="",
            context_tokens=8192,
            min_observations=0,
            answer_tokens=100,
        )

    def switch(self, job: Job, begun: Begun, protocol: Protocol) -> Switched:
        raise AssertionError("the answers can be read")

    def moved(self, run: Run, seconds: float, cancel: Cancel) -> Moved | None:
        return None

    def ask(self, run: Run, body: bytes, seconds: float, cancel: Cancel) -> Answer:
        self._left -= 1
        message: dict[str, object] = {"role": "assistant", "content": "All is done."}
        if self._left >= 0:
            function = {"name": "look", "arguments": msgspec.json.encode({"step": self._left}).decode()}
            message = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
        return Answer(message=Raw(msgspec.json.encode(message)), finish_reason="stop")

    def refusal(self, run: Run, act: Act, cancel: Cancel) -> str | None:
        return None

    def approval(self, run: Run, act: Act) -> AskedApproval | str | None:
        return None

    def effect(self, call: Call, recorded: EffectClass) -> EffectClass:
        return recorded

    def cost(self, call: Call) -> float:
        return 0.0

    def verify(self, call: Call) -> Criterion | None:
        return None

    def recalls(self, call: Call) -> bool:
        return False

    def recall(self, run: Run, asked: Recall) -> Result | None:
        raise AssertionError("nothing can be asked for")

    def probe(self, run: Run, asked: Verify) -> Result:
        raise AssertionError("nothing is in doubt")

    def act(
        self, run: Run, call: Call, request_id: str, seconds: float, cancel: Cancel, starting: Callable[[], bool]
    ) -> Result:
        assert starting()
        return Ok(data=Raw(msgspec.json.encode(f"{request_id} {'x' * self._size}")))


def new_journal(store: Store) -> Journal:
    return Journal(store, Report(TOPICS, lambda: None, 0.0).publish, lambda: None)


def accepted(store: Store, journal: Journal, task_id: str) -> Held:
    with store.transaction() as tx:
        row, _ = tx.add_run("task", "me", task_id, "sha256:0", encode(Job(goal="goal", limits=LIMITS)), None)
    return journal.load(row)


def finish(held: Held, effects: Steps) -> None:
    runner = Runner(effects, lambda row, news: None, lambda seconds: None)
    runner.finish(held, Cancel(), lambda: False)


def main(folder: Path, effect: EffectClass, steps: int) -> None:
    """The marks lie between the first steps, in which files get their size, and the last."""
    store = Store.open(folder)
    journal = new_journal(store)
    finish(accepted(store, journal, "t1"), Steps(steps, effect, 200))
    store.sent(message.row for message in store.pull())
    held = accepted(store, journal, "t2")
    os.write(1, b"begin\n")
    sys.stdin.readline()
    finish(held, Steps(steps, effect, 200))
    os.write(1, b"end\n")
    sys.stdin.readline()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))  # type: ignore[arg-type]  # one of the effect classes
