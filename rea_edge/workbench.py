"""The tools of one file, called as a node calls them, without a node: for whoever writes a tool and tests it.

A call is checked, bounded by the `ranges` that are declared, run in a process of its own under its true limits of time,
memory, output, descriptors and file system, and shown as a model would see it. What depends on a node or on other calls
(rate, dwell, hours, requires, interlocks, a person's yes, the journal) is not here.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from rea_edge import gate, schema
from rea_edge.config.settings import Broker, Memory
from rea_edge.dial import device_settings, person_client_id
from rea_edge.errors import EffectFailed, ToolInvalid
from rea_edge.exchanged import Exchanged
from rea_edge.gate import Facts
from rea_edge.mqtt.exchange import Exchange
from rea_edge.records import Args, Call, Fault, Rule, Tool
from rea_edge.toolbox import Toolbox, carriers_of
from rea_edge.toolhost.client import ToolHost
from rea_edge.visible import visible

WAIT_S = 5.0  # for its device, beside what all attempts may take


class Workbench:
    """A file's tools by name in `tools`. `state_dir` is what they see as `REA_STATE_DIR`, `secrets` are those that they
    may need, by name. Use as a context manager.

    `broker` gives the URL of the one where the devices of MQTT tools are; it is asked only where a file has such tools.

    Settings of a tool are environment variables `REA_TOOL_*`, as they are when the file is loaded. Raises `ToolInvalid`
    where it does not load, with file, line and what is allowed.
    """

    def __init__(
        self,
        file: Path,
        state_dir: Path,
        *,
        memory_mib: int = Memory().tool_mib,
        broker: Callable[[], str] = lambda: Broker().url,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        self._host = ToolHost(state_dir, (file,), memory_mib=memory_mib, secrets=secrets)
        self._secrets = tuple((secrets or {}).values())
        loaded = self._host.start()
        if loaded.faults:
            self._host.stop(0.0)
            raise ToolInvalid(str(file), "; ".join(loaded.faults))
        carriers = carriers_of(self._host)
        self._exchange: Exchange | None = None
        if any(tool.kind == "mqtt" for tool in loaded.tools):
            self._exchange = Exchange(device_settings(Broker(url=broker()), person_client_id("bench")))
            carriers["mqtt"] = Exchanged(self._exchange, Broker().root)
        self._toolbox = Toolbox(carriers, loaded.tools)
        self._calls = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def tools(self) -> dict[str, Tool]:
        return self._toolbox.tools

    def close(self) -> None:
        """End every process of the tools, and the connection to their devices."""
        self._host.stop(0.0)
        if self._exchange is not None:
            self._exchange.stop()

    def call(self, name: str, args: Args, request_id: str = "") -> object:
        """What the call gives, as JSON value. Without `request_id` each call has one of its own.

        Raises `DecisionRejected` for arguments that do not fit, `EffectFailed` for a call that failed: its `kind` is
        that of the fault (`tool_error`, `timeout`, `memory`, `denied`...), its message what a model would read.
        """
        tool = self._toolbox.tools.get(name)
        if tool is None:
            raise EffectFailed("unknown_tool", f"there is no tool {name!r}; there are {', '.join(self.tools)}")
        valid = msgspec.convert(schema.compile(tool.parameters, place=name).check(args), Args)
        if why := gate.breach(_own(tool), Call(name=name, args=valid), tool.parameters, Facts()):
            raise EffectFailed("denied", why)
        self._calls += 1
        seconds = tool.timeout_s * (tool.retries + 1) + WAIT_S
        result = self._toolbox.run(name, valid, request_id or f"bench-{self._calls}", seconds)
        shown = visible(result, tool, self._secrets)
        if isinstance(shown, Fault):
            raise EffectFailed(shown.fault, shown.message, shown.suggestion)
        return msgspec.json.decode(shown.data)


def _own(tool: Tool) -> Rule:
    """Of its rule what holds whatever the time and whatever was called before."""
    return Rule(ranges=tool.rule.ranges) if tool.rule is not None else Rule()
