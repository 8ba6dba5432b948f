"""Rows as values, and the CRC over every column of each. Pure: must not open, read or write anything."""

import base64
import uuid
import zlib
from collections.abc import Sequence
from typing import Literal

import msgspec

from rea_edge.records import Outcome, State

Column = int | float | str | bytes | None
RunKind = Literal["task", "call"]
MessageKind = Literal["state", "reply", "aside"]
Shown = Literal["yes", "dropped", "cleared", "pruned"]

_ENCODER = msgspec.msgpack.Encoder()


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `seq` counts its events so far, which are numbered from 0; `body` is the hash of what was asked.

    `shown` is what became of its newest state: in the outbox or published (also before there is one), dropped from a
    full outbox, or taken off the broker again. `pruned`: only this row is left of it, without request and events; `seq`
    still says how many there were. `at` is wall seconds, or None where the clock was not trusted; `ended_at` is seconds
    of the state's life.
    """

    row: int
    kind: RunKind
    who: str
    id: str
    body: str
    request: bytes
    state: State
    outcome: Outcome | None
    seq: int
    shown: Shown
    at: float | None
    ended_at: float | None


class EventRow(msgspec.Struct, frozen=True, kw_only=True):
    seq: int
    body: bytes
    at: float | None


class OutboxRow(msgspec.Struct, frozen=True, kw_only=True):
    """A message that waits to be published. `state`: only the newest of its topic matters; `reply`: each matters;
    `aside`: the broker will not take it, and it is kept only to be looked at.

    `run` is the row of the run whose state it is, None for any other message.
    """

    row: int
    kind: MessageKind
    run: int | None
    topic: str
    payload: bytes
    qos: int
    retain: bool
    correlation: bytes | None


class StoreUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What the store takes and has had to give up. `dropped` and `damaged` count rows since the start.

    `outbox_published` of the `outbox_rows` have been published and go with the next transaction; `outbox_aside` are set
    aside.
    """

    used_bytes: int
    max_bytes: int
    wal_bytes: int
    runs: int
    outbox_rows: int
    outbox_bytes: int
    outbox_published: int
    outbox_aside: int
    dropped: int
    damaged: int


def crc_of(table: str, columns: Sequence[Column]) -> int:
    """CRC-32 over the table's name and every column with its type, as a signed number (it takes less room so)."""
    crc = zlib.crc32(_ENCODER.encode((table, *columns)))
    return crc - (1 << 32) if crc & 0x80000000 else crc


def run_name(epoch: str, row: int) -> str:
    """The run id: unique over nodes and state files, since the epoch is."""
    return f"r{base64.b32encode(uuid.UUID(epoch).bytes)[:8].decode().lower()}-{row}"
