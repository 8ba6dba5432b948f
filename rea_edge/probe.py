"""What a model server can do, found by asking it. Holds no cache and decides nothing: the caller keeps the profile."""

from collections.abc import Iterator
from typing import Final, Protocol, TypeVar

import msgspec
from msgspec import Struct

from rea_edge.errors import EndpointFailed
from rea_edge.records import Answer

C = TypeVar("C", contravariant=True)

# These say that the server answered and has no such page; anything else means that it could not be asked.
_NO_SUCH_PAGE: Final = frozenset({"not_found", "bad_request", "not_json", "wrong_shape", "error_in_200", "redirect"})
_REFUSES_TOOLS: Final = frozenset({"bad_request", "not_found", "error_in_200", "empty_choices", "server_error"})
# In the order of trust: what is in force before what the model was trained for.
_CONTEXT_KEYS: Final = (
    "loaded_context_length", "max_model_len", "n_ctx", "context_length", "context_window", "max_context_length",
    "n_ctx_train",
)  # fmt: skip
_CHAT_TOKENS: Final = 64
_TOOL_NAME: Final = "report_ready"


class Server(Protocol[C]):
    """The part of an endpoint that is asked; `C` is its way to be cancelled."""

    @property
    def model(self) -> str: ...

    def ask(self, body: bytes, *, seconds: float, cancel: C) -> Answer: ...

    def get(self, path: str, *, seconds: float, cancel: C) -> object: ...


class Profile(Struct, frozen=True):
    """`context_tokens` is None where the server does not say; `native` only if a tool call really came back."""

    context_tokens: int | None = None
    llama_cpp: bool = False
    native: bool = False


def probe(endpoint: Server[C], *, seconds: float, cancel: C, chat: bool = False) -> Profile:
    """Ask `/props`, then `models`; with `chat` also one tiny question with one tool. `seconds` are for each request.

    Raises `EndpointFailed` when the server cannot be reached, is loading or refuses the key.
    """
    props = _page(endpoint, "/props", seconds, cancel)
    settings = _member(props, "default_generation_settings")
    context_tokens = _positive(_member(settings, "n_ctx"))
    if context_tokens is None:
        entry = _entry(_page(endpoint, "models", seconds, cancel), endpoint.model)
        context_tokens = next(_context_sizes(entry), None)
    native = chat and _calls_natively(endpoint, seconds, cancel)
    return Profile(context_tokens=context_tokens, llama_cpp=settings is not None, native=native)


def _page(endpoint: Server[C], path: str, seconds: float, cancel: C) -> object:
    try:
        return endpoint.get(path, seconds=seconds, cancel=cancel)
    except EndpointFailed as exc:
        if exc.kind in _NO_SUCH_PAGE:
            return None
        raise


def _entry(models: object, model: str) -> object:
    """The model's own entry, or the only one there is: a llama.cpp server takes any name."""
    entries = _member(models, "data")
    if not isinstance(entries, list):
        return None
    named = [entry for entry in entries if model in (_member(entry, "id"), _member(entry, "name"))]
    if named:
        return named[0]
    return entries[0] if len(entries) == 1 else None


def _context_sizes(entry: object) -> Iterator[int]:
    for key in _CONTEXT_KEYS:
        for place in (entry, _member(entry, "meta")):
            size = _positive(_member(place, key))
            if size is not None:
                yield size


def _calls_natively(endpoint: Server[C], seconds: float, cancel: C) -> bool:
    try:
        answer = endpoint.ask(_question(endpoint.model), seconds=seconds, cancel=cancel)
    except EndpointFailed as exc:
        if exc.kind in _REFUSES_TOOLS:
            return False
        raise
    calls = _member(msgspec.json.decode(answer.message), "tool_calls")
    return isinstance(calls, list) and any(_is_the_call(_member(call, "function")) for call in calls)


def _is_the_call(function: object) -> bool:
    arguments = _member(function, "arguments")
    try:
        args = msgspec.json.decode(arguments) if isinstance(arguments, str) else None
    except (msgspec.MsgspecError, RecursionError):
        return False
    return _member(function, "name") == _TOOL_NAME and isinstance(_member(args, "ready"), bool)


def _question(model: str) -> bytes:
    parameters = {"type": "object", "properties": {"ready": {"type": "boolean"}}, "required": ["ready"]}
    tool = {"name": _TOOL_NAME, "description": "Report whether you are ready.", "parameters": parameters}
    return msgspec.json.encode({
        "model": model,
        "messages": [{"role": "user", "content": f"Call the tool {_TOOL_NAME} with ready = true. Say nothing else."}],
        "tools": [{"type": "function", "function": tool}],
        "max_tokens": _CHAT_TOKENS,
        "temperature": 0,
        "stream": True,
    })  # fmt: skip


def _member(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
