"""Whose requests must be signed, whether they are, and how fresh they are. Owns the row `signed` of the store.

What keeps a signed request from being used again:

1. A task or call runs once for its id, however often it comes, for as long as its name is kept (eight days at least).
2. What is older than that is refused by its `sent_at`: no signed request may be older than `MOST_S`, whatever its
   `ttl_ms` says. While the node's clock is not trusted, its age is reckoned from that person's newest signed request
   and the time that the node has lived since; and it must name the node's `epoch`, so that nothing from before a lost
   state counts.
3. A control that would do something a second time (release, halt...) is remembered for as long as it counts as fresh,
   before it acts.

Nothing here believes the broker: neither that a request expires nor that it came straight.
"""

import hashlib
from collections.abc import Callable, Mapping

import msgspec
from msgspec import field

from rea_edge import intake
from rea_edge.config import Access
from rea_edge.errors import RequestRefused, StoreFull
from rea_edge.records import Frozen
from rea_edge.signature import is_signed
from rea_edge.store import Reading, Store, Transaction
from rea_edge.topics import Inbound
from rea_edge.wire import CtlRequest, NodeRequest, Reply, Request

KEY = "signed"
MOST_S = 43_200.0  # of a request's age; the name of its run is kept for eight days at least
CONTROLS = 200  # that are remembered at once; more are refused, and each is forgotten once it is too old anyway
REPEATABLE = ("cancel", "settle")  # by their own rules: the same once more does nothing


class Newest(Frozen, frozen=True, kw_only=True):
    """The newest request of a person: when he sent it, and when it came, in seconds of the state's life. `key` names
    the key it was signed with: what a new key signs is never older than the key."""

    key: str
    sent: float
    lived_s: float


class Controlled(Frozen, frozen=True, kw_only=True):
    sig: str
    until_s: float  # of the state's life


class Kept(Frozen, frozen=True, kw_only=True):
    newest: dict[str, Newest] = field(default_factory=dict)
    controls: tuple[Controlled, ...] = ()


_KEPT = msgspec.json.Decoder(Kept)


class Signers:
    """`access` says who has a key today, and whether who has none may send. `lived_s` counts seconds of the state's life."""

    def __init__(self, access: Callable[[], Access], store: Store, lived_s: Callable[[], float]) -> None:
        self._access = access
        self._store = store
        self._lived_s = lived_s
        self._answers: dict[str, Reply | None] = {}  # to the newest controls, by their signature
        self.refused = 0  # requests with a wrong signature, or without one

    @property
    def _keys(self) -> Mapping[str, bytes]:
        return self._access().key_bytes

    def signs(self, who: str) -> bool:
        """Whether requests in this name must be signed."""
        return who in self._keys

    def check(self, topic: str, inbound: Inbound, letter: intake.Letter) -> None:
        """Refuse what this name's owner has not signed, in the same words whatever is wrong with it."""
        key = self._keys.get(inbound.who)
        if key is None and self._access().identity != "keys":
            return
        if key is None or not is_signed(key, topic, letter.keys):
            self.refused += 1
            raise RequestRefused(
                "policy_denied",
                f"a request of {inbound.who} needs the signature of his key, and has none that is right",
            )
        if letter.id is None:
            raise RequestRefused("bad_request", "id: a signed request needs one, or it could be sent again by others")

    def check_age(self, who: str, request: Request, what: intake.AgedAs, now: float | None) -> None:
        """Refuse a signed request that is too old, or of which nothing proves that it is not."""
        if request.sent_at is None:
            raise RequestRefused("bad_request", "sent_at: a signed request must say when it was sent")
        ttl_s = _ttl_s(request, what)
        if now is not None:
            capped = msgspec.structs.replace(request, ttl_ms=int(ttl_s * 1000))
            intake.check_age(capped, what, waited_s=None, expires=False, now=now)
            return
        sent = intake.instant(request.sent_at)
        if what != "query" and request.epoch is None:
            raise RequestRefused(
                "expired",
                "the clock of this node is not trusted: a signed request must name its epoch (see its status)",
            )
        newest = self._newest(_kept(self._store), who)
        if newest is not None and newest.sent + self._lived_s() - newest.lived_s - sent > ttl_s:
            raise RequestRefused("expired", f"sent long before another request of {who}; it may be {ttl_s:.0f} s old")

    def note(self, tx: Transaction, who: str, sent_at: object) -> None:
        """Inside the transaction that accepts a request of this person: nothing much older counts from now on."""
        if who in self._keys and isinstance(sent_at, str):
            kept = _kept(tx)
            _keep(tx, self._noted(kept, who, sent_at))

    # --- controls

    def said_before(self, who: str, request: CtlRequest | NodeRequest) -> Reply | None:
        """What was answered to this very control, if it was met before; None: it is new, and written down by now."""
        if who not in self._keys or request.sig is None or request.do in REPEATABLE:
            return None
        if (answer := self._answers.get(request.sig)) is not None:
            return answer
        if request.do == "reload" and request.sig in self._answers:
            return None  # it goes on, and is known there
        try:
            self._remember(who, request, request.sig)
        except StoreFull:
            if request.do != "halt":
                raise  # of that one it is better that it is done twice than not
        self._answers[request.sig] = None
        while len(self._answers) > CONTROLS:
            del self._answers[next(iter(self._answers))]
        return None

    def _remember(self, who: str, request: CtlRequest | NodeRequest, sig: str) -> None:
        with self._store.transaction() as tx:
            kept, now_s = _kept(tx), self._lived_s()
            fresh = [one for one in kept.controls if one.until_s >= now_s]
            if any(one.sig == sig for one in fresh):
                raise RequestRefused(
                    "outcome_unknown", "this was met before the node's last start; see its state, then send a new one"
                )
            if len(fresh) >= CONTROLS:
                raise RequestRefused("busy", "too many signed controls in a short time", retryable=True)
            until_s = now_s + _ttl_s(request, "ctl") + intake.CLOCK_SLACK_S
            controls = (*fresh, Controlled(sig=sig, until_s=until_s))
            _keep(tx, msgspec.structs.replace(self._noted(kept, who, request.sent_at or ""), controls=controls))

    def answered(self, sig: str, reply: Reply) -> None:
        """Keep the answer to a control, for whoever sends it again."""
        if sig in self._answers:
            self._answers[sig] = reply

    # --- inside

    def _noted(self, kept: Kept, who: str, sent_at: str) -> Kept:
        sent, lived_s, known = intake.instant(sent_at), self._lived_s(), self._newest(kept, who)
        if known is not None and known.sent + lived_s - known.lived_s >= sent:
            return kept
        newest = Newest(key=_named(self._keys[who]), sent=sent, lived_s=lived_s)
        others = {name: one for name, one in kept.newest.items() if name in self._keys}
        return msgspec.structs.replace(kept, newest={**others, who: newest})

    def _newest(self, kept: Kept, who: str) -> Newest | None:
        known = kept.newest.get(who)
        return known if known is not None and known.key == _named(self._keys[who]) else None


def _ttl_s(request: Request, what: intake.AgedAs) -> float:
    return min((request.ttl_ms or intake.TTL_MS[what]) / 1000, MOST_S)


def _named(key: bytes) -> str:
    return hashlib.sha256(b"rea-edge key" + key).hexdigest()[:16]


def _kept(store: Reading) -> Kept:
    text = store.meta_get(KEY)
    return _KEPT.decode(text) if text else Kept()


def _keep(tx: Transaction, kept: Kept) -> None:
    tx.meta_set(KEY, msgspec.json.encode(kept).decode())
