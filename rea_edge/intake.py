"""From the bytes of a request to its record: parsing and checking, rules 1 and 4 of the wire contract.

Holds no store and no transport; raises `RequestRefused` with the code for the sender.
"""

import datetime
from collections.abc import Mapping
from typing import Literal, TypeVar

import msgspec

from rea_edge import canonical
from rea_edge.errors import RequestRefused
from rea_edge.records import Frozen, Mode
from rea_edge.takes import remedy
from rea_edge.topics import is_name
from rea_edge.wire import PAYLOAD_MAX, Request, TaskRequest

AgedAs = Literal["task", "call", "ctl", "query"]
# How old a request may be on arrival that does not say so itself; a task that may only read counts as a query.
TTL_MS: dict[AgedAs, int] = {"task": 60_000, "call": 60_000, "ctl": 60_000, "query": 3_600_000}
BODY_KEYS = ("goal", "type", "mode", "limits", "context", "continues", "dry_run")
CLOCK_SLACK_S = 5.0  # a sender's clock may be that far ahead before its request counts as from the future
T = TypeVar("T", bound=Request)
_SCALARS = (b"true", b"false", b"null")


class Letter(Frozen, frozen=True, kw_only=True):
    """A request before its keys are checked: a JSON object, or the plain text of a goal."""

    keys: dict[str, object]
    plain: bool = False

    @property
    def id(self) -> str | None:
        """The sender's id if it can be read, so that even a bad request is answered by name."""
        given = self.keys.get("id")
        return given if isinstance(given, str) and is_name(given) else None

    @property
    def body_hash(self) -> str:
        """Names the body of a task: the keys that say what is to be done, as sent."""
        return canonical.body_hash({key: self.keys[key] for key in BODY_KEYS if key in self.keys})


def opened(payload: bytes, *, plain_mode: Mode | None) -> Letter:
    """Read a payload. `plain_mode` is the mode of a goal sent as plain text; None where only JSON is taken."""
    if len(payload) > PAYLOAD_MAX:
        raise RequestRefused("too_large", f"a request has at most {PAYLOAD_MAX} bytes, this one has {len(payload)}")
    text = payload.removeprefix(b"\xef\xbb\xbf").strip()
    if plain_mode is not None and not _looks_like_json(text):
        return _plain(text)
    try:
        value = canonical.parse(payload)
    except ValueError as exc:
        raise RequestRefused("bad_request", f"the payload is not good JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise RequestRefused("bad_request", "the payload must be a JSON object")
    return Letter(keys=value)


def as_request(keys: Mapping[str, object], kind: type[T]) -> T:
    """Check the keys of a request, unknown ones included."""
    try:
        return msgspec.convert(keys, kind)
    except msgspec.ValidationError as exc:
        raise RequestRefused("bad_request", f"{exc}{remedy(str(exc), kind)}") from exc


def call_hash(tool: str, args: Mapping[str, object], *, dry_run: bool) -> str:
    """Names the body of a direct call: its tool and arguments, as sent, and whether it is only tried."""
    try:
        return canonical.body_hash({"tool": tool, "args": args} | ({"dry_run": True} if dry_run else {}))
    except ValueError as exc:
        raise RequestRefused("bad_request", f"args: {exc}") from exc


def check_task(request: TaskRequest) -> None:
    """Refuse what a task may ask by the contract but this version does not do: never ignored in silence."""
    if request.continues is not None:
        raise RequestRefused("bad_request", "continues: follow-up tasks are not supported by this version")
    if len(request.goal.encode()) > PAYLOAD_MAX or not request.goal.strip():
        raise RequestRefused("bad_request", "goal: must say something")


def check_epoch(request: Request, epoch: str) -> None:
    if request.epoch is not None and request.epoch != epoch:
        raise RequestRefused("stale_epoch", f"the request is for state {request.epoch}, this node has {epoch}")


def check_way(request: Request, node: str) -> None:
    """Refuse what has come by this node before: it would come again and again."""
    if node in (request.via or ()):
        raise RequestRefused("policy_denied", f"via: this has come by {node} already: {' < '.join(request.via or ())}")


def check_age(request: Request, what: AgedAs, *, waited_s: float | None, expires: bool, now: float | None) -> None:
    """Refuse what is older on arrival than its `ttl_ms` (rule 4).

    `waited_s` is how long it may have lain in the broker's queue (None: it came straight), `expires` whether the
    broker itself would have dropped it in time, `now` trusted wall seconds or None.
    """
    ttl_s = (request.ttl_ms or TTL_MS[what]) / 1000
    sent = None if request.sent_at is None else instant(request.sent_at)
    if sent is not None and now is not None:
        if now - sent > ttl_s:
            raise RequestRefused("expired", f"sent {now - sent:.0f} s ago; it may be {ttl_s:.0f} s old")
        if sent - now > CLOCK_SLACK_S:
            raise RequestRefused("bad_request", "sent_at lies in the future: check the sender's clock")
        return
    if waited_s is not None and not expires and waited_s > ttl_s:
        raise RequestRefused(
            "expired", f"it waited while the node was away, up to {waited_s:.0f} s; it may be {ttl_s:.0f} s old"
        )


def instant(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 time, which must name its offset (`Z` for UTC)."""
    try:
        at = datetime.datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise RequestRefused("bad_request", f"sent_at: not a time like 2026-01-31T12:00:00Z: {text[:40]!r}")
    return at.timestamp()


def _looks_like_json(text: bytes) -> bool:
    if text[:1] in (b"{", b"[", b'"') or text in _SCALARS:
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True


def _plain(text: bytes) -> Letter:
    try:
        goal = text.decode()
    except UnicodeDecodeError as exc:
        raise RequestRefused("bad_request", f"a plain goal must be UTF-8: {exc.reason} at byte {exc.start}") from exc
    if not goal:
        raise RequestRefused("bad_request", "the payload is empty")
    return Letter(keys={"goal": goal}, plain=True)
