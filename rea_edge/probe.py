"""What a model server can do, found by asking it. Holds no cache and decides nothing: the caller keeps the profile."""

import time
from collections.abc import Iterator
from typing import Final, Generic, Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct

from rea_edge.errors import EndpointFailed
from rea_edge.members import SPARED, kept
from rea_edge.records import Answer
from rea_edge.trouble import TOO_SLOW

C = TypeVar("C", contravariant=True)

# How much is asked: only what the server's pages say; also what a run has to know; everything, for a person.
Depth = Literal["pages", "brief", "full"]

# What says that the server cannot be asked at all. A page that is refused, broken or late tells nothing: gateways do
# all of that to a path that they do not know, and answer questions all the same.
_AWAY: Final = frozenset({
    "dns", "connect", "tls", "timeout_connect", "loading", "rate_limited", "cancelled",
})  # fmt: skip
_PAGE_S: Final = 5.0
_PAGE_SHARE: Final = 0.25  # of the time, so that a question can be asked after two pages that hang
_LEAST_CONTEXT: Final = 256  # tokens; no model has less
_REFUSES: Final = frozenset({
    "bad_request", "parameter_refused", "not_found", "error_in_200", "empty_choices", "server_error",
})  # fmt: skip
# In the order of trust: what is in force before what the model was trained for.
_CONTEXT_KEYS: Final = (
    "loaded_context_length", "max_model_len", "n_ctx", "context_length", "context_window", "max_context_length",
    "n_ctx_train",
)  # fmt: skip
_CHAT_TOKENS: Final = 64
_TESTED: Final = frozenset({"response_format", "tool_choice"})  # what a question without them would not tell
_TOOL_NAME: Final = "report_ready"
_MARK: Final = "k7-q2"  # nothing that a model would say of itself


class Server(Protocol[C]):
    """The part of an endpoint that is asked; `C` is its way to be cancelled."""

    @property
    def model(self) -> str: ...

    def ask(self, body: bytes, *, seconds: float, cancel: C) -> Answer: ...

    def get(self, path: str, *, seconds: float, cancel: C) -> object: ...


class Profile(Struct, frozen=True, omit_defaults=True):
    """What is known of one model at one server. What was not asked, or got no answer in time, is None or False."""

    depth: Depth = "pages"  # how much was asked, and answered in time
    context_tokens: int | None = None  # None: the server does not say
    refused_tokens: int | None = None  # the size it told when it refused a prompt: in force, whatever else was said
    served: str = ""  # the model by the server's own word: another one behind the same name is found out anew
    llama_cpp: bool = False  # takes a grammar, and keeps to a JSON Schema
    native: bool = False  # a tool call really came back
    parallel: bool = False  # two calls came back in one message
    arguments: Literal["text", "object"] | None = None  # how a call's arguments came
    tool_choice: tuple[str, ...] = ()  # the forms that were not refused
    json_schema: bool = False  # an answer kept to a schema that no model would keep to by chance
    usage: bool | None = None  # whether it counts tokens
    without: tuple[str, ...] = ()  # members of a request that it refuses by name


def probe(endpoint: Server[C], *, seconds: float, cancel: C, depth: Depth = "pages") -> Profile:
    """Ask `/props`, then `models`; beyond that a few tiny questions. `seconds` are for all of it.

    Raises `EndpointFailed` when the server cannot be reached, is loading, refuses the key or says nothing at all. A
    question that is not answered in time leaves its part unknown, and `depth` says so.
    """
    asking = _Asking(endpoint, seconds, cancel)
    props = asking.page("/props")
    settings = _member(props, "default_generation_settings")
    context_tokens, served = _size(_member(settings, "n_ctx")), _member(props, "model_path")
    if context_tokens is None:
        entry = _entry(asking.page("models", "unauthorized"), endpoint.model)
        context_tokens, served = next(_context_sizes(entry), None), _member(entry, "root") or _member(entry, "id")
    profile = Profile(
        context_tokens=context_tokens,
        llama_cpp=settings is not None,
        served=served.rpartition("/")[2] if isinstance(served, str) else "",
    )
    silent = asking.silent
    if silent is not None and depth != "full":
        raise silent
    if depth == "pages":
        return profile
    profile = _with_calls(profile, asking)
    if silent is not None and asking.late:
        raise silent
    if depth == "full" or not (profile.native or profile.llama_cpp):
        profile = _with_schema(profile, asking)
    if depth == "full" and profile.arguments is not None:
        profile = _with_choices(profile, asking)
    if depth == "full":
        more = {"grammar": 'root ::= "ok"'} if profile.llama_cpp else {}
        asking.chat("Say ok.", stop=["\nObservation:"], **more)
    without = tuple(sorted(asking.without))
    return msgspec.structs.replace(profile, depth="pages" if asking.late else depth, without=without)


