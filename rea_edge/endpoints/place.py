"""One endpoint as a node knows it: its client, how it stands, what is known and counted of it. Chooses nothing."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from rea_edge import trouble
from rea_edge.cancel import Cancel
from rea_edge.config import Endpoint as Settings
from rea_edge.endpoints.counting import Reckoning
from rea_edge.errors import ConfigInvalid, EndpointFailed
from rea_edge.members import SPARED
from rea_edge.records import Answer
from rea_edge.trouble import Standing

if TYPE_CHECKING:
    from rea_edge.endpoint import Endpoint
    from rea_edge.probe import Depth, Profile

PROBE_S: Final = 60.0  # two small questions to a slow board
LEAST_CONTEXT: Final = 256  # tokens; a server that says it has less is not believed for the next run
_STALE: Final = frozenset({"bad_request", "not_found", "wrong_shape"})  # what was known may no longer be so

# What must be known of an endpoint, or None where it does not suit; it is told what is known already.
Needs = Callable[[Settings, "Profile | None"], "Depth | None"]


class Cache(Protocol):
    """Keeps what was found out, over restarts."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, value: str) -> None: ...


class Place:
    """One endpoint: its client, how it stands, what is known and counted of it."""

    def __init__(self, settings: Settings, cache: Cache) -> None:
        self.settings = settings
        self.standing = Standing()
        self.fault = ""  # the newest failure, until it answers
        self._cache = cache
        self._key = _key_of(settings)
        self._lock = threading.Lock()
        self._client: Endpoint | None = None
        self._profile: Profile | None = None
        self._looked = False  # into the cache
        self._slow = False
        self._read = False  # its pages, in this life
        self._counts: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._reckoning = Reckoning()

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def suits(self, needs: Needs) -> bool:
        return needs(self.settings, self.kept()) is not None

    def known(self, needs: Needs, seconds: float, cancel: Cancel) -> "Profile | None":
        """What is known of it, found out now where it must be; None where it does not suit. Raises `EndpointFailed`.

        What an earlier life found out holds if the server's pages say the same as then: they are read once a life.
        """
        profile = self.kept()
        depth = needs(self.settings, profile)
        if depth is None:
            return None
        enough = profile is not None and (self._slow or depth == "pages" or profile.depth != "pages")
        if enough and self._read:
            return profile
        if (rest_s := self.standing.rest_s(time.monotonic())) > 0:
            raise self.resting(rest_s)
        end_s = time.monotonic() + min(seconds, PROBE_S)
        found = self._probed("pages" if enough else depth, end_s, cancel)
        if profile is not None and enough and _same_server(found, profile):
            found = profile
        elif enough and depth != "pages":
            found = self._probed(depth, end_s, cancel)
        self._read = True
        self._keep(found)
        return found if needs(self.settings, found) is not None else None

    def doubt(self) -> None:
        """What is known may not be so any more: it is found out anew for the next run."""
        self._keep(None)
        self._slow = False

    def as_it_is(self) -> "Profile":
        """Nothing can be found out of it: in this life it is not tried again, and the questions themselves will tell."""
        from rea_edge.probe import Profile

        self.standing = Standing()
        self._profile, self._read, self._slow = self._profile or Profile(), True, True
        return self._profile

    def ask(self, body: bytes, seconds: float, cancel: Cancel) -> Answer:
        self._counts["asked"] += 1
        try:
            answer = self._opened().ask(body, seconds=seconds, cancel=cancel)
        except EndpointFailed as exc:
            if exc.kind == "parameter_refused" and exc.parameter not in _members(body) & SPARED:
                exc.kind = "bad_request"  # it was not sent, or nothing can be asked without it
            self._fail(exc)
            raise
        self._answered()
        self._count(body, answer)
        return answer

    def resting(self, rest_s: float) -> EndpointFailed:
        """The failure of not being asked, with the one that it is for."""
        return EndpointFailed("resting", f"{self.fault} (left alone for another {rest_s:.0f} s)")

    def leave(self) -> None:
        """A run turns to another endpoint: for a while the others do so too."""
        self._counts["left"] += 1
        self.standing = trouble.left(self.standing, time.monotonic())

    def faults(self) -> list[str]:
        return [said for said in (self.fault, self._reckoning.fault) if said]

    def figures(self) -> dict[str, object]:
        now_s = time.monotonic()
        standing = self.standing
        return {
            "state": "open" if standing.open(now_s) else "failing" if standing.failures else "ok",
            "fault": self.fault or None,
            "failures_in_a_row": standing.failures,
            "retry_in_s": round(max(standing.rest_s(now_s), standing.open_until_s - now_s, 0.0), 1),
            "failed": dict(self._failed),
            **{name: self._counts[name] for name in ("asked", "answered", "left", "truncated", "uncounted")},
            "profile": None if self._profile is None else msgspec.to_builtins(self._profile),
        }

    def _probed(self, depth: "Depth", end_s: float, cancel: Cancel) -> "Profile":
        from rea_edge.probe import probe

        try:
            found = probe(self._opened(), seconds=end_s - time.monotonic(), cancel=cancel, depth=depth)
        except EndpointFailed as exc:
            self._fail(exc)
            raise
        self._answered()
        self._slow = found.depth != depth  # what it was too slow to tell is not asked of it again and again
        return found

    def _opened(self) -> "Endpoint":
        with self._lock:
            if self._client is None:
                try:
                    self._client = client_of(self.settings)
                except ConfigInvalid as exc:
                    raise EndpointFailed("no_endpoint", str(exc)) from exc
            return self._client

    def _answered(self) -> None:
        self.standing = Standing()
        self.fault = ""

    def _fail(self, exc: EndpointFailed) -> None:
        if exc.kind == "cancelled":
            return
        self._failed[exc.kind] += 1
        if exc.kind == "parameter_refused":
            self._spare(exc.parameter)  # no fault: it is asked without, and answers
            return
        self.fault = f"{exc.kind}: {exc.message}"
        self.standing = trouble.after_failure(
            self.standing,
            exc.kind,
            time.monotonic(),
            jitter=random.uniform(0.7, 1.3),
            retry_after_s=exc.retry_after_s,
            passes=exc.retryable,
        )
        if exc.kind in _STALE:
            self.doubt()
        elif exc.context_tokens is not None and exc.context_tokens >= LEAST_CONTEXT:
            profile = self.kept()
            if profile is not None:
                self._keep(msgspec.structs.replace(profile, refused_tokens=exc.context_tokens))

    def _spare(self, name: str) -> None:
        from rea_edge.probe import Profile

        profile = self.kept()
        if profile is None:
            profile, self._read = Profile(), False
        self._keep(msgspec.structs.replace(profile, without=tuple(sorted({*profile.without, name}))))

    def kept(self) -> "Profile | None":
        """What is known: by now, or from an earlier life."""
        if not self._looked:
            self._looked = True
            kept = self._cache.get(self._key)
            self._profile = None if kept is None else _decoded(kept)
        return self._profile

    def _keep(self, profile: "Profile | None") -> None:
        if profile != self.kept():
            self._profile = profile
            self._cache.put(self._key, "" if profile is None else msgspec.json.encode(profile).decode())

    def _count(self, body: bytes, answer: Answer) -> None:
        self._counts["answered"] += 1
        if not answer.prompt_tokens:  # none, or 0, as servers say that have the whole prompt in their cache
            self._counts["uncounted"] += 1
        elif not self._reckoning.take(body, answer.prompt_tokens):
            self._counts["truncated"] += 1


