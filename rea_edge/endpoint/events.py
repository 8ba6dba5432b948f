"""Server-sent events from raw bytes, with a cap. Knows nothing of what the events mean; no I/O.

`httpx.iter_lines` keeps an endless line for as long as memory lasts, so lines are cut here.
"""

from typing import Final

from rea_edge.endpoint.faults import failed

# Members of ours that other servers put in front of a payload: old llama.cpp sends its failures as `error: {...}`.
_ERROR_FIELD: Final = b"error"


class EventReader:
    """Takes bytes as they come, gives each event's payload once it is whole."""

    def __init__(self, cap_bytes: int) -> None:
        self._cap_bytes = cap_bytes
        self._line = bytearray()  # of the line that has not ended yet
        self._payload: list[bytes] = []
        self._payload_bytes = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The payloads completed by `chunk`. Raises `body_cap` when one event is larger than the cap."""
        events: list[bytes] = []
        # splitlines takes \\n, \\r\\n and \\r alike; a chunk that ends between \\r and \\n gives one empty line more,
        # which at worst ends an event early, where only a comment or the next event can follow.
        for line in chunk.splitlines(keepends=True):
            self._line += line
            if line.endswith((b"\n", b"\r")):
                self._take_line(bytes(self._line).rstrip(b"\r\n"), events)
                self._line.clear()
            if len(self._line) + self._payload_bytes > self._cap_bytes:
                raise failed("body_cap", f"one event of the stream is larger than {self._cap_bytes} bytes")
        return events

    def rest(self) -> list[bytes]:
        """What the stream's end leaves: many servers send no blank line after their last event."""
        events: list[bytes] = []
        self._take_line(bytes(self._line), events)
        self._take_line(b"", events)
        self._line.clear()
        return events

    def _take_line(self, line: bytes, events: list[bytes]) -> None:
        if not line:
            if self._payload:
                events.append(b"\n".join(self._payload))
            self._payload = []
            self._payload_bytes = 0
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._payload.append(value)
            self._payload_bytes += len(value) + 1
        elif name == _ERROR_FIELD:
            events.append(b'{"error":' + value + b"}")
