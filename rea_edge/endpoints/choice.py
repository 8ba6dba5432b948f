"""Several model servers in order of preference: which one is asked, what follows a failure, what is known of each.

One question gives one answer or one named failure, within its time; the rules are the table in `trouble`. Knows no
run: it never asks twice what may have cost tokens, and never sends a question to a server it was not made for. Both
are for the caller, who is told by `retryable` and `elsewhere`.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from rea_edge import trouble
from rea_edge.cancel import Cancel
from rea_edge.config import Endpoint as Settings
from rea_edge.endpoints.place import PROBE_S, Cache, Needs, Place
from rea_edge.errors import EndpointFailed
from rea_edge.records import Answer

if TYPE_CHECKING:
    from rea_edge.probe import Profile

RETRY_S: Final = 60.0  # for the only endpoint there is: one that is down for longer fails the task by name
PATIENCE_S: Final = 2.0  # for one of several
SHARE: Final = 0.5  # of the time left goes to one of several, so that a server that hangs leaves the next one time
LEAST_SHARE_S: Final = 1.0  # or all that is left


class Chosen(Struct, frozen=True):
    """An endpoint to ask. `seconds` is what it took to find out what must be known of it."""

    settings: Settings
    profile: "Profile"
    seconds: float

    def context_tokens(self, otherwise: int) -> int:
        """The settings' word, else the server's, else `otherwise`; never more than it told when it refused a prompt."""
        size = self.settings.context_tokens or self.profile.context_tokens or otherwise
        return min(size, self.profile.refused_tokens or size)


class Endpoints:
    """All endpoints of a node. Thread-safe; a client is made, and its libraries are loaded, at its first question."""

    def __init__(self, settings: Sequence[Settings], cache: Cache) -> None:
        self._places = {one.name: Place(one, cache) for one in settings}

    def close(self) -> None:
        for place in self._places.values():
            place.close()

    def choose(self, needs: Needs, seconds: float, cancel: Cancel) -> Chosen:
        """The first endpoint that can be asked now; for want of one, the first that tells nothing of itself.

        Raises `EndpointFailed`, at the latest after `seconds`.
        """
        began_s = time.monotonic()
        end_s = began_s + min(seconds, RETRY_S)
        while True:
            failures: list[tuple[Place, EndpointFailed]] = []
            places = self._in_order()
            for place in places:
                left_s = end_s - time.monotonic()
                try:
                    known = place.known(needs, left_s if place is places[-1] else left_s * SHARE, cancel)
                except EndpointFailed as exc:
                    if exc.kind == "cancelled":
                        raise
                    failures.append((place, exc))
                else:
                    if known is not None:
                        _leave_silent(failures)
                        return Chosen(place.settings, known, time.monotonic() - began_s)
            for place, failure in failures:
                if failure.kind in trouble.TOO_SLOW:
                    return Chosen(place.settings, place.as_it_is(), time.monotonic() - began_s)
            _rest_until_one_may_be_asked(failures, end_s, cancel)

    def elsewhere(self, name: str, needs: Needs, seconds: float, cancel: Cancel) -> Chosen | None:
        """Where a run goes on whose endpoint is given up or gone; None: nowhere else, or there is no need."""
        here = self._places.get(name)
        began_s = time.monotonic()
        if here is not None and not here.standing.open(began_s):
            return None
        for place in self._others(name, needs):
            left_s = seconds - (time.monotonic() - began_s)
            try:
                known = place.known(needs, min(left_s * SHARE, PROBE_S), cancel)
            except EndpointFailed as exc:
                if exc.kind == "cancelled":
                    return None
                place.leave()
            else:
                if known is not None:
                    return Chosen(place.settings, known, round(time.monotonic() - began_s, 3))
        return None

    def ask(self, name: str, body: bytes, needs: Needs, seconds: float, cancel: Cancel) -> Answer:
        """Put one question, and again only while nothing can have come of it. At the latest `seconds` from now it
        raises `EndpointFailed`; `retryable`: a question made anew, here or `elsewhere`, is of use."""
        place = self._places.get(name)
        if place is None:
            other = bool(self._others(name, needs))
            raise EndpointFailed("no_endpoint", f"endpoint {name!r} is not configured any more", retryable=other)
        began_s = time.monotonic()
        end_s = began_s + seconds
        while True:
            other = bool(self._others(name, needs))
            give_up_s = min(end_s, began_s + (PATIENCE_S if other else RETRY_S))
            if (rest_s := place.standing.rest_s(time.monotonic())) > 0:
                if time.monotonic() + rest_s >= give_up_s:
                    raise _verdict(place, place.resting(rest_s), other=other)
                cancel.wait(rest_s)
            if cancel.cancelled:
                raise EndpointFailed("cancelled", f"{name}: cancelled before it was asked")
            left_s = end_s - time.monotonic()
            try:
                share_s = max(left_s * SHARE, min(left_s, LEAST_SHARE_S)) if other else left_s
                return place.ask(body, share_s, cancel)
            except EndpointFailed as exc:
                again = trouble.rule_of(exc.kind).then == "again" and exc.retryable
                now_s = time.monotonic()
                if not again or now_s + place.standing.rest_s(now_s) >= give_up_s:
                    raise _verdict(place, exc, other=other) from exc.__cause__

    def known(self, name: str) -> Chosen | None:
        """An endpoint with what is known of it, without asking; None if it is not configured any more."""
        from rea_edge.probe import Profile

        place = self._places.get(name)
        return None if place is None else Chosen(place.settings, place.kept() or Profile(), 0.0)

    def doubt(self, name: str) -> None:
        """Its answers are not what they were known to be: find it out anew for the next run."""
        place = self._places.get(name)
        if place is not None:
            place.doubt()

    def fault_of(self, name: str) -> str:
        """The newest failure of an endpoint in words; empty while it answers."""
        place = self._places.get(name)
        return "it is not configured any more" if place is None else place.fault

    def faults(self) -> list[str]:
        """What an operator should know now."""
        return [f"endpoint {name}: {said}" for name, place in sorted(self._places.items()) for said in place.faults()]

    def figures(self) -> dict[str, object]:
        """By endpoint: how it stands, what it was asked, how it failed, what is known of it."""
        return {name: place.figures() for name, place in self._places.items()}

    def _in_order(self) -> list[Place]:
        """In order of preference; behind them those that are given up, the first to be tried again in front."""
        now_s = time.monotonic()
        return sorted(self._places.values(), key=lambda place: max(0.0, place.standing.open_until_s - now_s))

    def _others(self, name: str, needs: Needs) -> list[Place]:
        now_s = time.monotonic()
        others = (place for place in self._places.values() if place.settings.name != name)
        return [place for place in others if not place.standing.open(now_s) and place.suits(needs)]


def _verdict(place: Place, exc: EndpointFailed, *, other: bool) -> EndpointFailed:
    """The failure with the word on whether a question made anew is of use, and the endpoint left where it is not."""
    rule = trouble.rule_of(exc.kind)
    lasting = not (rule.passes and exc.retryable)
    if rule.then in ("end", "shrink", "spare"):
        exc.retryable = rule.then != "end"
    elif other:
        if rule.then != "anew":
            place.leave()
        exc.retryable = True
    else:
        asked_anew = rule.then in ("anew", "next") and not lasting
        exc.retryable = asked_anew and place.standing.failures < trouble.OPEN_AFTER
    return exc


def _leave_silent(failures: Sequence[tuple[Place, EndpointFailed]]) -> None:
    """Those that say nothing would cost each new run the time of finding that out."""
    for place, exc in failures:
        if exc.kind in trouble.TOO_SLOW:
            place.leave()


def _rest_until_one_may_be_asked(
    failures: Sequence[tuple[Place, EndpointFailed]], end_s: float, cancel: Cancel
) -> None:
    """Wait for the first that time may mend; raises what was wrong with all of them where none will be in time.

    One that answers, and with rubbish again and again, is not waited for.
    """
    now_s = time.monotonic()
    waited = [
        place
        for place, exc in failures
        if trouble.rule_of(exc.kind).then == "again" or place.standing.failures < trouble.OPEN_AFTER
    ]
    rests = [rest_s for place in waited if (rest_s := place.standing.rest_s(now_s)) > 0]
    if rests and now_s + min(rests) < end_s and not cancel.wait(min(rests)):
        return
    if cancel.cancelled:
        raise EndpointFailed("cancelled", "cancelled while waiting for an endpoint")
    if not failures:
        raise EndpointFailed("no_endpoint", "no endpoint suits this task")
    raise EndpointFailed(failures[0][1].kind, "; ".join(exc.message for _, exc in failures))
