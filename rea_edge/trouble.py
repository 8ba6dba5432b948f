"""What follows from each way in which a model server can fail, and for how long it is then left alone. A table.

Pure: times are numbers that the caller gives, and so is chance. Asks nobody and waits for nothing: see `endpoints`.
"""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, structs

# again: the same question to the same endpoint after a rest; next: another endpoint, the same one only for want of it;
# anew: a new question with a step and a reservation of its own; shrink: the same with less history; spare: the same
# without what the server refuses by name; end: no more.
Then = Literal["again", "next", "anew", "shrink", "spare", "end"]

REST_S: Final = 0.5  # after the first failure; doubles
REST_MAX_S: Final = 30.0  # a task that waits for its endpoint (60 s) tries it at least once
SHUN_S: Final = 30.0  # after a run has turned away, or a refusal that only a person mends; the latter doubles
SHUN_MAX_S: Final = 600.0
OPEN_AFTER: Final = 3  # failures in a row


class Rule(Struct, frozen=True):
    """`cost`: tokens may have been spent, so asking again is a step. `passes`: time alone may mend it."""

    then: Then
    cost: bool = False
    passes: bool = True


RULES: Final[Mapping[str, Rule]] = {
    # Nothing was generated.
    "dns": Rule("again"),
    "connect": Rule("again"),
    "timeout_connect": Rule("again"),
    "rate_limited": Rule("again"),
    "loading": Rule("again"),
    "resting": Rule("again"),  # not asked: it has failed too often, or has asked for a rest
    "tls": Rule("next", passes=False),
    "redirect": Rule("next", passes=False),
    "unauthorized": Rule("next", passes=False),
    "not_found": Rule("next", passes=False),
    "too_large": Rule("next", passes=False),
    "bad_request": Rule("next", passes=False),
    "no_endpoint": Rule("next", passes=False),
    "context_overflow": Rule("shrink", passes=False),
    "parameter_refused": Rule("spare", passes=False),
    # The server had the question, and may have worked on it. What took its time once would take it again.
    "timeout_header": Rule("next", cost=True),
    "timeout_idle": Rule("next", cost=True),
    "timeout_total": Rule("next", cost=True),
    "cut": Rule("anew", cost=True),
    "server_error": Rule("anew", cost=True),
    "not_json": Rule("anew", cost=True),
    "error_in_200": Rule("anew", cost=True),
    "empty_choices": Rule("anew", cost=True),
    "body_cap": Rule("next", cost=True, passes=False),
    "encoding": Rule("next", cost=True, passes=False),
    "wrong_shape": Rule("next", cost=True, passes=False),
    "cancelled": Rule("end", cost=True, passes=False),
}
TOO_SLOW: Final = frozenset({"timeout_header", "timeout_idle", "timeout_total"})
UNKNOWN: Final = Rule("next", cost=True, passes=False)  # a name that this table does not have


def rule_of(kind: str) -> Rule:
    return RULES.get(kind, UNKNOWN)


def may_have_cost(kind: str) -> bool:
    """Whether a question that failed in this way may have spent tokens."""
    return rule_of(kind).cost


class Standing(Struct, frozen=True):
    """How an endpoint stands: a circuit breaker. Times are monotonic seconds.

    It must not be asked before `rest_until_s`; while it is `open`, another one is asked if there is one. After that
    the next question is the trial: an answer closes it, a failure opens it for longer.
    """

    failures: int = 0  # in a row
    rest_until_s: float = 0.0
    open_until_s: float = 0.0

    def open(self, now_s: float) -> bool:
        return now_s < self.open_until_s

    def rest_s(self, now_s: float) -> float:
        return max(0.0, self.rest_until_s - now_s)


def after_failure(
    standing: Standing,
    kind: str,
    now_s: float,
    *,
    jitter: float,
    retry_after_s: float | None = None,
    passes: bool = True,
) -> Standing:
    """How it stands after a failure. `jitter` (about 1) spreads those who were turned away at the same moment.

    `passes`: the server has not said that waiting is no use (a quota that is used up).
    """
    rule = rule_of(kind)
    if rule.then in ("shrink", "spare", "end"):
        return standing  # it answers; the question was at fault, or we were
    failures = standing.failures + 1
    if not (rule.passes and passes):
        shun_s = min(SHUN_S * 2.0 ** min(failures - 1, 10), SHUN_MAX_S)
        return structs.replace(standing, failures=failures, open_until_s=now_s + shun_s)
    rest_s = min(REST_S * 2.0 ** min(failures - 1, 10), REST_MAX_S) * jitter
    if retry_after_s is not None:
        rest_s = max(rest_s, retry_after_s + REST_S * jitter)  # some say "at once", again and again
    until_s = now_s + rest_s
    open_until_s = until_s if failures >= OPEN_AFTER else standing.open_until_s
    return Standing(failures=failures, rest_until_s=until_s, open_until_s=open_until_s)


def left(standing: Standing, now_s: float) -> Standing:
    """How it stands once a run turns away from it: others do the same for a while, as long as there is another."""
    return structs.replace(standing, open_until_s=max(standing.open_until_s, standing.rest_until_s, now_s + SHUN_S))
