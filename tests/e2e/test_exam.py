"""`rea-edge exam` beside a running node, and what the node makes of its result."""

import json

from rea_edge.emulated.endpoint import ScriptedEndpoint
from tests.brokers import Mosquitto
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import endpoint_table, wait_online

GIVE_UP = json.dumps({"action": "give_up", "reason": "no tool"})


def test_auto_takes_what_the_exam_found_best_and_card_check_and_health_show_it(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    """The exam is the shipped command; the node takes its result up without a restart."""

    def answers(request: dict[str, object]) -> str:
        command = "Commands:" in json.dumps(request["messages"])
        if command:
            return "look tank"
        return GIVE_UP

    with ScriptedEndpoint(answers) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url, "auto")).start(WATCHDOG_USEC="3000000")
        with house.client() as client:
            wait_online(client)
            before, _ = client.submit({"goal": "Look at the tank."})
            assert client.watch(before, None).outcome == "gave_up"
            done = house.run_command("exam", "--config", str(house.config))
            assert "command  1 of 1 right" in done.stdout and "auto takes command" in done.stdout, (
                done.stdout + done.stderr
            )
            while (card := client.hear(client.topics.all("card"), 20.0)) is not None:
                if json.loads(card.payload)["endpoints"][0]["exam"]:
                    break
            assert card is not None, "the card is told again, on the same connection"
            after, _ = client.submit({"goal": "Look at the pipe of the tank."})
            client.watch(after, None)
            assert "Commands:" in endpoint.requests[-1].body.decode()
            health = client.data("query", {}, "metrics")
            assert isinstance(health, dict) and health["exams"]["scripted"].startswith("command 1 of 1 right")
        checked = house.run_command("check", "--config", str(house.config))
        assert "auto takes command" in checked.stdout
