"""Under a real daemon no endpoint, however hostile, holds a task beyond its time or takes memory: and its end names it."""

import re
import socket
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rea_edge.client import Client
from rea_edge.emulated.endpoint import Fault, Message, Scripted, ScriptedEndpoint
from rea_edge.wire import TaskState
from tests.brokers import Mosquitto
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, endpoint_table, finish, wait_online
from tests.endpoint.servers import delta, raw_server, read_request, reply, stream

TASK_S = 0.8
LATE_S = 0.2
TRIES = 3  # a busy machine is late by chance, a hostile server each time
GROWTH_MIB = 5.0
GOOD = finish("All is well.")
OVERFLOW = "request (6030 tokens) exceeds the available context size (4096 tokens), try increasing it"
SSE = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"

# What the endpoint does, and the name that the task's end must have. Those of the first table are tried in every run.
SAMPLE: dict[str, tuple[Fault, str]] = {
    "gzip bomb": (Fault("gzip_bomb"), "encoding"),
    "huge body": (Fault("huge_body"), "body_cap"),
    "endless line": (Fault("endless_line"), "body_cap"),
    "huge header": (Fault("huge_header"), "body_cap"),
    "drip in the body": (Fault("drip_body", gap_s=0.01), "timeout_total"),
    "hang": (Fault("hang_header"), "timeout_header"),
    "error in 200": (Fault("error_in_200"), "error_in_200"),
}
ALL: dict[str, tuple[Fault, str]] = SAMPLE | {
    "drip in the header": (Fault("drip_header", gap_s=0.01), "timeout_header"),
    "hang in the body": (Fault("hang_body"), "timeout_total"),
    "cut": (Fault("cut_header"), "cut"),
    "cut in the body": (Fault("cut_body"), "cut"),
    "no finish": (Fault("no_finish"), "cut"),
    "not JSON": (Fault("not_json"), "not_json"),
    "empty choices": (Fault("empty_choices"), "empty_choices"),
    "redirect": (Fault("redirect"), "redirect"),
    "400": (Fault("status", status=400), "bad_request"),
    "401": (Fault("status", status=401), "unauthorized"),
    "404": (Fault("status", status=404, body="model not found"), "not_found"),
    "413": (Fault("status", status=413), "too_large"),
    "overflow": (Fault("status", status=400, body=OVERFLOW), "context_overflow"),
    "429": (Fault("status", status=429, headers=(("retry-after", "1"),)), "rate_limited"),
    "quota": (Fault("status", status=429, body='{"error":{"code":"insufficient_quota"}}'), "rate_limited"),
    "500": (Fault("status", status=500), "server_error"),
    "502": (Fault("status", status=502, body="<html>"), "server_error"),
    "503": (Fault("status", status=503, body="loading model"), "loading"),
    "204": (Fault("status", status=204), "wrong_shape"),
}

