"""The tools of this node as they were loaded: their host, the toolbox over it, what was wrong. Holds no policy."""

import logging

from rea_edge.config import Settings
from rea_edge.daemon.misnamed import misnamed_tools
from rea_edge.toolbox import Toolbox, carriers_of, host_of
from rea_edge.toolhost.confine import lacking

log = logging.getLogger("rea_edge.node")


class Equipment:
    """Loads the tools that the settings name; a file that does not load is a fault, and its tools are absent."""

    def __init__(self, settings: Settings) -> None:
        self._host = host_of(settings, settings.node.state_dir)
        loaded = self._host.start()
        for fault in loaded.faults:
            log.error("event=tool_fault detail=%r", fault)
        self.toolbox = Toolbox(carriers_of(self._host), loaded.tools)
        self.faults = (
            *loaded.faults,
            *lacking(loaded.tools, settings.tools.user),
            *misnamed_tools(settings, self.toolbox.tools),
        )

    def stop(self) -> None:
        """End the host and everything below it, at once."""
        self._host.stop(0.0)
