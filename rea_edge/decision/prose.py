"""Where in a reply a person would read something: outside parts, marks and reasoning. Holds places, judges nothing."""

from bisect import bisect_right

from rea_edge.decision.scan import Scan


class Prose:
    """Where a person would read something: outside parts, marks and reasoning."""

    def __init__(self, scan: Scan) -> None:
        self.text = scan.text
        spans = [(piece.start, piece.end) for piece in scan.pieces if not piece.shown] + scan.noise + scan.gone
        self.starts: list[int] = []
        self.ends: list[int] = []
        at = scan.opened
        for first, last in [*sorted(spans), (scan.end, scan.end)]:
            if first > at and _said(self.text[at:first]):
                self.starts.append(at)
                self.ends.append(min(first, scan.end))
            at = max(at, last)

    def between(self, start: int, end: int) -> bool:
        number = bisect_right(self.ends, start)
        while number < len(self.starts) and self.starts[number] < end:
            if _said(self.text[max(start, self.starts[number]) : min(end, self.ends[number])]):
                return True
            number += 1
        return False


def _said(text: str) -> bool:
    return bool(text.strip(" \t\r\n\ufeff\u200b`~;"))
