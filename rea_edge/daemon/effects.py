"""What a runner needs done on this node: begin, ask, pass the gate, act. Joins settings, endpoint, prompts, tools."""

import random
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from rea_edge import gate
from rea_edge.aliases import aliases, renamed_tools
from rea_edge.cancel import Cancel
from rea_edge.config import Endpoint as EndpointSettings
from rea_edge.config import Settings, TaskType
from rea_edge.config.prompts import fits_every_protocol, prompt_file
from rea_edge.config.settings import DoneWhen
from rea_edge.errors import EndpointFailed, RequestRefused
from rea_edge.gate import Policy
from rea_edge.records import (
    Answer,
    Begun,
    Call,
    Criterion,
    EffectClass,
    Job,
    Moved,
    Protocol,
    Result,
    Run,
    Switched,
    Tool,
)
from rea_edge.redact import redacted
from rea_edge.toolbox import Toolbox

if TYPE_CHECKING:
    from rea_edge.endpoint import Endpoint
    from rea_edge.probe import Profile

T = TypeVar("T")
COMMAND_TOKENS = 96  # of an answer in protocol command: a guard with two calls has about forty
CONTEXT_TOKENS = 4096  # where neither settings nor server say: the least that servers of today are started with
RETRY_S = 60.0  # of one question: a server that is down for longer fails the task by name
PROBE_S = 20.0
# After three unreadable answers, where nobody fixed the protocol. Not command: its first line would end the task.
NEXT: dict[Protocol, Protocol] = {"native": "json", "json": "react", "react": "json", "command": "json"}
STRICTNESS: tuple[EffectClass, ...] = ("read", "idempotent", "once")


