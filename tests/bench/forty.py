"""How a model does on the forty device tasks, per protocol: `python -m tests.bench.forty`.

By default the small model of the demonstration, once per protocol; `--model qwen` the larger one (fetched by
`rea-edge demo --model qwen`), `--endpoint URL` a server of your own. `--held-out` and `--kept-back` ask
the tasks of other sets of tools instead.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

from rea_edge.big_model import QWEN, is_fetched
from rea_edge.model_server import SMOLLM2, ModelServer, Weights
from rea_edge.records import Protocol
from tests.forty.asking import Asking, put, summary
from tests.forty.held_out import HELD_OUT
from tests.forty.kept_back import KEPT_BACK
from tests.forty.tasks import TASKS

PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("smollm2", "qwen"), default="smollm2")
    parser.add_argument("--endpoint", metavar="URL", help="an OpenAI-compatible server; default: one with --model")
    parser.add_argument("--context", type=int, default=SMOLLM2.context_tokens, help="tokens of context at --endpoint")
    sets = parser.add_mutually_exclusive_group()
    sets.add_argument("--held-out", action="store_true", help="the tasks of tests/forty/held_out.py")
    sets.add_argument("--kept-back", action="store_true", help="the tasks of tests/forty/kept_back.py")
    parser.add_argument("--protocol", choices=PROTOCOLS, action="append", help="default: all four")
    parser.add_argument("--commands", type=int, default=1, help="lines that may run in protocol command")
    chosen = parser.parse_args()
    protocols = tuple(chosen.protocol or PROTOCOLS)
    tasks = HELD_OUT if chosen.held_out else KEPT_BACK if chosen.kept_back else TASKS
    weights = QWEN if chosen.model == "qwen" else SMOLLM2
    context = chosen.context if chosen.endpoint else weights.context_tokens
    sums = []
    with _server(chosen.endpoint, weights) as url, tempfile.TemporaryDirectory() as folder:
        asking = Asking(Path(folder), url, protocols=protocols, context_tokens=context, commands=chosen.commands)
        with asking:
            for protocol in protocols:
                print(f"\n{protocol}", flush=True)
                sums.append(summary(protocol, put(asking, tasks, protocol, lambda line: print(line, flush=True))))
    print("\n" + "\n".join(sums))
    return 0


@contextmanager
def _server(url: str | None, weights: Weights) -> Iterator[str]:
    if url is not None:
        yield url
        return
    if weights is QWEN and not is_fetched():
        raise SystemExit("the larger model is not here: rea-edge demo --model qwen fetches it")
    with ModelServer(lambda _: None, weights=weights) as server:
        yield server.url


if __name__ == "__main__":
    sys.exit(main())
