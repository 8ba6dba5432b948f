"""The tools of one configuration: what carries them out, the toolbox over it, what is wrong with them. No policy."""

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
    from rea_edge.peers import Peers

log = logging.getLogger("rea_edge.node")


class Common:
    """What all sets of tools of a daemon have in common, for as long as it runs. Thread-safe. `link` tells of the node's
    own connection to the broker, `now` gives trusted wall seconds or None; `changed()` is called when other tools are
    there than before."""

    def __init__(
        self,
        broker: Broker,
        node: str,
        link: Callable[[], LinkState],
        now: Callable[[], float | None],
        changed: Callable[[], None],
    ) -> None:
        self.node, self.now, self.changed = node, now, changed
        self.hosts = Hosts()
        self.devices = Devices()
        self._broker = broker
        self._link = link
        self._lock = threading.Lock()
        self._exchange: Exchange | None = None

    def exchange(self) -> "Exchange":
        """The connection for devices, one for all kinds of tools that need it: a second one would end it."""
        # A node without such tools does not pay for the code of a second connection.
        from rea_edge.mqtt.exchange import Exchange

        with self._lock:
            if self._exchange is None:
                client_id = node_client_id(self._broker, self.node)
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
        self._peers: Peers | None = None
        self.toolbox = Toolbox({}, ())
        self._found: tuple[str, ...] = ()

    def load(self) -> Sequence[str]:
        """Start the host; gives what did not load. To be called once."""
        loaded = self._host.start()
        tools, unfit = usable(loaded.tools, self._settings.broker.root)
        for fault in (*loaded.faults, *unfit):
            log.error("event=tool_fault detail=%r", fault)
        self._peers = self._other_nodes()
        carriers = self._carriers({tool.kind for tool in tools})
        self.toolbox = Toolbox(carriers, tools, self._common.devices, self._peers)
        self._found = (
            *loaded.faults,
            *unfit,
            *lacking(tools, self._settings.tools.user),
            *misnamed_tools(self._settings, self.toolbox.tools, self.toolbox.withheld),
        )
        return (*loaded.faults, *unfit)

    @property
    def idle(self) -> bool:
        """No call is under way in the host, or at another node."""
        return self._host.idle and (self._peers is None or self._peers.idle)

    @property
    def faults(self) -> tuple[str, ...]:
        """What the loading found, and what hinders tools now."""
        why = self._common.forbidden
        of_peers = self._peers.faults if self._peers is not None else []
        return (*self._found, *([f"MQTT tools cannot be called: {why}"] if why else []), *of_peers)

    def turn(self) -> None:
        """Take in what a person has accepted of other nodes since."""
        if self._peers is not None:
            self._peers.turn()

    def stop(self) -> None:
        """End the host and everything below it, and what is under way at other nodes, at once."""
        self._host.stop(0.0)
        if self._peers is not None:
            self._peers.stop()

    def _carriers(self, kinds: Set[ToolKind]) -> dict[ToolKind, Carrier]:
        carriers = carriers_of(self._host)
        if "mqtt" in kinds:
            from rea_edge.exchanged import Exchanged

            carriers["mqtt"] = Exchanged(self._common.exchange(), self._settings.broker.root)
        if self._peers is not None:
            carriers["node"] = self._peers
        return carriers

    def _other_nodes(self) -> "Peers | None":
        """Those that the settings name, listened to from now on. A set of tools has them for itself: another one may know
        other peers, or have accepted other tools of theirs."""
        if not self._settings.peers:
            return None
        from rea_edge.peers import Peers  # a node without any does not pay for them

        peers = Peers(self._settings, self._common.node, self._common.now, self._common.changed)
        peers.start()
        return peers
