"""QoS 1 messages on the way and not acknowledged. Pure: time is given as a number."""

from msgspec import Struct

from rea_edge.mqtt.messages import Outgoing


class Sent(Struct, frozen=True, kw_only=True):
    out: Outgoing
    at_s: float
    keep: bool


class Window:
    """By the packet id of each, in the order in which they were sent."""

    def __init__(self) -> None:
        self._sent: dict[int, Sent] = {}
        self._acked_s = 0.0  # when the last acknowledgement came
        self._acked_at_s = 0.0  # when what it was for had been sent

    def __len__(self) -> int:
        return len(self._sent)

    def put(self, packet_id: int, out: Outgoing, now_s: float, *, keep: bool) -> None:
        self._sent[packet_id] = Sent(out=out, at_s=now_s, keep=keep)

    def acknowledged(self, packet_id: int, now_s: float) -> Outgoing | None:
        sent = self._sent.pop(packet_id, None)
        if sent is None:
            return None
        self._acked_s, self._acked_at_s = now_s, sent.at_s
        return sent.out

    @property
    def all(self) -> tuple[Outgoing, ...]:
        return tuple(sent.out for sent in tuple(self._sent.values()))  # the inner copy is for other threads

    @property
    def kept(self) -> list[Outgoing]:
        return [sent.out for sent in self._sent.values() if sent.keep]

    def lost_one(self, patience_s: float, now_s: float) -> bool:
        """The oldest is overdue, and that is not just a slow link on which the others advance."""
        oldest = next(iter(self._sent.values()), None)
        if oldest is None or now_s - oldest.at_s <= patience_s:
            return False
        return self._acked_at_s > oldest.at_s or now_s - self._acked_s > patience_s
