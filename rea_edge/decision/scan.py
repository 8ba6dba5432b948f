"""A reply walked once from mark to mark: which parts are reasoning, code, markup, labels, JSON, and which are prose.

Holds the walk; `dialects` holds the marks, `bodies` and `react` read what they announce, `settle` decides. What has
been read (a JSON value, a parameter's text) is not looked into again, so a tag inside a string is a string. Time is
linear in the text.
"""

import re

from rea_edge.decision import bodies, dialects, fences, react, tagged
from rea_edge.decision.found import Absent, Flaw, Form, Result, Said, Written
from rea_edge.decision.names import Names
from rea_edge.decision.notation import Broken, Value, read_calls, read_value
from rea_edge.decision.reasoning import channel, first_message, message_end, think_block
from rea_edge.decision.reply import Reply
from rea_edge.decision.shapes import LIKE_DECISION, read_calls_value, reading_of

# Objects that cannot be read and look like no decision, such as {maybe} in prose: after so many, braces are prose.
_MOST_FAILURES = 200
# No reply holds more decisions than this; what follows is prose.
MOST_PIECES = 100
_NAME_LENGTH = 100
_OBJECT = r"[{｛](?=[\s\ufeff\u200b\x00\x1b\\]*(?:[\"'“‘`＂\w/}]|$))"
_LIST = re.compile(r"[\[［]\s*[{｛]")
_PY_LIST = re.compile(r"\[\s*(?P<name>[^\W\d][\w.-]*)\s*\(")
_BETWEEN_CALLS = re.compile(r"\s*[;,]\s*(?=[{｛])")
_NEXT_RECIPIENT = re.compile(r"\s*(?:>>>\w|<\|(?:from|recipient|stop)\|>)")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_CLOSERS = re.compile(r"[}\])]+(?=\s*(?:`{3}|<|$))")


def _plain(pattern: re.Pattern[str]) -> str:
    return re.sub(r"\(\?P<\w+>", "(?:", pattern.pattern)


_STOP = re.compile(rf"{_plain(dialects.TURN_END)}|`{{3,}}|~{{3,}}", re.IGNORECASE)  # where JSON has ended, whole or not
_TAG = re.compile(
    rf"(?P<result>{_plain(dialects.RESULT_OPEN)})|(?P<think>{_plain(dialects.THINK)})"
    rf"|(?P<harmony><\|(?:channel|start)\|>)|(?P<turn>{_plain(dialects.TURN_END)})"
    rf"|(?P<section>{_plain(dialects.SECTION_OPEN)})|(?P<unsection>{_plain(dialects.SECTION_CLOSE)})"
    rf"|(?P<wrapper>{_plain(dialects.WRAPPER_OPEN)})|(?P<xml>{_plain(dialects.XML_CALL)})"
    rf"|(?P<stray>{_plain(dialects.STRAY)}|{_plain(dialects.RESULT_CLOSE)})",
    re.IGNORECASE,
)
_MARK = re.compile(
    rf"(?<!>)>>>(?=\w)|{dialects.SPEAKS}|<(?=[|｜/a-zA-Z])|{_OBJECT}|[\[［](?=[\s/A-Za-z_{{｛])|\]<\]minimax|[`~\x1b◁]"
    r"|functools|function call"
)