Bytes = bytes | tuple[bytes, bytes]  # said once, or begun with the first and gone on with the second for ever
STREAM = stream(end=b"")
RAW_SAMPLE: dict[str, tuple[Bytes, str]] = {
    "another protocol": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "wrong_shape"),
    "too much announced": (b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n", "body_cap"),
    "endless chunk header": ((SSE, b"1;" + b"x" * 5000), "wrong_shape"),
    "endless calls": ((STREAM, b'data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"a"}}]}}]}\n\n' * 99),
                      "body_cap"),
    "an error event": (stream({"error": {"message": "CUDA out of memory"}}), "error_in_200"),
}  # fmt: skip
RAW: dict[str, tuple[Bytes, str]] = RAW_SAMPLE | {
    "nothing": (b"", "cut"),
    "less than announced": (b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{}", "cut"),
    "endless interim answers": ((b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100), "body_cap"),
    "endless comments": ((STREAM, b": " + b"ping" * 999 + b"\n"), "body_cap"),
    "endless empty deltas": ((STREAM, b'data: {"choices":[{"delta":{"content":""}}], "more": "%s"}\n\n' % (b"x" * 999)),
                             "body_cap"),
    "endless usage": ((STREAM, b'data: {"choices":[],"usage":{"prompt_tokens":1}}' + b" " * 999 + b"\n\n"), "body_cap"),
    "wrong shape": (reply(b'{"choices":"none"}'), "wrong_shape"),
    "a list": (reply(b"[]"), "wrong_shape"),
    "deep nesting": (reply(b'{"choices":' + b"[" * 200_000), "wrong_shape"),
    "deep nesting of what is not read": (reply(b'{"more":' + b"[" * 200_000), "not_json"),
    "bad UTF-8": (stream(b'{"choices":[{"delta":{"content":"\xff\xfe"}}]}'), "not_json"),
    "an unknown encoding": (reply(b"x" * 100, more="content-encoding: br\r\n"), "encoding"),
}  # fmt: skip


def memory_mib(pid: int, key: str) -> float:
    """`VmRSS`, or `VmHWM`: the most since `forget_peak`."""
    found = re.search(rf"^{key}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def put(client: Client, goal: str, task_s: float) -> tuple[TaskState, float]:
    """A task's end, and how long it took from its acceptance."""
    task_id, _ = client.submit({"goal": goal, "limits": {"task_s": task_s}})
    began_s = time.monotonic()
    return client.watch(task_id, None), time.monotonic() - began_s


def check_all(client: Client, house: House, kinds: dict[str, str]) -> None:
    """One task for each kind; a good one between lets the endpoint's rest pass and shows that the daemon goes on."""
    for _ in range(3):
        assert put(client, "warm up", 20.0)[0].outcome == "achieved"
    before_mib = memory_mib(house.pid, "VmRSS")
    wrong: list[str] = []
    for name, kind in kinds.items():
        forget_peak(house.pid)
        state, took_s = put(client, f"<{name}>", TASK_S)
        for _ in range(TRIES - 1):
            if took_s <= TASK_S + LATE_S:
                break
            assert put(client, "and now a good one", 20.0)[0].outcome == "achieved"
            state, took_s = put(client, f"<{name}>", TASK_S)
        peak_mib = memory_mib(house.pid, "VmHWM")
        if kind not in (state.reason or "") or state.outcome not in ("failed", "exceeded"):
            wrong.append(f"{name}: {state.outcome}, {state.reason}")
        if max(took_s, state.usage.seconds) > TASK_S + LATE_S:
            wrong.append(f"{name}: {took_s:.2f} s, by its own account {state.usage.seconds} s")
        if peak_mib - before_mib > GROWTH_MIB:
            wrong.append(f"{name}: {peak_mib - before_mib:.1f} MiB more")
        assert put(client, "and now a good one", 20.0)[0].outcome == "achieved"
    assert not wrong, "\n".join(wrong)


def table(url: str) -> str:
    return endpoint_table(url) + "\n[task.default]\nmin_observations = 0"


def by_goal(faults: dict[str, tuple[Fault, str]]) -> Callable[[Message], Scripted]:
    def answer(request: Message) -> Scripted:
        name = re.search(r"<(.*?)>", msgspec.json.encode(request["messages"]).decode())
        return faults[name[1]][0] if name else GOOD

    return answer


def by_bytes(connection: socket.socket) -> None:
    """A server that can say what no HTTP library would."""
    while request := read_request(connection):
        name = re.search(rb"<(.*?)>", request)
        if request.startswith(b"GET"):
            connection.sendall(reply(b"{}", status="404 Not Found"))
        elif name is None:
            connection.sendall(stream(delta(content=GOOD, finish="stop")))
            connection.close()
        else:
            said = RAW[name[1].decode()][0]
            connection.sendall(said if isinstance(said, bytes) else said[0])
            while not isinstance(said, bytes):
                connection.sendall(said[1])
            connection.close()


@pytest.mark.parametrize(
    "kinds", [pytest.param(SAMPLE, id="sample"), pytest.param(ALL, id="all", marks=pytest.mark.slow)]
)
def test_a_task_at_a_hostile_endpoint_ends_in_time_small_and_by_name(
    kinds: dict[str, tuple[Fault, str]], mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    with ScriptedEndpoint(by_goal(kinds)) as server:
        check_under(make_house(mosquitto, extra=table(server.url)), {name: kind for name, (_, kind) in kinds.items()})


@pytest.mark.parametrize(
    "kinds", [pytest.param(RAW_SAMPLE, id="sample"), pytest.param(RAW, id="all", marks=pytest.mark.slow)]
)
def test_a_task_at_an_endpoint_that_speaks_no_clean_http_ends_in_time_small_and_by_name(
    kinds: dict[str, tuple[Bytes, str]], mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    with raw_server(by_bytes) as url:
        check_under(make_house(mosquitto, extra=table(url)), {name: kind for name, (_, kind) in kinds.items()})


def check_under(house: House, kinds: dict[str, str]) -> None:
    house.start()
    with house.client() as client:
        wait_online(client)
        check_all(client, house, kinds)
