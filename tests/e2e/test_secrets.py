"""What a tool makes of its secret stands nowhere: not in the journal, a message, the log, the prompt or the state file."""

from rea_edge.emulated.endpoint import ScriptedEndpoint
from tests.brokers import AnyBroker, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, call, endpoint_table, finish, questions, script, wait_online
from tests.emulated.client import Client as Listener

KEY = 'k3y-"under"-the-mat'
PART = b"under"  # whatever may be escaped around it
TOOLS = """
from rea_edge.tool import secret, tool


@tool(effect="once", needs=["weather_key"])
def leak(how: str) -> object:
    '''Give the secret away.'''
    key = secret("weather_key")
    print("printed", key, flush=True)
    if how == "raise":
        raise OSError("GET https://weather.example/?key=" + key)
    return {"text": "it is " + key, key: [key]}


@tool(effect="read", needs=["garden_key"])
def garden() -> int:
    '''Needs what the node has not.'''
    return 1
"""


def leaking(broker: AnyBroker, make_house: MakeHouse, url: str) -> House:
    house = make_house(broker, extra='[secrets]\nweather_key_file = "weather"\n' + endpoint_table(url))
    (house.folder / "devices.py").write_text(TOOLS)
    (house.folder / "weather").write_text(f"{KEY}\n")
    (house.folder / "weather").chmod(0o600)
    return house.start()


def test_a_secret_that_a_tool_gives_away_is_kept_and_told_nowhere(broker: AnyBroker, make_house: MakeHouse) -> None:
    answers = script(call("leak", how="return"), call("leak", how="raise"), finish("It leaks."))
    with ScriptedEndpoint(answers) as endpoint, Listener(broker.port, "listener") as listener:
        listener.subscribe("#")
        house = leaking(broker, make_house, endpoint.url)
        with house.client() as client:
            wait_online(client)
            wanted = "garden.needs: 'garden_key', which [secrets] does not name; it names weather_key"
            wait_until(lambda: any(wanted in fault for fault in client.status().faults), "the lack is told", 30)
            task_id, _ = client.submit({"goal": "Leak."})
            client.watch(task_id, None)
            for how in ("raise", "return"):
                client.ask("call", {"args": {"how": how}}, "leak")
            for what in ("journal", "answers"):
                client.ask("query", {"task": task_id}, what)
            for what in ("config", "status", "tools"):
                client.ask("query", {}, what)
        assert house.stop() == 0
        heard = b"".join(message.payload for message in list(listener.messages.queue))
    typed = house.run_command("export", "--state", str(house.folder / "state"))
    kept = b"".join(file.read_bytes() for file in (house.folder / "state").rglob("*") if file.is_file())
    log = house.log.read_bytes()
    assert heard.count(b"***") >= 6 and b"***" in kept and b"text=printed ***" in log and "***" in typed.stdout
    for place in (heard, kept, log, typed.stdout.encode(), b"".join(questions(endpoint))):
        assert PART not in place
