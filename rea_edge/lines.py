"""A run in protocol command: what a line's result makes of it. Pure.

The guard of a line is compared here, and the answer is written from the result. Holds no table: see `loop`.
"""

import msgspec

from rea_edge import condition, outcome, telling
from rea_edge.changes import as_known, changed, closed, failed, opened, told_result
from rea_edge.records import Fault, Finish, OpenCall, Returned, Run


def is_one_line(run: Run) -> bool:
    """Whether the run ends with its first line, whatever comes of it."""
    return run.begun is not None and run.begun.protocol == "command" and run.begun.commands == 1


def returned(run: Run, head: OpenCall, event: Returned) -> Run:
    """The run after a call of its line has ended; `head` is not open any more."""
    if isinstance(event.result, Fault):
        said = f"{head.call.name} failed: {event.result.message}"
        if is_one_line(run):
            return closed(run, failed(run, "outcome_unknown" if event.unknown else "tool_failed", said))
        return told_result(changed(run, guard=None), head, as_known(run, said))
    value: object = msgspec.json.decode(event.result.data)
    if run.guard is None:
        return _said(changed(run, because=""), head, run.because + telling.answer_from(head.call, value))
    guard, run = run.guard, changed(run, guard=None)
    verdict = condition.holds(value, guard.path, guard.op, guard.value)
    if verdict is True:
        return opened(
            changed(run, because=telling.answer_from_guard(guard, value, acted="")), (guard.then,), tainted=head.tainted
        )
    sentence = telling.answer_from_guard(guard, value, acted=None)
    if verdict is False:
        return _said(changed(run, spared=(*run.spared, guard.then)), head, sentence)
    if is_one_line(run):
        return closed(run, outcome.gave_up(run, sentence))
    return told_result(run, head, as_known(run, sentence))


def _said(run: Run, head: OpenCall, sentence: str) -> Run:
    """One line ran: the last one allowed ends the run, any other is told to the model."""
    run = changed(run, answers=(*run.answers, sentence))
    if run.begun is None or len(run.answers) >= run.begun.commands:
        return closed(run, outcome.finished(run, Finish(answer="")))
    return told_result(run, head, as_known(run, sentence))
