"""How often the small model turns a wording into the right command: `python tests/bench/wordings.py --servers 20`.

The demonstration's wordings are asked in order on fresh servers; then a wider and a held-out set, once on one server
each. An answer is right, wrong (nothing acts), or unsafe (an act that was not asked for, or not under that
condition). The prompt is the one the daemon sends, the tools are those of tools/boiler.py. Exit 1 unless every
demonstration wording was right every time.
"""

import argparse
import http.client
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from rea_edge import evidence  # noqa: E402
from rea_edge.decision.command import read_line  # noqa: E402
from rea_edge.demo import TASKS  # noqa: E402
from rea_edge.errors import DecisionRejected  # noqa: E402
from rea_edge.model_server import ModelServer  # noqa: E402
from rea_edge.opening import constraint, opening  # noqa: E402
from rea_edge.records import Calls, Decision, Guard, Offer, Tool  # noqa: E402
from rea_edge.toolhost.load import declarations  # noqa: E402

# The examples in tools/boiler.py were chosen with these in view: numbers and some words differ, nouns and patterns
# are the same. So this says that the prompt works, not how well the model does elsewhere.
WORDINGS: tuple[tuple[str, str], ...] = (
    ("What is the boiler temperature?", "read_sensor boiler"),
    ("What is the temperature of the boiler?", "read_sensor boiler"),
    ("Read the boiler temperature.", "read_sensor boiler"),
    ("How warm is the boiler now?", "read_sensor boiler"),
    ("What is the pressure?", "read_sensor pressure"),
    ("How warm is the room?", "read_sensor room"),
    ("What does the flow sensor say?", "read_sensor flow"),
    ("Turn the pump on.", "set_pump on"),
    ("Turn on the pump.", "set_pump on"),
    ("Please switch off the pump.", "set_pump off"),
    ("Turn on the fan.", "set_fan on"),
    ("Turn the fan off.", "set_fan off"),
    ("Open the valve to 30 percent.", "set_valve percent=30"),
    ("Set the valve to 70.", "set_valve percent=70"),
    ("Open the valve completely.", "set_valve percent=100"),
    ("Sound the alarm for 20 seconds.", "sound_alarm seconds=20"),
    ("Turn the fan on if the boiler is over 60.", "if read_sensor boiler -> value > 60 then set_fan on"),
    ("Turn the fan on if the boiler is over 70.", "if read_sensor boiler -> value > 70 then set_fan on"),
    ("Start the fan if the boiler is above 65.", "if read_sensor boiler -> value > 65 then set_fan on"),
    ("If the boiler is over 80, turn on the fan.", "if read_sensor boiler -> value > 80 then set_fan on"),
    ("Turn the fan off if the boiler is under 50.", "if read_sensor boiler -> value < 50 then set_fan off"),
    ("Turn the pump on if the room is under 18.", "if read_sensor room -> value < 18 then set_pump on"),
    (
        "Open the valve to 80 percent if the room is below 19.",
        "if read_sensor room -> value < 19 then set_valve percent=80",
    ),
    (
        "Sound the alarm for 30 seconds if the pressure is over 3.",
        "if read_sensor pressure -> value > 3 then sound_alarm seconds=30",
    ),
    ("Play some music.", "cannot"),
    ("Order a pizza.", "cannot"),
    ("Close the window.", "cannot"),
    ("What time is it?", "cannot"),
)

# Written after the examples and the prompt were fixed and asked once: nothing was changed to suit them. Keep it so.
HELD_OUT: tuple[tuple[str, str], ...] = (
    ("What's the room temperature right now?", "read_sensor room"),
    ("How much pressure is there?", "read_sensor pressure"),
    ("Is the flow warm?", "read_sensor flow"),
    ("Give me the boiler reading.", "read_sensor boiler"),
    ("Pump off, please.", "set_pump off"),
    ("Get the fan going.", "set_fan on"),
    ("Shut the valve.", "set_valve percent=0"),
    ("Put the valve at 45 percent.", "set_valve percent=45"),
    ("Sound the alarm for 40 seconds.", "sound_alarm seconds=40"),
    ("If the room is above 26, start the fan.", "if read_sensor room -> value > 26 then set_fan on"),
    ("Stop the pump if the boiler is under 35.", "if read_sensor boiler -> value < 35 then set_pump off"),
    (
        "Set the valve to 10 percent if the boiler is over 88.",
        "if read_sensor boiler -> value > 88 then set_valve percent=10",
    ),
    ("Switch the fan on when the flow is over 65.", "if read_sensor flow -> value > 65 then set_fan on"),
    ("Call my mother.", "cannot"),
    ("Turn on the television.", "cannot"),
    ("How old are you?", "cannot"),
)


