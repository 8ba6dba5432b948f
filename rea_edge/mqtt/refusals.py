"""What a refused publication is to be met with, and rows that rest because of one. Pure: time is given as a number."""

from typing import Literal

BROKE = 0x100  # beyond MQTT's reason codes: the connection ended whenever this message was on the way
NOT_AUTHORIZED = 0x87
_PASSING = {0x80, 0x83, 0x91}  # unspecified, implementation specific, packet id in use

Verdict = Literal["denied", "never", "later"]

LATER_S = 30.0
DENIED_S = 600.0  # rules are changed by people
TRIES = 3
MOST = 50  # rows that rest; they are read past each time the outbox is looked at


def verdict(reason: int) -> Verdict:
    """`denied`: by access rules, so it may be allowed one day. `later`: the same message may pass. `never`: it will
    not be taken as it is: too large, over a quota, a topic or a QoS that the broker does not have."""
    if reason == NOT_AUTHORIZED:
        return "denied"
    return "later" if reason in _PASSING else "never"


class Resting:
    """Rows that were refused and are tried again after a while."""

    def __init__(self) -> None:
        self._due_s: dict[int, float] = {}
        self._tries: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._due_s)

    def rests(self, row: int | None, now_s: float) -> bool:
        return row is not None and self._due_s.get(row, 0.0) > now_s

    def refused(self, row: int, reason: int, now_s: float) -> bool:
        """Let it rest; False where there is no use in trying again."""
        kind = verdict(reason)
        tries = self._tries.get(row, 0) + 1
        known = row in self._due_s
        if kind == "never" or (kind == "later" and tries > TRIES) or (not known and len(self) >= MOST):
            self.forget(row)
            return False
        self._tries[row] = tries
        self._due_s[row] = now_s + (DENIED_S if kind == "denied" else LATER_S * tries)
        return True

    def forget(self, row: int) -> None:
        self._due_s.pop(row, None)
        self._tries.pop(row, None)

    def keep(self, rows: set[int], up_to: int) -> None:
        """Forget those up to row `up_to` that are not among `rows`, all that the outbox has there."""
        for row in [row for row in self._due_s if row <= up_to and row not in rows]:
            self.forget(row)
