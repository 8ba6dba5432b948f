"""One assistant message put together from the pieces a server sends. Shapes only: no sockets, no time.

A stream's deltas and a plain answer's message take the same path, so that both give the same bytes. Servers differ:
calls come with or without index, whole or in pieces, with ids repeated, empty or missing; arguments as text or object.
"""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Raw

from rea_edge.endpoint.faults import failed, said_error
from rea_edge.endpoint.surrogates import joined, without_halves
from rea_edge.records import Answer

PIECE_COST_BYTES: Final = 64  # what a call costs beyond its text, so that empty calls count against the cap too
_COUNT_MOST: Final = 10_000_000  # tokens; several times the longest context there is


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Raw = Raw(b"")


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Part(msgspec.Struct):
    text: str | None = None


class _Delta(msgspec.Struct):
    content: str | list[_Part | str] | None = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None
    reasoning_content: str | None = None
    reasoning: Raw = Raw(b"")
    refusal: str | None = None


class _Choice(msgspec.Struct):
    index: int | None = None
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Timings(msgspec.Struct):
    """llama.cpp's own count: the prompt tokens it read now, those it had cached, those it wrote."""

    prompt_n: int | None = None
    cache_n: int | None = None
    predicted_n: int | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    timings: _Timings | None = None


class _Slot:
    """One call as it grows."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []

    @property
    def text(self) -> str:
        return joined("".join(self.arguments))

    def take(self, call_id: str, function: _Function) -> int:
        piece = _text_of(function.arguments)
        name = function.name or ""
        self.id = self.id or call_id
        # Some servers repeat the whole name with every piece; others send the name itself in pieces.
        if name != self.name and not self.arguments:
            self.name += name
        if piece:
            self.arguments.append(piece)
        return len(piece) + len(name) + len(call_id)

    def as_function(self) -> dict[str, str]:
        return {"name": self.name, "arguments": self.text}


class Assembly:
    """Takes chunks (`stream=True`) or one whole answer, gives the `Answer`."""

    def __init__(self, cap_bytes: int) -> None:
        self._room = cap_bytes
        self._cap_bytes = cap_bytes
        self._texts: dict[str, list[str]] = {}  # content, reasoning_content, refusal
        self._slots: list[_Slot] = []
        self._slot_at: dict[int, _Slot] = {}
        self._legacy: _Slot | None = None
        self._usage = _Usage()
        self._timings = _Timings()
        self._begun = False
        self._objects = False
        self.finish_reason: str | None = None
        self.done = False  # the stream said [DONE]

    @property
    def finished(self) -> bool:
        """Nothing that follows can change the message."""
        return self.done or self.finish_reason is not None

    def take(self, body: bytes, *, stream: bool) -> None:
        """Add one chunk or answer. Raises `not_json`, `wrong_shape`, `error_in_200`, `context_overflow`, `body_cap`."""
        body = without_halves(body)
        error = said_error(body)
        if error is not None:
            raise error
        chunk = _decoded(body)
        self._usage = chunk.usage or self._usage
        self._timings = chunk.timings or self._timings
        if chunk.choices is None and not stream:
            raise failed("wrong_shape", "the answer has no choices")
        for choice in chunk.choices or ():
            if choice.index in (None, 0):
                self._take_choice(choice, whole=not stream)

    def answer(self) -> Answer:
        """What has come. Raises `empty_choices` if no choice ever came."""
        if not self._begun:
            raise failed("empty_choices", "the answer holds no choice")
        timings = self._timings
        read = None if timings.prompt_n is None else timings.prompt_n + max(0, timings.cache_n or 0)
        return Answer(
            message=Raw(msgspec.json.encode(self._message())),
            finish_reason=self.finish_reason,
            prompt_tokens=_count(self._usage.prompt_tokens, read),
            completion_tokens=_count(self._usage.completion_tokens, timings.predicted_n),
            objects=self._objects,
        )

    def _take_choice(self, choice: _Choice, *, whole: bool) -> None:
        self.finish_reason = choice.finish_reason or self.finish_reason
        if choice.delta is not None:
            self._take_delta(choice.delta, whole=False)
        elif choice.message is not None and not self._begun:
            self._take_delta(choice.message, whole=True)
        elif choice.message is None and (whole or choice.finish_reason is None):
            raise failed("wrong_shape", "a choice has neither delta nor message")
        self._begun = True

    def _take_delta(self, delta: _Delta, *, whole: bool) -> None:
        self._add("content", _joined(delta.content))
        self._add("reasoning_content", delta.reasoning_content or _string(delta.reasoning))
        self._add("refusal", delta.refusal)
        # Entries of one list without an index are different calls, whatever ids they carry.
        apart = whole or len(delta.tool_calls or ()) > 1
        for call in delta.tool_calls or ():
            function = call.function or _Function()
            slot = self._slot_for(call, function, apart=apart, whole=whole)
            self._spend(PIECE_COST_BYTES + slot.take(call.id or "", function))
            self._objects = self._objects or bytes(function.arguments).startswith(b"{")
        if delta.function_call is not None:
            self._legacy = self._legacy or _Slot()
            self._spend(self._legacy.take("", delta.function_call))

    def _slot_for(self, call: _Call, function: _Function, *, apart: bool, whole: bool) -> _Slot:
        if call.index is None or whole:
            slot = None if apart else self._continued(call, function)
            return slot or self._new_slot()
        slot = self._slot_at.get(call.index)
        if slot is None or self._another(slot, call, function):
            slot = self._slot_at[call.index] = self._new_slot()
        return slot

    def _continued(self, call: _Call, function: _Function) -> _Slot | None:
        """The call that a piece without an index belongs to: the one of its id, else the last one."""
        if call.id:
            slot = next((known for known in reversed(self._slots) if known.id == call.id), None)
            return None if slot is None or self._another(slot, call, function) else slot
        if function.name or not self._slots:
            return None
        return self._slots[-1]

    def _another(self, slot: _Slot, call: _Call, function: _Function) -> bool:
        """Servers that send whole calls under one index or one id: a name again, after a call that is complete."""
        if not function.name:
            return False
        if call.id and slot.id and call.id != slot.id:
            return True
        return bool(_text_of(function.arguments)) and _is_object(slot.text)

    def _new_slot(self) -> _Slot:
        self._slots.append(_Slot())
        return self._slots[-1]

    def _add(self, key: str, text: str | None) -> None:
        if text is not None:
            self._spend(len(text))
            self._texts.setdefault(key, []).append(text)

    def _spend(self, count: int) -> None:
        self._room -= count
        if self._room < 0:
            raise failed("body_cap", f"the message is larger than {self._cap_bytes} bytes")

    def _message(self) -> dict[str, object]:
        message: dict[str, object] = {"role": "assistant", "content": None}
        message.update((key, joined("".join(pieces))) for key, pieces in self._texts.items())
        if self._slots:
            message["tool_calls"] = [_as_call(slot) for slot in self._slots]
        if self._legacy is not None:
            message["function_call"] = self._legacy.as_function()
        return message


def _as_call(slot: _Slot) -> dict[str, object]:
    call: dict[str, object] = {"type": "function", "function": slot.as_function()}
    return {"id": slot.id, **call} if slot.id else call


def _decoded(body: bytes) -> _Chunk:
    try:
        return msgspec.json.decode(body, type=_Chunk)
    except msgspec.ValidationError as exc:
        raise failed("wrong_shape", f"the answer has another shape: {exc}") from exc
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise failed("not_json", f"the answer is not JSON: {exc}") from exc


def _joined(content: str | Iterable[_Part | str] | None) -> str | None:
    if content is None or isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else part.text or "" for part in content)


def _text_of(raw: Raw) -> str:
    """Arguments as text, whether the server sent text, an object or nothing."""
    body = bytes(raw)
    text = _string(raw)
    return text if text is not None else "" if body in (b"", b"null") else body.decode("utf-8", "replace")


def _string(raw: Raw) -> str | None:
    body = bytes(raw)
    if not body.startswith(b'"'):
        return None
    try:
        return msgspec.json.decode(body, type=str)
    except msgspec.MsgspecError as exc:
        raise failed("not_json", f"a string in the answer cannot be read: {exc}") from exc


def _is_object(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        msgspec.json.decode(text, type=dict[str, Raw])
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _count(*counts: int | None) -> int | None:
    """The first that can be: a bug of a server must not use up the budget of a month."""
    return next((count for count in counts if count is not None and 0 <= count <= _COUNT_MOST), None)
