"""Reasoning taken out of a reply: think blocks of all spellings, and the channels of gpt-oss. It never acts.

Holds what is dropped and where the walk goes on; a gpt-oss call is the one thing read here, since its header names it.
"""

import re

from rea_edge.decision import dialects
from rea_edge.decision.found import Absent, Said, Unread, Written
from rea_edge.decision.notation import Broken, read_value, skip
from rea_edge.decision.reply import Reply, closes

_OTHER_SPEAKER = re.compile(r"\s*(?:user|system|developer|functions|tool)", re.IGNORECASE)
_LOOKS_ON = re.compile(r"[<{\[`]")


def think_block(reply: Reply, at: int) -> int:
    """Take a think block out; what follows a closed one counts, an unclosed one hides the rest."""
    first = reply.next_think(at)
    assert first is not None
    if closes(first) and reply.limit() < reply.end:
        return reply.mark(*first.span())  # shown in a fence
    if closes(first) and reply.gone and not reply.pieces and not reply.text[first.end() : reply.end].strip():
        reply.end = first.start()  # once more, after a block that is closed already
        return reply.end
    if closes(first):  # its opening tag was part of the prompt
        reply.drop_before(first.end())
        return first.end()
    last = _block_end(reply, first)
    if last is not None:
        reply.think(reply.text[first.end() : last.start()])
        reply.gone.append((first.start(), last.end()))
        if reply.fence < 0 and reply.text[last.end() : reply.end].strip():
            reply.begin(last.end())
        return last.end()
    rest = reply.text[first.end() :]
    if not reply.line_start(first.start()) and not _LOOKS_ON.search(rest) and not dialects.LABELS.search(rest):
        return first.end()  # a tag named in a sentence
    reply.think(rest)
    reply.end = first.start()
    return reply.end


def _block_end(reply: Reply, first: re.Match[str]) -> re.Match[str] | None:
    depth, mark = 1, reply.next_think(first.end())
    while mark is not None:
        if closes(mark):
            depth -= 1
        elif reply.line_start(mark.start()):
            depth += 1
        if depth == 0:
            return mark
        mark = reply.next_think(mark.end())
    return None


def first_message(reply: Reply) -> int:
    """gpt-oss: the first message may lack its opening tokens, which were part of the prompt. Gives where to go on."""
    if "<|message|>" not in reply.text:
        bare = dialects.HARMONY_BARE.match(reply.text, reply.start)
        if bare:
            reply.drop_before(bare.end())
        return reply.start
    first = dialects.HARMONY_FIRST.match(reply.text, reply.start)
    return _message(reply, reply.start, first) if first else reply.start


def channel(reply: Reply, at: int) -> int:
    """gpt-oss: one message that begins at `at`; final text stays to be read, the rest is taken out."""
    message = dialects.HARMONY.match(reply.text, at)
    return _message(reply, at, message) if message else reply.mark(at, reply.text.index(">", at) + 1)


def message_end(reply: Reply, at: int, end: int) -> int:
    """`<|end|>`: it ends a turn, or (gpt-oss) a message whose header was in the prompt: a thought."""
    following = dialects.HARMONY.match(reply.text, skip(reply.text, end))
    if following is None or _OTHER_SPEAKER.match(following["before"] or ""):
        return reply.over(at)
    text = reply.text[reply.start : at]
    to = dialects.HARMONY_TO.search(following[0])
    if reply.answer_at >= 0 and to is not None and to[1] not in ("self", "user"):
        reply.add(reply.start, at, "markup", (Said(text, "final"),))  # an answer, and a call after it
        reply.mark(at, end)
    else:
        reply.think(text)
        reply.pieces = [piece for piece in reply.pieces if piece.start < reply.start]
        reply.gone.append((reply.start, end))
    reply.begin(end)
    return end


def _message(reply: Reply, at: int, message: re.Match[str]) -> int:
    first = message.groupdict().get("first") or ""
    to = dialects.HARMONY_TO.search(f"{message['before'] or ''} {first} {message['header']}")
    name = to[1] if to is not None and to[1] in ("user", "self") else (message["header"].split() or [""])[0].lower()
    body = message.end()
    if name.startswith(("final", "user")) and not _told_before_acting(reply, body):
        reply.mark(at, body)
        reply.begin(body)
        reply.answer_at = body
        return body
    closing = dialects.HARMONY_END.search(reply.text, body)
    end = closing.start() if closing else len(reply.text)
    if to is not None and name not in ("self", "user"):
        return reply.mark(at, body) if reply.text[body:end].lstrip().startswith("<") else _call(reply, at, to[1], body)
    if name.startswith(("analysis", "self", "final", "user")):
        reply.think(reply.text[body:end])
    elif not reply.text[body:end].lstrip().startswith("{") and _next(reply, end, look=True) == end:
        reply.begin(body)  # a comment to the user, and nothing after it
        return body
    else:
        reply.preamble = True
    reply.gone.append((at, end))
    reply.begin(end)
    return _next(reply, end)


def _told_before_acting(reply: Reply, body: int) -> bool:
    """Whether a message to the user ends the message and not the turn, and a call follows: an announcement then."""
    closing = dialects.HARMONY_END.search(reply.text, body)
    following = dialects.HARMONY.match(reply.text, closing.end()) if closing and closing[0] == "<|eom|>" else None
    return following is not None and "to=" in following[0] and "to=user" not in following[0]


def _call(reply: Reply, at: int, to: str, body: int) -> int:
    read = read_value(reply.text, body)
    if isinstance(read, Broken):
        closing = dialects.HARMONY_END.search(reply.text, body)
        end = closing.start() if closing else len(reply.text)
        empty = closing is not None and not reply.text[body:end].strip()
        call = Written(to, Absent() if empty else Unread(read.ended, read.key))
    else:
        call, end = Written(to, read.value), read.end
    reply.add(at, end, "markup", (call,), more=True)
    return _next(reply, skip(reply.text, end))


def _next(reply: Reply, at: int, *, look: bool = False) -> int:
    """After a message: go on if the assistant speaks on, else the turn is over. `look`: only tell where it goes on."""
    closing = dialects.HARMONY_END.match(reply.text, at)
    if closing is None or closing[0] in ("<|start|>", "<|channel|>") or reply.limit() < reply.end:
        return at
    message = dialects.HARMONY.match(reply.text, skip(reply.text, closing.end()))
    speaks = message is not None and not _OTHER_SPEAKER.match(message["before"] or "")
    # After a call only another call belongs to the same turn: an answer would be told before the result came.
    if message is not None and speaks and (closing[0] in ("<|end|>", "<|eom|>") or "to=" in message[0]):
        return closing.end() if look else reply.mark(*closing.span())
    if look:
        return at
    reply.section = reply.section or "<|start|>" in reply.text[closing.end() : closing.end() + 12]
    return reply.over(at)