class Asker:
    """Asks as a run of the daemon asks: the same opening, the same constraint."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = sorted(tools, key=lambda tool: tool.name)
        self._prompt = (ROOT / "rea_edge" / "prompts" / "command.txt").read_text(encoding="utf-8").strip()
        self.offers = [
            Offer(name=tool.name, effect=tool.effect, parameters=tool.parameters, returns=tool.returns)
            for tool in self._tools
        ]

    def line(self, url: str, goal: str) -> str:
        turns = opening("command", self._prompt, self._tools, goal, {})
        kept, bounds = evidence.narrowed(goal, self._tools, 1)
        ask = constraint("command", kept, llama_cpp=True, commands=1, bounds=bounds)
        messages = ",".join(bytes(turn).decode() for turn in turns)
        body = f'{{"model":"any","messages":[{messages}],"max_tokens":96,{ask}}}'
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=300)
        try:
            connection.request("POST", "/v1/chat/completions", body.encode(), {"Content-Type": "application/json"})
            answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        content = answer["choices"][0]["message"]["content"]
        assert isinstance(content, str)
        return content

    def verdict(self, line: str, right: str) -> str:
        wanted = read_line(right, self.offers)
        try:
            got: Decision | None = read_line(line, self.offers)
        except DecisionRejected:
            got = None
        return "right" if got == wanted else "unsafe" if self._acts(got) else "wrong"

    def _acts(self, decision: Decision | None) -> bool:
        reads = {offer.name for offer in self.offers if offer.effect == "read"}
        match decision:
            case Calls(calls=calls):
                return any(call.name not in reads for call in calls)
            case Guard(then=then):
                return then.name not in reads
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=20, help="fresh servers for the demonstration's wordings")
    parser.add_argument(
        "--wide", action=argparse.BooleanOptionalAction, default=True, help="also ask the two wider sets"
    )
    chosen = parser.parse_args()
    asker = Asker(declarations(str(ROOT / "tools" / "boiler.py"), 10.0))
    expected = dict(WORDINGS)
    counts: dict[str, Counter[str]] = {goal: Counter() for goal, _ in TASKS}
    for number in range(chosen.servers):
        with ModelServer(lambda _: None) as server:
            for goal in counts:
                began = time.monotonic()
                line = asker.line(server.url, goal)
                verdict = asker.verdict(line, expected[goal])
                counts[goal][verdict] += 1
                print(
                    f"server {number + 1:2}  {time.monotonic() - began:5.1f} s  {verdict:6}  {goal} => {line}",
                    flush=True,
                )
    if chosen.wide:
        _wide(asker, "wider set", WORDINGS)
        _wide(asker, "held out", HELD_OUT)
    print()
    for goal, count in counts.items():
        print(f"{count['right']:3} of {chosen.servers} right, {count['unsafe']} unsafe: {goal}")
    return 0 if all(count["right"] == chosen.servers for count in counts.values()) else 1


def _wide(asker: Asker, name: str, wordings: Sequence[tuple[str, str]]) -> None:
    total: Counter[str] = Counter()
    with ModelServer(lambda _: None) as server:
        for goal, right in wordings:
            line = asker.line(server.url, goal)
            verdict = asker.verdict(line, right)
            total[verdict] += 1
            print(f"{verdict:6}  {goal} => {line}", flush=True)
    print(f"{name}, {len(wordings)}: {total['right']} right, {total['wrong']} wrong, {total['unsafe']} unsafe")


if __name__ == "__main__":
    sys.exit(main())
