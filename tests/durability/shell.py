"""A whole run on a real store with scripted effects, in a process that kills itself at the border it is told.

    python -m tests.durability.shell FOLDER BORDER [FORBIDDEN]

A border is each entry and each return of an effect and of a transaction; the shell counts them as they come, so a
new effect or commit makes more borders by itself. Effects leave a line in a ledger outside the store, fsynced.
BORDER 0 kills nowhere. The gate refuses the tool FORBIDDEN. Prints the number of borders, those around an act, and the
run as it ended.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Raw

from rea_edge.allowance import Allowance
from rea_edge.cancel import Cancel
from rea_edge.daemon.life import Life
from rea_edge.daemon.spending import Spending
from rea_edge.errors import EndpointFailed
from rea_edge.journal import Journal, encode
from rea_edge.records import (
    Act,
    Answer,
    AskedApproval,
    Begun,
    Call,
    Criterion,
    EffectClass,
    Fault,
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
from rea_edge.store import Store, Transaction
from rea_edge.topics import Topics

TOOLS: dict[str, EffectClass] = {
    "look": "read",
    "turn": "idempotent",
    "ring": "once",
    "bolt": "once",
    "price": "read",
    "far": "once",
}
COSTS = {"price": 0.1, "bolt": 0.2}
BOLTED = Criterion(tool="look", args={}, path="bolted", op="==", value=True)  # how a call of bolt is verified
REFUSED_AFTER = 1  # answers; then the first endpoint refuses, and the run goes on at the second
GARBLED_AFTER = 2  # from then on none in protocol native can be read, and the run goes on in json
SCRIPT = (["look"], ["turn", "ring"], ["look", "ring", "bolt", "far", "price"], "All is done.")
LIMITS = Limits(steps=20)  # each kill during a question costs one


class Borders:
    def __init__(self, kill_at: int) -> None:
        self._kill_at = kill_at
        self.count = 0
        self.acts: list[int] = []  # right before a call takes effect, and right behind that

    def cross(self) -> None:
        self.count += 1
        if self.count == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


class BorderStore(Store):
    borders: Borders

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        self.borders.cross()
        with super().transaction() as tx:
            yield tx
        self.borders.cross()


class Scripted:
    """Effects that do what the script says: which answer is due is told by the assistant's turns in the request."""

    def __init__(self, ledger: Path, borders: Borders, forbidden: str = "") -> None:
        self._ledger = ledger
        self._forbidden = forbidden
        self._borders = borders
        self._refused = False

    def begin(self, job: Job, cancel: Cancel) -> Begun:
        self._borders.cross()
        return Begun(
            endpoint="scripted",
            model="any",
            protocol="native",
            offers=tuple(
                Offer(name=name, effect=effect, parameters={"type": "object"}) for name, effect in TOOLS.items()
            ),
            opening=(Raw(msgspec.json.encode({"role": "user", "content": job.goal})),),
            ask="",
            context_tokens=8192,
            min_observations=1,
            answer_tokens=100,
            next_protocol="json",
        )

    def switch(self, job: Job, begun: Begun, protocol: Protocol) -> Switched:
        self._borders.cross()
        opening = Raw(msgspec.json.encode({"role": "user", "content": f"{job.goal} in {protocol}"}))
        return Switched(protocol=protocol, opening=(opening,), ask="", answer_tokens=100)

    def moved(self, run: Run, seconds: float, cancel: Cancel) -> Moved | None:
        assert run.begun is not None
        if not self._refused or run.begun.endpoint != "scripted":
            return None
        self._borders.cross()
        return Moved(endpoint="second", model="any", ask="", context_tokens=8192, why="it refuses")

    def ask(self, run: Run, body: bytes, seconds: float, cancel: Cancel) -> Answer:
        self._borders.cross()
        self._note(f"asked {body.hex()}")
        messages = msgspec.json.decode(body)["messages"]
        said = sum(message["role"] == "assistant" for message in messages)
        assert run.begun is not None
        garbled = run.begun.protocol == "native" and said >= GARBLED_AFTER
        due = ["no_such_tool"] if garbled else SCRIPT[said]
        self._borders.cross()
        if said == REFUSED_AFTER and run.begun.endpoint == "scripted":
            self._refused = True
            raise EndpointFailed("not_found", "no such model any more", retryable=True)
        if isinstance(due, str):
            message = {
                "role": "assistant",
                "content": msgspec.json.encode({"action": "finish", "terminal_answer": due}).decode(),
            }
        else:
            calls = [{"function": {"name": name, "arguments": "{}"}, "type": "function", "id": name} for name in due]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
        return Answer(
            message=Raw(msgspec.json.encode(message)), finish_reason="stop", prompt_tokens=40, completion_tokens=5
        )

    def refusal(self, run: Run, act: Act, cancel: Cancel) -> str | None:
        if act.call.name == self._forbidden:
            return "it is forbidden since the last start"
        return None

    def approval(self, run: Run, act: Act) -> AskedApproval | str | None:
        return None

    def effect(self, call: Call, recorded: EffectClass) -> EffectClass:
        return recorded

    def cost(self, call: Call) -> float:
        return COSTS.get(call.name, 0.0)

    def verify(self, call: Call) -> Criterion | None:
        return BOLTED if call.name == "bolt" else None

    def recalls(self, call: Call) -> bool:
        return call.name == "far"

    def recall(self, run: Run, asked: Recall) -> Result | None:
        self._borders.cross()
        known = f"ran far {run.id}-{asked.n}\n" in self._ledger.read_text()
        self._borders.cross()
        return Ok(data=Raw(b'{"on":true}')) if known else None

    def probe(self, run: Run, asked: Verify) -> Result:
        self._borders.cross()
        bolted = f"ran bolt {run.id}-{asked.n}\n" in self._ledger.read_text()
        self._borders.cross()
        return Ok(data=Raw(msgspec.json.encode({"bolted": bolted})))

    def act(
        self, run: Run, call: Call, request_id: str, seconds: float, cancel: Cancel, starting: Callable[[], bool]
    ) -> Result:
        self._borders.cross()
        if cancel.cancelled or not starting():
            return Fault(fault="cancelled", message="it was cancelled before it started")
        self._borders.acts.append(self._borders.count + 1)
        self._borders.cross()
        self._note(f"ran {call.name} {request_id}")
        self._borders.acts.append(self._borders.count + 1)
        self._borders.cross()
        return Ok(data=Raw(b'{"on":true}'))

    def _note(self, line: str) -> None:
        with self._ledger.open("a") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())


def main(folder: Path, kill_at: int, forbidden: str = "") -> None:
    borders = Borders(kill_at)
    store = BorderStore.open(folder / "state")
    store.borders = borders
    books = Spending(Allowance(day_tokens=10**9, day_cost=1e9), store, Life(store, lambda: None))
    journal = Journal(store, Report(Topics("rea/v1", "n"), lambda: None, 0.0).publish, lambda: None, books)
    with store.transaction() as tx:
        row, _ = tx.add_run("task", "me", "t1", "sha256:x", encode(Job(goal="do it", limits=LIMITS)), None)
    held = journal.load(row)
    runner = Runner(Scripted(folder / "ledger", borders, forbidden), lambda row, news: None, lambda seconds: None)
    if held.run.phase != "ended":
        runner.resume(held, clean=False)
        runner.finish(held, Cancel(), lambda: False)
    print(msgspec.json.encode({"borders": borders.count, "acts": borders.acts, "run": held.run}).decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
