"""How a model does on the forty device tasks, per protocol: `python -m tests.bench.forty`.

By default the small model of the demonstration, once per protocol. `--endpoint URL` asks a server of your own.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

from rea_edge.model_server import CONTEXT_TOKENS, ModelServer
from rea_edge.records import Protocol
from tests.forty.asking import Asking, put, summary
from tests.forty.tasks import TASKS

PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoint", metavar="URL", help="an OpenAI-compatible server; default: the small model")
    parser.add_argument("--context", type=int, default=CONTEXT_TOKENS, help="tokens of context at --endpoint")
    parser.add_argument("--protocol", choices=PROTOCOLS, action="append", help="default: all four")
    parser.add_argument("--commands", type=int, default=1, help="lines that may run in protocol command")
    chosen = parser.parse_args()
    protocols = tuple(chosen.protocol or PROTOCOLS)
    sums = []
    with _server(chosen.endpoint) as url, tempfile.TemporaryDirectory() as folder:
        asking = Asking(Path(folder), url, protocols=protocols, context_tokens=chosen.context, commands=chosen.commands)
        with asking:
            for protocol in protocols:
                print(f"\n{protocol}", flush=True)
                sums.append(summary(protocol, put(asking, TASKS, protocol, lambda line: print(line, flush=True))))
    print("\n" + "\n".join(sums))
    return 0


@contextmanager
def _server(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    with ModelServer(lambda _: None) as server:
        yield server.url


if __name__ == "__main__":
    sys.exit(main())
