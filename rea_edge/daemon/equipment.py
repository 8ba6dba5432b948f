"""The tools of one configuration as they were loaded: what carries them out, the toolbox over it, what was wrong. No
policy."""

import logging
import threading
from collections.abc import Callable, Sequence, Set
from typing import TYPE_CHECKING

from rea_edge.config import Broker, Settings
from rea_edge.daemon.misnamed import misnamed_tools
from rea_edge.dial import device_settings, node_client_id
from rea_edge.mqtt import LinkState
from rea_edge.records import ToolKind
from rea_edge.toolbox import Carrier, Devices, Toolbox, carriers_of, host_of
from rea_edge.toolhost.confine import lacking
from rea_edge.toolhost.launch import Hosts
from rea_edge.toolhost.probes import usable

if TYPE_CHECKING:
    from rea_edge.mqtt.exchange import Exchange

log = logging.getLogger("rea_edge.node")


class Common:
    """What all sets of tools of a daemon have in common, for as long as it runs. Thread-safe. `link` tells of the node's
    own connection to the broker."""

    def __init__(self, broker: Broker, node: str, link: Callable[[], LinkState]) -> None:
        self.hosts = Hosts()
        self.devices = Devices()
        self._broker = broker
        self._node = node
        self._link = link
        self._lock = threading.Lock()
        self._exchange: Exchange | None = None

    def exchange(self) -> "Exchange":
        """The connection for devices, one for all kinds of tools that need it: a second one would end it."""
        # A node without such tools does not pay for the code of a second connection.
        from rea_edge.mqtt.exchange import Exchange

        with self._lock:
            if self._exchange is None:
                client_id = node_client_id(self._broker, self._node)
                self._exchange = Exchange(device_settings(self._broker, client_id), self._link)
            return self._exchange

    @property
    def forbidden(self) -> str:
        """Why no device can be asked at all, as far as it is known; empty where nothing speaks against it."""
        return self._exchange.forbidden if self._exchange is not None else ""

    def stop(self) -> None:
        """End what is under way with devices."""
        if self._exchange is not None:
            self._exchange.stop()


class Equipment:
    """Loads the tools that the settings name; a file that does not load is a fault, and its tools are absent."""

    def __init__(self, settings: Settings, common: Common) -> None:
        self._settings = settings
        self._common = common
        self._host = host_of(settings, settings.node.state_dir, common.hosts)
        self.toolbox = Toolbox({}, ())
        self._found: tuple[str, ...] = ()

    def load(self) -> Sequence[str]:
        """Start the host; gives what did not load. To be called once."""
        loaded = self._host.start()
        tools, unfit = usable(loaded.tools, self._settings.broker.root)
        for fault in (*loaded.faults, *unfit):
            log.error("event=tool_fault detail=%r", fault)
        self.toolbox = Toolbox(self._carriers({tool.kind for tool in tools}), tools, self._common.devices)
        self._found = (
            *loaded.faults,
            *unfit,
            *lacking(tools, self._settings.tools.user),
            *misnamed_tools(self._settings, self.toolbox.tools),
        )
        return (*loaded.faults, *unfit)

    @property
    def idle(self) -> bool:
        """No call is under way in the host."""
        return self._host.idle

    @property
    def faults(self) -> tuple[str, ...]:
        """What the loading found, and what hinders all tools of a kind now."""
        why = self._common.forbidden
        return (*self._found, *([f"MQTT tools cannot be called: {why}"] if why else []))

    def stop(self) -> None:
        """End the host and everything below it, at once."""
        self._host.stop(0.0)

    def _carriers(self, kinds: Set[ToolKind]) -> dict[ToolKind, Carrier]:
        carriers = carriers_of(self._host)
        if "mqtt" in kinds:
            from rea_edge.exchanged import Exchanged

            carriers["mqtt"] = Exchanged(self._common.exchange(), self._settings.broker.root)
        return carriers
