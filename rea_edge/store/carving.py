"""Rows out of raw pages, without SQLite: for a file that it does not open or not follow any more.

Every cell of every leaf is tried as a row of ours, and its CRC says whether it is one: so nothing is guessed, and a
missing header, a cut file or pages of garbage cost only what stood in them. What was deleted may come up again from
pages that are not in use. Pure; knows the file format (sqlite.org/fileformat2.html), no file.
"""

import struct
from collections.abc import Iterator, Mapping

from msgspec import Struct

from rea_edge.store.layout import EVENT, OUTBOX, PAGE_BYTES, RUN
from rea_edge.store.rows import Column, crc_of

_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR = 13, 10, 2
_KINDS = (_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR)
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # bytes by serial type
_WAL_HEADER, _FRAME_HEADER = 32, 24
# Tables by whether their rows have a number of their own, and their columns without the CRC.
_SHAPES = {
    (True, len(RUN)): "run", (True, 2): "request", (True, len(OUTBOX)): "outbox",
    (True, 1 + len(EVENT)): "event", (False, len(EVENT)): "event", (False, 2): "meta",
}  # fmt: skip
_REAL = {"run": (RUN.index("at"), RUN.index("ended_at")), "event": (EVENT.index("at"),)}

Pages = Mapping[int, bytes]


class Row(Struct, frozen=True):
    """A row as it was written, without its CRC, which was right."""

    table: str
    columns: tuple[Column, ...]


def rows_in(file: bytes, wal: bytes) -> Iterator[Row]:
    """Every row that stands in a page of the file or in a frame of its WAL, the file's first, the WAL's in order.

    The same row may come more than once, and older forms of it before newer ones.
    """
    pages = dict(enumerate(_cut(file, 0, 0), 1))
    for number, page in pages.items():
        yield from _rows(page, 100 if number == 1 else 0, (pages,))
    logs: dict[bytes, dict[int, bytes]] = {}  # by salt: each time that the WAL is begun anew it has another
    frames = list(_frames(wal))
    for salt, number, page in frames:
        logs.setdefault(salt, dict(pages))[number] = page
    for salt, number, page in frames:
        yield from _rows(page, 100 if number == 1 else 0, (logs[salt], pages))


def _cut(content: bytes, start: int, header: int) -> Iterator[bytes]:
    for place in range(start, len(content), PAGE_BYTES + header):
        # The last one of a cut file is short: what it lacks reads as nothing.
        yield content[place : place + PAGE_BYTES + header].ljust(PAGE_BYTES + header, b"\0")


def _frames(wal: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    for frame in _cut(wal, _WAL_HEADER, _FRAME_HEADER):
        yield frame[8:16], int.from_bytes(frame[:4]), frame[_FRAME_HEADER:]


def _rows(page: bytes, start: int, views: tuple[Pages, ...]) -> Iterator[Row]:
    """`start` is where the page's own header is; `views` say which pages a long row may go on in."""
    kind = page[start]
    if kind not in _KINDS:
        return
    count = int.from_bytes(page[start + 3 : start + 5])
    pointers = start + (12 if kind == _INDEX_INTERIOR else 8)
    for place in range(pointers, min(pointers + 2 * count, PAGE_BYTES - 1), 2):
        cell = int.from_bytes(page[place : place + 2])
        for view in views:
            if row := _row(page, cell, kind, view):
                yield row
                break


def _row(page: bytes, cell: int, kind: int, view: Pages) -> Row | None:
    try:
        place = cell + 4 if kind == _INDEX_INTERIOR else cell
        size, place = _varint(page, place)
        number = None
        if kind == _TABLE_LEAF:
            number, place = _varint(page, place)
        record = _record(_payload(page, place, size, kind == _TABLE_LEAF, view))
    except (IndexError, KeyError, ValueError, struct.error):
        return None  # no cell, or one that lies partly in a page that is gone
    return _ours(record, number)


def _ours(record: list[Column], number: int | None) -> Row | None:
    table = _SHAPES.get((number is not None, len(record) - 1))
    if table is None:
        return None
    *columns, crc = record
    if table == "event":
        columns = columns[-len(EVENT) :]  # its place says nothing more; version 1 had none
    elif number is not None:
        columns[0] = number  # an INTEGER PRIMARY KEY stands in the record as nothing
    for place in _REAL.get(table, ()):
        if isinstance(value := columns[place], int):  # SQLite stores 1.0 as 1
            columns[place] = float(value)
    return Row(table, tuple(columns)) if crc == crc_of(table, columns) else None


def _payload(page: bytes, place: int, size: int, table: bool, view: Pages) -> bytes:
    most = PAGE_BYTES - 35 if table else (PAGE_BYTES - 12) * 64 // 255 - 23
    if size <= most:
        return page[place : place + size]
    if size > len(view) * PAGE_BYTES:
        raise ValueError("longer than all there is")
    least = (PAGE_BYTES - 12) * 32 // 255 - 23
    local = least + (size - least) % (PAGE_BYTES - 4)
    local = local if local <= most else least
    parts, left = [page[place : place + local]], size - local
    following = int.from_bytes(page[place + local : place + local + 4])
    while left > 0:
        more = view[following]
        parts.append(more[4 : 4 + left])
        left -= PAGE_BYTES - 4
        following = int.from_bytes(more[:4])
    return b"".join(parts)


def _record(payload: bytes) -> list[Column]:
    header, place = _varint(payload, 0)
    at, values = header, []
    while place < header:
        kind, place = _varint(payload, place)
        value, at = _value(payload, kind, at)
        values.append(value)
    if at > len(payload):
        raise ValueError("the record is cut")
    return values


def _value(payload: bytes, kind: int, at: int) -> tuple[Column, int]:
    if kind in _INTEGERS:
        end = at + _INTEGERS[kind]
        return int.from_bytes(payload[at:end], signed=True), end
    match kind:
        case 0:
            return None, at
        case 7:
            (real,) = struct.unpack(">d", payload[at : at + 8])
            return real, at + 8
        case 8 | 9:
            return kind - 8, at
        case 10 | 11:
            raise ValueError("no such type")
    end = at + (kind - 12) // 2
    return (payload[at:end] if kind % 2 == 0 else payload[at:end].decode("utf-8", "replace")), end


def _varint(content: bytes, place: int) -> tuple[int, int]:
    """A number of one to nine bytes, and the place after it."""
    value = 0
    for count in range(8):
        byte = content[place + count]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + count + 1
    return value << 8 | content[place + 8], place + 9
