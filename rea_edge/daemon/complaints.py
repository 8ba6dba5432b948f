"""What the broker would not take, in words for the operator. Holds no connection and no message."""

from rea_edge.mqtt import BROKE, verdict

TOPICS_MOST = 100  # remembered of each kind; the rest is only counted
TOO_LARGE = 0x95


class Complaints:
    """Told of each refusal and each success; a complaint about access ends when its topics are taken again.

    `base` is where this node's topics begin. `counts` are refusals since the start, by kind.
    """

    def __init__(self, base: str) -> None:
        self.counts = {"denied": 0, "later": 0, "set_aside": 0}
        self._base = base
        self._denied: dict[str, None] = {}
        self._later: dict[str, None] = {}
        self._aside = ""

    def refused(self, topic: str, reason: int) -> None:
        """It is tried again later."""
        denied = verdict(reason) == "denied"
        self.counts["denied" if denied else "later"] += 1
        topics = self._denied if denied else self._later
        topics.pop(topic, None)
        topics[topic] = None
        if len(topics) > TOPICS_MOST:
            del topics[next(iter(topics))]

    def set_aside(self, topic: str, reason: int) -> None:
        """It is not tried again."""
        self.counts["set_aside"] += 1
        self._aside = f"the broker would not take a message to {topic}: {_why(reason)}"
        self.taken(topic)

    def taken(self, topic: str) -> None:
        self._denied.pop(topic, None)
        self._later.pop(topic, None)

    def words(self) -> list[str]:
        found = []
        if self._denied:
            rule = f"its access rules must let this node write {self._base}/out/#"
            found.append(f"broker does not let us publish {_named(self._denied)}: {rule}")
        if self._later:
            found.append(f"broker refuses {_named(self._later)} for now; it is tried again")
        if self._aside:
            count = self.counts["set_aside"]
            found.append(f"{self._aside}; set aside in the state file, {count} in all")
        return found


def _named(topics: dict[str, None]) -> str:
    newest = next(reversed(topics))
    return newest if len(topics) == 1 else f"{newest} and {len(topics) - 1} more"


def _why(reason: int) -> str:
    if reason == BROKE:
        return "three connections ended while it was on the way"
    if reason == TOO_LARGE:
        return "it is larger than the broker allows"
    return f"MQTT reason {reason}"