class NodeEffects:
    """The effects of every lane of one node. Thread-safe: settings do not change, the rest guards itself.

    What only a task needs (the client, openings, the probe) is imported at the first one.
    """

    def __init__(self, settings: Settings, toolbox: Toolbox) -> None:
        self._settings = settings
        self.toolbox = toolbox
        self._making = threading.Lock()
        self._endpoints: dict[str, Endpoint] = {}
        self._profiles: dict[str, Profile] = {}
        given = [settings.broker.password, *(one.api_key for one in settings.endpoints)]
        self._secrets = [secret.reveal() for secret in given if secret is not None]
        self.faults: dict[str, str] = {}  # by endpoint: the newest failure, until it answers again

    def close(self) -> None:
        for endpoint in self._endpoints.values():
            endpoint.close()

    def begin(self, job: Job, cancel: Cancel) -> Begun:
        if not self._settings.endpoints:
            raise EndpointFailed("no_endpoint", "this node has no endpoint: it is a tool node")
        kind = self._settings.task_type(job.type)
        if kind is None:
            raise RequestRefused("policy_denied", _gone(job))
        one = self._settings.endpoints[0]
        wanted = kind.protocol or one.protocol
        profile = self._profile(one, job.limits.task_s, cancel, need_native=wanted == "auto")
        protocol: Protocol = _chosen(profile) if wanted == "auto" else wanted
        offers = gate.offered(policy_of(job, kind), list(self.toolbox.tools.values()))
        tools = [self.toolbox.tools[offer.name] for offer in offers]
        table = aliases([offer.name for offer in offers], one.names)
        tools = renamed_tools(tools, table)
        asked = self._asked_in(protocol, kind, one, job, tools, llama_cpp=profile.llama_cpp)
        return Begun(
            endpoint=one.name,
            model=one.model,
            protocol=protocol,
            offers=offers,
            opening=asked.opening,
            ask=asked.ask,
            context_tokens=one.context_tokens or profile.context_tokens or CONTEXT_TOKENS,
            min_observations=_least(kind, offers),
            answer_tokens=asked.answer_tokens,
            commands=kind.commands,
            aliases=table,
            repeats=kind.repeats,
            done_when=tuple(_criterion(wanted) for wanted in kind.done_when),
            next_protocol=NEXT[protocol] if wanted == "auto" and fits_every_protocol(kind.prompt) else None,
        )

    def switch(self, job: Job, begun: Begun, protocol: Protocol) -> Switched:
        kind = self._settings.task_type(job.type) or TaskType()
        one = next((one for one in self._settings.endpoints if one.name == begun.endpoint), EndpointSettings(url=""))
        tools = [self.toolbox.tools[offer.name] for offer in begun.offers if offer.name in self.toolbox.tools]
        tools = renamed_tools(tools, begun.aliases)
        profile = self.profile(begun.endpoint)
        return self._asked_in(protocol, kind, one, job, tools, llama_cpp=profile is not None and profile.llama_cpp)

    def _asked_in(
        self, protocol: Protocol, kind: TaskType, one: EndpointSettings, job: Job, tools: list[Tool], *, llama_cpp: bool
    ) -> Switched:
        """How this job is put in this protocol."""
        from rea_edge import opening

        prompt = _prompt(kind, protocol)
        return Switched(
            protocol=protocol,
            opening=opening.opening(protocol, prompt, tools, job.goal, job.context, commands=kind.commands),
            ask=opening.constraint(
                protocol, tools, llama_cpp=llama_cpp, commands=kind.commands, temperature=one.temperature
            ),
            answer_tokens=min(job.limits.answer_tokens, COMMAND_TOKENS if protocol == "command" else 1 << 30),
        )

    def moved(self, run: Run, seconds: float, cancel: Cancel) -> Moved | None:
        return None  # there is one endpoint

    def ask(self, begun: Begun, body: bytes, seconds: float, cancel: Cancel) -> Answer:
        endpoint = self._endpoint(begun.endpoint)
        answer = self._retried(
            begun.endpoint, seconds, cancel, lambda left_s: endpoint.ask(body, seconds=left_s, cancel=cancel)
        )
        return msgspec.structs.replace(answer, message=redacted(answer.message, self._secrets))

    def refusal(self, job: Job, call: Call, effect: EffectClass) -> str | None:
        kind = self._settings.task_type(job.type)
        if kind is None:
            return _gone(job)
        policy = Policy(mode="act") if job.call is not None else policy_of(job, kind)
        return gate.refusal(policy, call, self.effect(call, effect), self.toolbox.tools)

    def effect(self, call: Call, recorded: EffectClass) -> EffectClass:
        """The stricter of what the run recorded and what the tool is now."""
        now = self.toolbox.tools.get(call.name)
        return recorded if now is None else max(recorded, now.effect, key=STRICTNESS.index)

    def act(self, call: Call, request_id: str, seconds: float, cancel: Cancel, starting: Callable[[], bool]) -> Result:
        ended = threading.Event()
        cancel.subscribe(ended.set)
        try:
            return self.toolbox.run(call.name, call.args, request_id, seconds, ended, starting)
        finally:
            cancel.unsubscribe(ended.set)

    def profile(self, name: str) -> "Profile | None":
        """What has been found out about an endpoint, None while it was not asked."""
        return self._profiles.get(name)

    def _profile(self, one: EndpointSettings, seconds: float, cancel: Cancel, *, need_native: bool) -> "Profile":
        """Probe an endpoint once; with protocol and context given in the settings no question is sent for it."""
        from rea_edge.probe import probe

        known = self._profiles.get(one.name)
        if known is None:
            endpoint = self._endpoint(one.name)
            known = self._retried(
                one.name,
                seconds,
                cancel,
                lambda left_s: probe(
                    endpoint, seconds=min(PROBE_S, left_s), cancel=cancel, depth="brief" if need_native else "pages"
                ),
            )
            self._profiles[one.name] = known
        return known

    def _endpoint(self, name: str) -> "Endpoint":
        """The client of an endpoint, made at the first use. Raises `EndpointFailed` if it is not configured (any more)."""
        with self._making:
            if name not in self._endpoints:
                settings = next((one for one in self._settings.endpoints if one.name == name), None)
                if settings is None:
                    raise EndpointFailed("no_endpoint", f"endpoint {name!r} is not configured any more")
                self._endpoints[name] = _client(settings)
            return self._endpoints[name]

    def _retried(self, name: str, seconds: float, cancel: Cancel, ask: Callable[[float], T]) -> T:
        """Ask, and after what a rest may cure (down, loading, too many) ask again, with growing jittered rests."""
        end_s = time.monotonic() + seconds
        retry_end_s = min(end_s, time.monotonic() + RETRY_S)
        rest_s = 0.5
        while True:
            try:
                answer = ask(end_s - time.monotonic())
            except EndpointFailed as exc:
                if exc.kind != "cancelled":
                    self.faults[name] = f"{exc.kind}: {exc.message}"
                pause_s = exc.retry_after_s or rest_s * random.uniform(0.7, 1.3)
                if not exc.retryable or cancel.cancelled or time.monotonic() + pause_s >= retry_end_s:
                    raise
                cancel.wait(pause_s)
                rest_s = min(rest_s * 2, 8.0)
            else:
                self.faults.pop(name, None)
                return answer


def policy_of(job: Job, kind: TaskType) -> Policy:
    return Policy(mode=job.mode, tools=kind.tools)


def _gone(job: Job) -> str:
    # Never the default type in its place: that may allow more.
    return f"the task type {job.type!r} does not exist on this node any more"


def _criterion(wanted: DoneWhen) -> Criterion:
    value = wanted.value if wanted.equals is None else wanted.equals
    return Criterion(tool=wanted.tool, args=wanted.args, path=wanted.path, op=wanted.op or "==", value=value)


def _least(kind: TaskType, offers: tuple[object, ...]) -> int:
    if kind.min_observations is not None:
        return kind.min_observations
    return 1 if offers else 0


def _chosen(profile: "Profile") -> Protocol:
    """What `auto` takes: native calls only where they really came back, else the JSON object."""
    return "native" if profile.native else "json"


def _prompt(kind: TaskType, protocol: Protocol) -> str:
    try:
        return prompt_file(kind.prompt, protocol).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise RequestRefused("internal", f"the prompt of this task type cannot be read: {exc}") from exc


def _client(one: EndpointSettings) -> "Endpoint":
    from rea_edge.endpoint import Endpoint

    return Endpoint(
        name=one.name,
        url=one.url,
        model=one.model,
        api_key=one.api_key.reveal() if one.api_key else None,
        connect_s=one.connect_s,
        idle_s=one.idle_s,
    )
