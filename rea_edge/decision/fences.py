"""Code in a reply: spans in code marks, and fences, with the Python calls that some dialects write in them.

Holds where code begins and ends; what is said in it is read by `bodies`, whether it counts is decided in `settle`.
"""

import re

from rea_edge.decision import bodies
from rea_edge.decision.found import Flaw, Result, Written
from rea_edge.decision.reply import Fence, Reply

_CODE_LENGTH = 4000
_FENCE = re.compile(r"(?P<run>`{3,}|~{3,})(?P<info>[\w.+#-]*)")
_CODE_INFO = frozenset({"tool_code", "python", "py", "tool_call", "tool_calls"})


def code(reply: Reply, at: int) -> int:
    """Code marks or a fence that begin at `at`; gives where to go on."""
    fence = _FENCE.match(reply.text, at)
    if fence is not None and not reply.quoted(at):
        return _fence_mark(reply, fence)
    if reply.text[at] == "~" or reply.limit() < reply.end:
        return at + 1  # in a fence that is closed, a mark means nothing
    run = "``" if reply.text.startswith("``", at) else "`"
    limit = reply.text.find("\n\n", at, at + _CODE_LENGTH)
    closing = reply.text.find(run, at + len(run), limit if limit >= 0 else at + _CODE_LENGTH)
    return closing + len(run) if closing >= 0 else at + len(run)


def _fence_mark(reply: Reply, mark: re.Match[str]) -> int:
    run, info = mark["run"], mark["info"].lower()
    if reply.fence >= 0:
        fence = reply.fences[reply.fence]
        if run[0] == fence.run[0] and len(run) >= len(fence.run) and not info:
            fence.end = mark.end()
            reply.fence = -1
            return reply.mark(*mark.span())
        return mark.end()
    reply.fence = len(reply.fences)
    closing = re.compile(rf"^[ \t>]*{re.escape(run)}{run[0]}*[ \t]*\r?$", re.MULTILINE).search(reply.text, mark.end())
    if info.startswith("tool_output"):
        reply.fence = -1
        return reply.add(mark.start(), closing.end() if closing else reply.end, "result", (Result(),))
    reply.fences.append(Fence(run, info, mark.start(), closing.start() if closing else reply.end))
    reply.noise.append(mark.span())
    return _python(reply, mark.end(), info) if info in _CODE_INFO else mark.end()


def _python(reply: Reply, at: int, info: str) -> int:
    fence = reply.fences[reply.fence]
    close = re.compile(re.escape(fence.run))
    body = bodies.read_body(reply.text, at, close, reply.names, many=True, fenced=True)
    dialect = info.startswith("tool")
    known = all(isinstance(f, Written) and isinstance(f.name, str) and reply.names.find(f.name) for f in body.found)
    if not body.found or not (dialect or known):
        return _foreign(reply, at, close) if dialect else at
    if not body.closed and dialect:
        reply.section = True
    end = body.end - len(fence.run) if body.closed else body.end
    return reply.add(at, end, "markup" if dialect else "bare", body.found)


def _foreign(reply: Reply, at: int, close: re.Pattern[str]) -> int:
    closing = close.search(reply.text, at)
    end = closing.start() if closing else len(reply.text)
    flaw = Flaw("unparseable", "The code is no plain call: write one tool's name with plain values.")
    return reply.add(at, end, "markup", (flaw,)) if reply.text[at:end].strip() else end
