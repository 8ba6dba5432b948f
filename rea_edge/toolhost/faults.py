"""The closed list of names a `records.Fault` of a tool can have; from `unconfined` on nothing had run.

| fault | means |
| --- | --- |
| `tool_error` | the function raised (`TypeName: text`), or the program ended with an exit code above 0 |
| `timeout` | it was still running at its deadline and was ended |
| `cancelled` | it was ended because somebody asked for that |
| `memory` | it asked for more memory than a tool may have |
| `cpu` | it used more seconds of processor than a tool may have |
| `output` | it wrote more than a result may be |
| `crashed` | it ended by a signal, or without giving a result |
| `bad_result` | it returned something that is not JSON: bytes, a set, NaN |
| `host_gone` | the tool host ended during the call: how far the tool came is not known |
| `broker_gone` | an MQTT tool: the broker went away when the device may have heard the message |
| `unconfined` | the sandbox that it declares, or the user that it is to run as, cannot be had: nothing had run |
| `missing_program` | the program of a command tool is not there or cannot be executed |
| `bad_args` | the arguments cannot be given to the tool |
| `unknown_tool` | the tool host has no such tool, or another than the caller knows |
| `no_host` | no tool host could be started |
| `no_broker` | an MQTT tool: the broker could not be reached in time; nothing was sent |
| `offline` | an MQTT tool: its device says that it is not there; nothing was sent |
| `denied_by_broker` | an MQTT tool: the broker refused a topic or a message; the device heard nothing |
| `not_sent` | an MQTT tool: it was cancelled before anything was sent |
| `busy` | the tool's device was not free within the caller's time |

And of a tool of another node:

| fault | means |
| --- | --- |
| `unclear` | that node says that nobody knows whether it took effect, or its answer does not say whether it had started |
| `denied` | its gate, or a person there, said no: nothing had run |
| `refused` | it took the request for a bad or a late one: nothing had run |

and `offline`, `no_broker`, `denied_by_broker` and `not_sent` as of an MQTT tool.
"""

from typing import Literal

from rea_edge.records import Fault

FaultName = Literal[
    "tool_error", "timeout", "cancelled", "memory", "cpu", "output", "crashed", "bad_result", "host_gone",
    "unconfined", "missing_program", "bad_args", "unknown_tool", "no_host", "busy",
    "broker_gone", "no_broker", "offline", "denied_by_broker", "not_sent", "unclear", "denied", "refused",
]  # fmt: skip

LONGEST_MESSAGE = 500


def fault(name: FaultName, message: str, suggestion: str = "") -> Fault:
    """A fault with its message cut to what a model needs."""
    cut = message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 1] + "…"
    # A lone surrogate (undecodable file names have them) cannot be sent as JSON.
    return Fault(fault=name, message=cut.encode("utf-8", "replace").decode(), suggestion=suggestion)