class Scan(Reply):
    """The walk. `agreed`: a decision object was asked for; `react_asked`: labels were."""

    def __init__(self, text: str, names: Names, *, agreed: bool, react_asked: bool) -> None:
        super().__init__(text, names)
        self.agreed, self.react_asked = agreed, react_asked
        self.last_label = ""
        self.thought_line = (0, 0)
        self._failures = 0
        self._last_close: int | None = None  # where the last closing tag of an XML call ends
        self._walk(first_message(self))

    # --- the walk

    def _walk(self, at: int) -> None:
        labels = dialects.LABELS.finditer(self.text, 0)
        label = next(labels, None)
        mark = _MARK.search(self.text, at)
        while at < self.end and len(self.pieces) < MOST_PIECES:
            if mark is not None and mark.start() < at:
                mark = _MARK.search(self.text, at)
            while label is not None and self.text[label.start() : max(at, label.start())].strip():
                label = next(labels, None)
            if label is not None and label.start() < self.end and (mark is None or label.start() <= mark.start()):
                at = self._label(label)
            elif mark is None or mark.start() >= self.end:
                return
            else:
                at = max(self._mark(mark.start()), mark.start() + 1)

    def _mark(self, at: int) -> int:
        match self.text[at]:
            case "{" | "｛":
                return self._object(at)
            case "`" | "~":
                return fences.code(self, at)
            case "\x1b":
                ansi = _ANSI.match(self.text, at)
                return self.mark(at, ansi.end()) if ansi else at + 1
        tag = _TAG.match(self.text, at)
        if tag is not None:
            return self._tag(tag)
        if self.text[at] == "<":
            return self._tool_tag(at)
        return self._list(at) if self.text[at] in "[［" else at + 1

    def _tag(self, tag: re.Match[str]) -> int:
        match tag.lastgroup:
            case "result":
                return self._result(tag)
            case "think":
                return think_block(self, tag.start())
            case "turn":
                if self.limit() < self.end:
                    return self.mark(*tag.span())
                message = tag[0] == "<|end|>" and not self.quoted(tag.start())
                return message_end(self, tag.start(), tag.end()) if message else self.over(tag.start())
            case "section" | "unsection":
                return self._section(tag)
            case "wrapper" | "xml" | "harmony" if self.quoted(tag.start()):
                return tag.end()  # what follows on other lines is not quoted with it
            case "harmony":
                return channel(self, tag.start())
            case "wrapper":
                return self._wrapper(tag.start())
            case "xml":
                return self._unit(tag.start())
        return self.mark(*tag.span())

    def _section(self, tag: re.Match[str]) -> int:
        """A section around calls; one that holds no call at all was meant to."""
        self.section = tag.lastgroup == "section"
        inside = dialects.SECTION_INSIDE.match(self.text, tag.end())
        if self.section and inside is None:
            flaw = Flaw("unparseable", "The tool call cannot be read: it has no beginning.")
            cut = Flaw("truncated", "The tool call was cut off. Send it whole.")
            return self.add(*tag.span(), "markup", (flaw if self.text[tag.end() :].strip() else cut,))
        return self.mark(*tag.span())

    # --- results that the model wrote itself

    def _result(self, tag: re.Match[str]) -> int:
        closing = dialects.RESULT_CLOSE.search(self.text, tag.end(), self.limit())
        end = closing.end() if closing else self.limit()
        return self.add(tag.start(), end, "result", (Result(),))

    # --- markup

    def _wrapper(self, at: int) -> int:
        opening = dialects.WRAPPER_OPEN.match(self.text, at)
        assert opening is not None and opening.lastgroup is not None
        number = int(opening.lastgroup[1:])
        wrapper = dialects.WRAPPERS[number]
        body = bodies.read_body(self.text, opening.end(), dialects.WRAPPER_CLOSE[number], self.names, many=wrapper.many)
        if body.found:
            unlisted = wrapper.many and not body.closed and self.text[body.end - 1] != "]"
            self.section = self.section or unlisted or not body.clean
            listed = wrapper.many and body.closed or self.text[body.end - 1] == "]"
            return self.add(at, body.end, "markup", body.found, more=not listed)
        if body.closed:
            return self.add(at, body.end, "markup", (Flaw("unparseable", "The tool call is empty."),))
        closing = self.closing(number, opening.end())
        if not body.clean and closing is None and not self.line_start(at):
            self.section = True  # named in a sentence; if the reply was cut, it was the start of a call
            return body.end
        if closing is None and body.clean:
            return self.add(at, body.end, "markup", (Flaw("truncated", "The tool call was cut off. Send it whole."),))
        flaw = Flaw("unparseable", "The tool call cannot be read: it needs a tool's name and an arguments object.")
        return self.add(at, closing.end() if closing else opening.end(), "markup", (flaw,))

    def _unit(self, at: int) -> int:
        unit = bodies.read_unit(self.text, at, dialects.SECTION_CLOSE, self.names)
        if unit is None:
            return at + 1
        if any(isinstance(found, Flaw) for found in unit.found) and self._mention(at, unit.end):
            self.section = True
            return at + 1
        return self.add(at, unit.end, "markup", unit.found, more=True)

    def _tool_tag(self, at: int) -> int:
        """A tag with a tool's name at the start of a line. It is no markup of any dialect: it counts like bare JSON."""
        if not self.line_start(at):
            return at + 1
        unit = tagged.tool_tag(self.text, at, self.limit(), self.names)
        return self.add(at, unit.end, "bare", unit.found) if unit else at + 1

    def _mention(self, at: int, end: int) -> bool:
        """A tag named in a sentence, such as `<function=...>`: something before it on its line, no closing tag."""
        if self._last_close is None:
            self._last_close = max((found.end() for found in dialects.XML_CALL_CLOSE.finditer(self.text)), default=0)
        return not self.line_start(at) and self._last_close < end

    # --- JSON

    def _object(self, at: int) -> int:
        if self._failures > _MOST_FAILURES:
            return at + 1
        read = read_value(self.text, at, _STOP)
        if isinstance(read, Broken):
            return self._broken(at, read)
        end = self._past_closers(read.end)
        named = self._name_before(at)
        if named is not None and reading_of(read.value, self.names) is None:
            form: Form = "markup" if _NEXT_RECIPIENT.match(self.text, end) else "bare"
            return self.add(named[1], end, form, (Written(named[0], read.value),), more=True)
        reading = reading_of(read.value, self.names, agreed=self.agreed)
        if reading is None:
            return end
        found, remarks = reading.found, reading.remarks
        while reading.form == "bare" and (more := _BETWEEN_CALLS.match(self.text, end)) is not None:
            again = read_value(self.text, more.end())
            following = reading_of(again.value, self.names) if isinstance(again, Value) else None
            if not isinstance(again, Value) or following is None or following.form != "bare":
                flaw = Flaw(
                    "truncated" if isinstance(again, Broken) and again.ended else "unparseable",
                    "The call after the first one cannot be read.",
                )
                return self.add(at, max(again.at if isinstance(again, Broken) else again.end, end), "bare", (flaw,))
            found, end = (*found, *following.found), again.end
        if reading.form == "bare" and re.compile(r"\s*[;,]\s*$").match(self.text, end):
            self.section = True  # a separator at the very end: more calls were to come
        return self.add(at, end, reading.form, found, remarks=remarks, more=reading.form == "bare")

    def _name_before(self, at: int) -> tuple[str, int] | None:
        """Nothing but a tool's name before the object, as GLM 4 writes a call; or what names it on the object's line."""
        before = self.text[self.start : at].strip() if at - self.start < _NAME_LENGTH else ""
        name = before.removesuffix("<|content|>").rstrip(":：\n ")
        if name and "\n" not in name and self.names.find(name) is not None:
            return name, self.start
        line = max(self.text.rfind("\n", max(at - _NAME_LENGTH, 0), at) + 1, self.start)
        header = dialects.HARMONY_CALL.search(self.text[line:at])
        if header:
            return header["name"], line + header.start()
        kind, _, name = self.text[line:at].strip().partition(":")
        return (name, line) if kind == "call" and self.names.find(name) is not None else None

    def _past_closers(self, end: int) -> int:
        extra = _CLOSERS.match(self.text, end)
        return extra.end() if extra else end

    def _broken(self, at: int, read: Broken) -> int:
        if self.quoted(at):
            line = self.text.find("\n", at)
            return line if line >= 0 else len(self.text)
        end = read.at if _STOP.match(self.text, read.at) else self.limit()
        if read.partial is not None:
            reading = reading_of(read.partial, self.names, agreed=self.agreed)
            if reading is not None:
                self.section = True
                return self.add(at, max(end, at + 1), reading.form, reading.found, remarks=reading.remarks)
        if LIKE_DECISION.match(self.text, at) or (self.agreed and read.ended and self.line_start(at)):
            near = f" near `{read.key}`" if read.key else ""
            flaw = (
                Flaw("truncated", "The JSON was cut off. Send it whole, or shorter.")
                if read.ended
                else Flaw(
                    "unparseable", f"The JSON cannot be read{near}: every text in double quotes, quotes inside escaped."
                )
            )
            return self.add(at, max(end if read.ended else read.at, at + 1), "decision", (flaw,))
        self._failures += 1 + 200 * (read.at - at) // (4 * len(self.text))
        self.broken_object = self.broken_object or read
        return at + 1

    def _list(self, at: int) -> int:
        if _LIST.match(self.text, at) and self._failures <= _MOST_FAILURES:
            read = read_value(self.text, at)
            if isinstance(read, Broken):
                return self._broken(at, read)
            reading = reading_of(read.value, self.names, agreed=False)
            if reading is None:
                return read.end
            return self.add(at, self._past_closers(read.end), reading.form, reading.found, remarks=reading.remarks)
        call = _PY_LIST.match(self.text, at)
        if call is None or self._failures > _MOST_FAILURES:
            return at + 1
        read = read_calls(self.text, at)
        if isinstance(read, Value):
            return self.add(at, read.end, "bare", read_calls_value(read.value))
        if self.line_start(at) and self.names.find(call["name"]) is not None:
            flaw = tagged.unclear(call["name"], read)
            return self.add(at, max(read.at, at + 1), "bare", (flaw,))
        self._failures += 1
        return at + 1

    # --- labels

    def _label(self, label: re.Match[str]) -> int:
        kind, at = str(label.lastgroup), label.end()
        previous, self.last_label = self.last_label, kind
        match kind:
            case "thought":
                return self._thought(label)
            case "action":
                return self._action(label, previous)
            case "final":
                return self._final(label, "Final Answer")
            case "answer" if self.react_asked or previous == "thought":
                return self._final(label, "Answer")
            case "result":
                end = self.turn_end(at)
                following = dialects.LABELS.search(self.text, at, end)
                return self.add(label.start(), following.start() if following else end, "result", (Result(),))
            case "question" if any(piece.form == "react" for piece in self.pieces):
                return self.add(label.start(), at, "result", (Result(),))
        return at

    def _thought(self, label: re.Match[str]) -> int:
        line = self.text.find("\n", label.end())
        self.thought_line = (label.end(), line if line >= 0 else len(self.text))
        following = dialects.LABELS.search(self.text, label.end(), self.end)
        self.thoughts.append(self.text[label.end() : following.start() if following else self.end].strip())
        return self.mark(*label.span())

    def _action(self, label: re.Match[str], previous: str) -> int:
        if self.quoted(label.start()):
            return label.end()
        action = react.read_action(self.text, label.end(), self.turn_end(label.end()), self.names)
        if self._only_words(action):
            return label.end()
        if not action.found:
            return self.mark(label.start(), action.end)
        if previous == "result":
            flaw = Flaw(
                "unparseable", "An action inside an observation is not run: write Thought:, Action: and Action Input:."
            )
            return self.add(label.start(), action.end, "react", (flaw,))
        return self.add(label.start(), action.end, "react", action.found)

    def _only_words(self, action: react.Action) -> bool:
        """Where ReAct was not asked, a line `Action: hold the button` without any input is prose."""
        match action.found:
            case (Written(name=str(name), args=Absent()),) if not self.react_asked and not self.thought_line[1]:
                return self.names.find(name) is None
        return False

    def _final(self, label: re.Match[str], name: str) -> int:
        answer, end = react.read_final(self.text, label.end(), self.turn_end(label.end()), self.names)
        return self.add(label.start(), end, "react", (Said(answer.strip(), name, complete=end < len(self.text)),))