class _Asking(Generic[C]):
    """One server under one deadline for everything that is asked of it."""

    def __init__(self, endpoint: Server[C], seconds: float, cancel: C) -> None:
        self._endpoint = endpoint
        self._end_s = time.monotonic() + seconds
        self._cancel = cancel
        self.late = False  # a chat question got no answer in time
        self.silent: EndpointFailed | None = None  # neither page came in time: of what the first one died
        self._asked = False
        self.without: set[str] = set()  # what it refuses by name

    def page(self, path: str, *grave: str) -> object:
        """What a page tells, or None; `grave` are failures that say more than that it is not there."""
        left_s = self._end_s - time.monotonic()
        silent, self.silent = self.silent, None
        try:
            return self._endpoint.get(path, seconds=min(_PAGE_S, left_s * _PAGE_SHARE), cancel=self._cancel)
        except EndpointFailed as exc:
            if exc.kind in (*_AWAY, *grave):
                raise
            if exc.kind in TOO_SLOW and (silent or not self._asked):
                self.silent = silent or exc
            return None
        finally:
            self._asked = True

    def chat(self, text: str, **members: object) -> Answer | None:
        """One small question, asked again without what is refused by name; None where the server refuses it or takes
        too long."""
        whole = {
            "model": self._endpoint.model,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": _CHAT_TOKENS,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            **members,
        }  # fmt: skip
        while True:
            sent = kept(whole, self.without)
            try:
                seconds = self._end_s - time.monotonic()
                return self._endpoint.ask(msgspec.json.encode(sent), seconds=seconds, cancel=self._cancel)
            except EndpointFailed as exc:
                self.late = self.late or exc.kind in TOO_SLOW
                if exc.kind not in _REFUSES | TOO_SLOW:
                    raise
                if exc.parameter not in sent.keys() & SPARED - _TESTED:
                    return None
                self.without.add(exc.parameter)


def _with_calls(profile: Profile, asking: _Asking[C]) -> Profile:
    """Ask for two calls in one message, and look at what comes back."""
    text = (
        f"Call the tool {_TOOL_NAME} two times in one message: once with ready = true, once with ready = false."
        " Say nothing else."
    )
    answer = asking.chat(text, tools=[_tool()])
    if answer is None:
        return profile
    found = _member(msgspec.json.decode(answer.message), "tool_calls")
    calls = [call for call in found if _is_the_call(_member(call, "function"))] if isinstance(found, list) else []
    return msgspec.structs.replace(
        profile,
        native=len(calls) > 0,
        parallel=len(calls) > 1,
        arguments=("object" if answer.objects else "text") if found else None,
        usage=answer.prompt_tokens is not None,
    )


def _with_schema(profile: Profile, asking: _Asking[C]) -> Profile:
    schema = {
        "type": "object",
        "properties": {"mark": {"type": "string", "enum": [_MARK]}},
        "required": ["mark"],
        "additionalProperties": False,
    }
    response_format = {"type": "json_schema", "json_schema": {"name": "mark", "strict": True, "schema": schema}}
    answer = asking.chat("Say hello.", response_format=response_format)
    if answer is None:
        return profile
    content = _member(msgspec.json.decode(answer.message), "content")
    return msgspec.structs.replace(
        profile, json_schema=_parsed(content) == {"mark": _MARK}, usage=answer.prompt_tokens is not None
    )


def _with_choices(profile: Profile, asking: _Asking[C]) -> Profile:
    """Only that a form is not refused can be seen from one question; few servers enforce what they accept."""
    forms: dict[str, object] = {
        "auto": "auto",
        "required": "required",
        "named": {"type": "function", "function": {"name": _TOOL_NAME}},
    }
    text = f"Call the tool {_TOOL_NAME} with ready = true."
    accepted = [name for name, form in forms.items() if asking.chat(text, tools=[_tool()], tool_choice=form)]
    return msgspec.structs.replace(profile, tool_choice=tuple(accepted))


def _tool() -> dict[str, object]:
    parameters = {"type": "object", "properties": {"ready": {"type": "boolean"}}, "required": ["ready"]}
    function = {"name": _TOOL_NAME, "description": "Report whether you are ready.", "parameters": parameters}
    return {"type": "function", "function": function}


def _is_the_call(function: object) -> bool:
    args = _parsed(_member(function, "arguments"))
    return _member(function, "name") == _TOOL_NAME and isinstance(_member(args, "ready"), bool)


def _parsed(text: object) -> object:
    try:
        return msgspec.json.decode(text) if isinstance(text, str) else None
    except (msgspec.MsgspecError, RecursionError):
        return None


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
            size = _size(_member(place, key))
            if size is not None:
                yield size


def _member(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def _size(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and value >= _LEAST_CONTEXT:
        return value
    return None
