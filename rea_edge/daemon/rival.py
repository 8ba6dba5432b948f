"""A second node with our id: how it is noticed, and who of the two acts. Pure: time is given as a number.

The rule: the one whose process has been up longer acts; within `TIE_S` the smaller instance. Uptimes need no clock that
two boards would have to share, both sides see the same ones in the claims they exchange, and the one that came last is
the one to look at. The other takes no request, starts no run, and stands by until the first is gone.

With client ids of their own both are connected, and claims decide at once. With one client id each connection ends the
other's, so they never meet: there the retained status decides. One that has moved on since our last look comes from
somebody who is alive; a foreign one that has not may be a leftover, and is given `GRACE_S` to come back.
"""

from typing import Literal

from msgspec import Struct

Verdict = Literal["yes", "wait", "no"]
Doing = Literal["looks", "acts", "stands_by"]

TIE_S = 5.0
LOOK_S = 2.0  # for the retained status to come
GRACE_S = 3.0  # longer than a node needs that comes back at once
OFFLINE_S = 10.0  # a node that was stopped may be about to start again
CLAIM_S = 60.0
ANSWER_S = 1.0
SILENT_S = 200.0  # three claims that nobody answered


class Claim(Struct, frozen=True, kw_only=True):
    """What two nodes of one id say to each other."""

    instance: str
    host: str = ""
    boot: str = ""
    up_ms: int = 0
    doing: Doing = "acts"


class Seen(Struct, frozen=True, kw_only=True):
    """Of a retained status. `state` is `offline` also where a connection was taken over."""

    claim: Claim
    state: str
    session: int

    def moved_on_from(self, before: "Seen") -> bool:
        later = self.session != before.session
        return later if self.state == "offline" else later or self.claim.up_ms != before.claim.up_ms


class Rival:
    """`instance` names this process, `known` earlier ones of this state. `up_since_s`: its start."""

    def __init__(self, instance: str, known: tuple[str, ...], up_since_s: float) -> None:
        self.instance = instance
        self._known = known
        self._up_since_s = up_since_s
        self._last: dict[str, Seen] = {}
        self._acting = False  # on this connection
        self._acted = False  # ever
        self._looked = False
        self._look_until_s = float("inf")  # nobody has looked yet
        self._grace_until_s = 0.0
        self._older: Claim | None = None
        self._older_seen_s = 0.0
        self._older_offline_s: float | None = None
        self._younger: Claim | None = None
        self._younger_seen_s = 0.0
        self._claimed_s = self._answered_s = float("-inf")

    def begin(self) -> None:
        """A connection is about to begin."""
        self._acting = self._looked = False
        self._look_until_s = float("inf")
        self._grace_until_s = 0.0

    def subscribed(self, now_s: float) -> None:
        """What is retained is on its way; our claim is to follow."""
        self._look_until_s = now_s + LOOK_S

    @property
    def doing(self) -> Doing:
        if self._older is not None:
            return "stands_by"
        return "acts" if self._acting else "looks"

    def verdict(self, now_s: float) -> Verdict:
        """Whether this node may act on this connection."""
        if self._older is not None:
            if not self._older_is_gone(now_s):
                return "no"
            self._older = None
        if not self._acting:
            if (now_s < self._look_until_s and not self._looked) or now_s < self._grace_until_s:
                return "wait"
            self._acting = self._acted = True
        return "yes"

    def claim_due(self, now_s: float) -> bool:
        """Time to ask whether the one we stand by for is still there; asked again after `CLAIM_S`."""
        due = self._older is not None and now_s - self._claimed_s >= CLAIM_S
        self._claimed_s = now_s if due else self._claimed_s
        return due

    def hear_claim(self, claim: Claim, now_s: float) -> bool:
        """True: it is to be answered with our own."""
        if claim.instance == self.instance:
            self._looked = True  # sent behind our subscriptions, so what was retained came before
            return False
        if self._is_older(claim, now_s):
            if claim.doing != "stands_by":
                self._stand_by(claim, now_s)
            # It has come back and may not know of us.
            answer = claim.doing == "looks" and now_s - self._answered_s >= ANSWER_S
            self._answered_s = now_s if answer else self._answered_s
            return answer
        self._note(claim, now_s)
        return self._older is None

    def hear_status(self, seen: Seen, now_s: float) -> bool:
        """True: it is not ours although we act, so ours is to be said again, and our claim."""
        claim = seen.claim
        if claim.instance in ("", self.instance):
            return False
        before, self._last[claim.instance] = self._last.get(claim.instance), seen
        if self._older is not None and self._older.instance == claim.instance:
            self._older_seen_s = now_s
            self._older_offline_s = now_s if seen.state == "offline" else None
        elif before is not None and seen.moved_on_from(before):
            if self._is_older(claim, now_s):
                self._stand_by(claim, now_s)
            else:
                self._note(claim, now_s)
        elif not self._acting and claim.instance not in self._known:
            if self._acted and not self._is_older(claim, now_s):
                self._note(claim, now_s)  # the last word was ours, so this one is fresh
            else:
                self._grace_until_s = now_s + GRACE_S
        return self._acting and self._older is None

    def words(self, now_s: float) -> list[str]:
        if self._older is not None:
            return [f"another node with this id has been up for longer: {_named(self._older)}; this one stands by"]
        if self._younger is not None and now_s - self._younger_seen_s < SILENT_S:
            return [f"another node with this id runs: {_named(self._younger)}; it stands by"]
        return []

    def _is_older(self, claim: Claim, now_s: float) -> bool:
        ahead_s = claim.up_ms / 1000 - (now_s - self._up_since_s)
        return claim.instance < self.instance if abs(ahead_s) < TIE_S else ahead_s > 0

    def _stand_by(self, claim: Claim, now_s: float) -> None:
        if self._older is None or self._older.instance != claim.instance:
            self._claimed_s = now_s
        self._older, self._older_seen_s, self._older_offline_s = claim, now_s, None

    def _note(self, claim: Claim, now_s: float) -> None:
        self._younger, self._younger_seen_s = claim, now_s

    def _older_is_gone(self, now_s: float) -> bool:
        if self._older_offline_s is not None and now_s - self._older_offline_s > OFFLINE_S:
            return True
        return now_s - self._older_seen_s > SILENT_S


def _named(claim: Claim) -> str:
    return f"host {claim.host or '?'}, boot {claim.boot or '?'}, instance {claim.instance}"
