"""Tool names as models write them, resolved to the offered ones. Near names are told to the model, never run."""

import difflib
import re
from collections.abc import Sequence

from rea_edge.errors import DecisionRejected
from rea_edge.records import Offer

_MOST_LISTED = 12
_SHOWN = 60
_AROUND = " \t\r\n\u00a0\u200b\u200c\u200d\u2060\ufeff`*\"'“”‘’"
_PREFIX = re.compile(r"(?:functions|default_api)[.:](?=.)")
_SUFFIX = re.compile(r"(?:\(\)|（）|:\d+)$")
_CONTROL = re.compile(r"<[|｜].*", re.DOTALL)
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class Names:
    """The names offered in one turn."""

    def __init__(self, offers: Sequence[Offer]) -> None:
        self.offers = {offer.name: offer for offer in offers}

    def find(self, written: str) -> Offer | None:
        """The one offered tool that is certainly meant: exact, else without marks around it, else in another case."""
        if written in self.offers:
            return self.offers[written]
        name = _bare(written)
        if name in self.offers:
            return self.offers[name]
        folded = [offer for known, offer in self.offers.items() if known.lower() == name.lower()]
        return folded[0] if len(folded) == 1 else None

    def get(self, written: object) -> Offer:
        """Like `find`, but raises `unknown_tool` with the closest names where none is meant."""
        if not isinstance(written, str) or not written.strip(_AROUND):
            raise DecisionRejected("unknown_tool", f"The call has no tool name. {self.listed('')}")
        offer = self.find(written)
        if offer is None:
            raise DecisionRejected(
                "unknown_tool", f"There is no tool `{shown(_bare(written))}`. {self.listed(written)}"
            )
        return offer

    def may_go_on(self, written: str) -> bool:
        """Whether what is written may be the beginning of a longer name that is offered."""
        name = _bare(written)
        return any(known.startswith(name) and known != name for known in self.offers)

    def listed(self, near: str) -> str:
        """Name what is offered, the closest to `near` first."""
        if not self.offers:
            return "No tools are offered."
        close = difflib.get_close_matches(near[:_SHOWN].lower(), list(self.offers), n=3, cutoff=0.3)
        names = list(dict.fromkeys([*close, *self.offers]))
        more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
        return f"Tools: {', '.join(names[:_MOST_LISTED])}{more}."


def shown(text: str) -> str:
    """A short, printable form of what a model wrote, for a message."""
    text = _UNFIT.sub("\ufffd", text)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _bare(written: str) -> str:
    name = _CONTROL.sub("", written).strip(_AROUND)
    name = _PREFIX.sub("", name, count=1)
    for _ in range(2):
        name = _SUFFIX.sub("", name).strip(_AROUND)
    return name
