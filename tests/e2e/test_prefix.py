"""A run that is killed at each of its questions sends each of them again, byte for byte."""

import threading

from rea_edge.emulated.endpoint import Held, ScriptedEndpoint
from tests.brokers import Mosquitto
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import (
    call,
    endpoint_table,
    finish,
    questions,
    script,
    turns_so_far,
    wait_for_questions,
    wait_online,
)

ANSWERS = (call("look", name="tank"), call("turn", percent=10), call("look", name="pipe"), finish("All is done."))


def test_a_run_killed_at_each_question_sends_the_same_bytes_again(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    answered, never = script(*ANSWERS), threading.Event()
    killed: set[int] = set()

    def once_held(request: dict[str, object]) -> Held | str:
        turn = turns_so_far(request)
        if turn in killed:
            return answered(request)
        killed.add(turn)
        return Held(answered(request), never)

    with ScriptedEndpoint(once_held) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url, steps=20)).start()
        with house.client(silent_s=30) as client:
            wait_online(client)
            task_id, _ = client.submit({"goal": "Look, turn, look."})
            for number in range(len(ANSWERS)):
                wait_for_questions(endpoint, 2 * number + 1)
                house.kill()
                house.start()
            state = client.watch(task_id, None)
        never.set()
        prompts = [body.split(b',"max_tokens"')[0] for body in questions(endpoint)]
    assert state.outcome == "achieved"
    assert len(prompts) == 2 * len(ANSWERS)
    assert prompts[0::2] == prompts[1::2]
    for earlier, later in zip(prompts[0::2], prompts[2::2], strict=False):
        assert later.startswith(earlier.split(b'],"')[0]), "what was said before is said again"
