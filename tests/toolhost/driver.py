"""The daemon's part in a process of its own, so that a test can kill it: `driver.py STATE_DIR FILE TOOL`.

Prints `ready` and then what the call gives. Tests only.
"""

import sys
from pathlib import Path

from msgspec import json

from rea_edge.toolhost.client import ToolHost

if __name__ == "__main__":
    folder, file, name = sys.argv[1:]
    host = ToolHost(Path(folder), [Path(file)], memory_mib=64)
    tools = {tool.name: tool for tool in host.start().tools}
    print("ready", *host.pids(), flush=True)
    print(json.encode(host.call(tools[name], {}, "d-1", 60.0)), flush=True)
