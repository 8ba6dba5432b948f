"""The tools of this node as they were loaded: what carries them out, the toolbox over it, what was wrong. No policy."""

import logging
from collections.abc import Callable, Set
from typing import TYPE_CHECKING

from rea_edge.config import Settings
from rea_edge.daemon.misnamed import misnamed_tools
from rea_edge.dial import device_settings, node_client_id
from rea_edge.mqtt import LinkState
from rea_edge.records import ToolKind
from rea_edge.toolbox import Carrier, Toolbox, carriers_of, host_of
from rea_edge.toolhost.confine import lacking
from rea_edge.toolhost.probes import usable

if TYPE_CHECKING:
    from rea_edge.mqtt.exchange import Exchange

log = logging.getLogger("rea_edge.node")


class Equipment:
    """Loads the tools that the settings name; a file that does not load is a fault, and its tools are absent. `link`
    tells of the node's own connection to the broker."""

    def __init__(self, settings: Settings, node: str, link: Callable[[], LinkState]) -> None:
        self._settings = settings
        self._node = node
        self._link = link
        self._exchange: Exchange | None = None
        self._host = host_of(settings, settings.node.state_dir)
        loaded = self._host.start()
        tools, unfit = usable(loaded.tools, settings.broker.root)
        for fault in (*loaded.faults, *unfit):
            log.error("event=tool_fault detail=%r", fault)
        self.toolbox = Toolbox(self._carriers({tool.kind for tool in tools}), tools)
        self._found = (
            *loaded.faults,
            *unfit,
            *lacking(tools, settings.tools.user),
            *misnamed_tools(settings, self.toolbox.tools),
        )

    @property
    def faults(self) -> tuple[str, ...]:
        """What the loading found, and what hinders all tools of a kind now."""
        why = self._exchange.forbidden if self._exchange is not None else ""
        return (*self._found, *([f"MQTT tools cannot be called: {why}"] if why else []))

    def stop(self) -> None:
        """End the host and everything below it, at once, and what is under way with devices."""
        self._host.stop(0.0)
        if self._exchange is not None:
            self._exchange.stop()

    def _carriers(self, kinds: Set[ToolKind]) -> dict[ToolKind, Carrier]:
        carriers = carriers_of(self._host)
        if "mqtt" in kinds:
            # A node without such tools does not pay for the code of a second connection.
            from rea_edge.exchanged import Exchanged

            carriers["mqtt"] = Exchanged(self._devices(), self._settings.broker.root)
        return carriers

    def _devices(self) -> "Exchange":
        """The connection for devices, one for all kinds of tools that need it."""
        from rea_edge.mqtt.exchange import Exchange

        if self._exchange is None:
            broker = self._settings.broker
            self._exchange = Exchange(device_settings(broker, node_client_id(broker, self._node)), self._link)
        return self._exchange
