"""Exchanges with real small models on llama.cpp, as recorded: what was asked, and what came back byte for byte."""

import json
from pathlib import Path

from rea_edge.emulated.endpoint import Fault
from rea_edge.records import Args, Offer, Protocol

FILE = Path(__file__).parent / "exchanges.jsonl"
# The command lines of these recordings had a grammar of their own.
COMMANDS = {
    "read": ("sensor", ["cpu_temp", "humidity", "light", "disk"]),
    "status": ("name", ["mosquitto", "nginx", "telegraf"]),
    "restart": ("name", ["mosquitto", "nginx", "telegraf"]),
}


def exchanges() -> list[Args]:
    return [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]


def as_sent(exchange: Args) -> Fault:
    """The recorded response, for a scripted endpoint."""
    response = exchange["response"]
    status = exchange["status"]
    assert isinstance(status, int)
    if isinstance(response, str):
        body, kind = _stream(response), "text/event-stream"
    else:
        body, kind = json.dumps(response), "application/json"
    return Fault("status", status=status, body=body, headers=(("content-type", kind),))


def protocol_of(exchange: Args) -> Protocol:
    """How this answer was asked for, in our words."""
    request = _request(exchange)
    if "tools" in request:
        return "native"
    if "grammar" in request:
        return "command"
    if "Observation:" in str(request.get("stop")):
        return "react"
    return "json" if "JSON object" in str(request.get("messages")) or "response_format" in request else "native"


def offers_of(exchange: Args) -> list[Offer]:
    """The tools on offer: those of the request, else those that its prompt lists, or the words of its grammar."""
    if protocol_of(exchange) == "command":
        return [_command(name, key, values) for name, (key, values) in COMMANDS.items()]
    given = _tools(exchange)
    return [_offer(tool["function"]) for tool in given or max(map(_tools, exchanges()), key=len)]


def _tools(exchange: Args) -> list[dict[str, Args]]:
    given = _request(exchange).get("tools")
    return given if isinstance(given, list) else []


def _request(exchange: Args) -> Args:
    request = exchange["request"]
    assert isinstance(request, dict)
    return request


def _offer(function: Args) -> Offer:
    name, parameters = function["name"], function["parameters"]
    assert isinstance(name, str) and isinstance(parameters, dict)
    reads = name.startswith(("read", "service_status", "disk"))
    return Offer(name=name, effect="read" if reads else "once", parameters=parameters)


def _command(name: str, key: str, values: list[str]) -> Offer:
    shape: Args = {"type": "object", "properties": {key: {"enum": values}}, "required": [key]}
    return Offer(name=name, effect="once" if name == "restart" else "read", parameters=shape)


def _stream(raw: str) -> str:
    """The body of a chunked response written down with its head."""
    lines = raw.split("\r\n\r\n", 1)[1]
    body, at = "", 0
    while (end := lines.find("\r\n", at)) >= 0 and (size := int(lines[at:end] or "0", 16)):
        body += lines[end + 2 : end + 2 + size]
        at = end + 4 + size
    return body