def _key_of(one: Settings) -> str:
    """What is known belongs to one model at one server, whatever the endpoint is called."""
    return f"profile.{sha256(chr(10).join((one.url, one.model)).encode()).hexdigest()[:24]}"


def _members(body: bytes) -> frozenset[str]:
    return frozenset(msgspec.json.decode(body, type=dict[str, msgspec.Raw]))


def _same_server(found: "Profile", kept: "Profile") -> bool:
    return (found.context_tokens, found.llama_cpp, found.served) == (kept.context_tokens, kept.llama_cpp, kept.served)


def _decoded(kept: str) -> "Profile | None":
    from rea_edge.probe import Profile

    try:
        profile = msgspec.json.decode(kept, type=Profile)
    except msgspec.MsgspecError:
        return None  # of another version: it is found out again
    # A refusal costs nothing; believing an old one would hide for ever that the server got a larger context.
    return msgspec.structs.replace(profile, refused_tokens=None)


def client_of(one: Settings) -> "Endpoint":
    """A client for an endpoint as it is configured. Raises `ConfigInvalid`."""
    from rea_edge.endpoint import Endpoint

    return Endpoint(
        name=one.name,
        url=one.url,
        model=one.model,
        api_key=one.api_key.reveal() if one.api_key else None,
        connect_s=one.connect_s,
        idle_s=one.idle_s,
    )
