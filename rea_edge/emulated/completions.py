"""An assistant message as an OpenAI-compatible server writes it: one JSON answer, or events. No sockets."""

import json
from collections.abc import Iterator
from typing import Final

# An assistant message; `role` may be left out, `finish_reason` may be added to override the usual one.
Message = dict[str, object]

PIECE_CHARS: Final = 12
BYTES_PER_TOKEN: Final = 4


def completion(message: Message, request: Message, model: str) -> Message:
    finish_reason = _finish_reason(message)
    whole = {"role": "assistant", "content": None, **{k: v for k, v in message.items() if k != "finish_reason"}}
    choice = {"index": 0, "message": whole, "finish_reason": finish_reason}
    usage = _usage(message, request)
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": model, "choices": [choice], "usage": usage}


def events(message: Message, request: Message, model: str) -> Iterator[bytes]:
    """The message as a server streams it: role, pieces of text, pieces of calls, the end, usage if asked for."""
    yield first_event(model)
    for delta in _deltas(message):
        yield _event(model, [{"index": 0, "delta": delta, "finish_reason": None}])
    yield _event(model, [{"index": 0, "delta": {}, "finish_reason": _finish_reason(message)}])
    options = request.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        yield _event(model, [], usage=_usage(message, request))
    yield b"data: [DONE]\n\n"


def first_event(model: str) -> bytes:
    return _event(model, [{"index": 0, "delta": {"role": "assistant", "content": None}, "finish_reason": None}])


def role_of(message: object) -> object:
    return message.get("role") if isinstance(message, dict) else None


def _finish_reason(message: Message) -> object:
    return message.get("finish_reason", "tool_calls" if message.get("tool_calls") else "stop")


def _usage(message: Message, request: Message) -> dict[str, int]:
    prompt = len(json.dumps(request.get("messages"))) // BYTES_PER_TOKEN + 1
    completion = len(json.dumps(message)) // BYTES_PER_TOKEN + 1
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _deltas(message: Message) -> Iterator[Message]:
    for key in ("reasoning_content", "content", "refusal"):
        text = message.get(key)
        if isinstance(text, str):
            for piece in _pieces(text):
                yield {key: piece}
    calls = message.get("tool_calls")
    for index, call in enumerate(calls if isinstance(calls, list) else []):
        function = call.get("function", {})
        head = {**call, "index": index, "function": {**function, "arguments": ""}}
        yield {"tool_calls": [head]}
        for piece in _pieces(str(function.get("arguments", ""))):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
    if "function_call" in message:
        yield {"function_call": message["function_call"]}


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS))


def _event(model: str, choices: list[Message], **more: object) -> bytes:
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": model, "choices": choices, **more}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"
