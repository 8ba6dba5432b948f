"""From words typed to an exit code: every command but `run`."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence

import msgspec

from rea_edge.cli.parser import parser
from rea_edge.errors import ConfigInvalid, NodeSilent, ReaError, RequestRefused, StoreUnusable
from rea_edge.screen import Screen

EX_OK, EX_FAILED, EX_USAGE, EX_IOERR, EX_CONFIG = 0, 1, 2, 74, 78


def main(words: Sequence[str]) -> int:
    """Run one command; gives its exit code. Errors are one line on standard error."""
    args = parser().parse_args(words)
    # A pipe that closes early (head) ends us quietly, as people expect of a command.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    screen = Screen()
    try:
        return _run(args, screen)
    except ConfigInvalid as exc:
        return _fail(exc, EX_CONFIG)
    except StoreUnusable as exc:
        return _fail(exc, EX_IOERR)
    except RequestRefused as exc:
        return _fail(f"{exc.code}: {exc.message}" + (" (try again)" if exc.retryable else ""), EX_FAILED)
    except (NodeSilent, ReaError) as exc:
        return _fail(exc, EX_FAILED)
    except (ValueError, msgspec.MsgspecError) as exc:
        return _fail(exc, EX_USAGE)
    except KeyboardInterrupt:
        return _fail("interrupted; what was accepted goes on at the node", 130)


def _run(args: argparse.Namespace, screen: Screen) -> int:
    # Imported here: each command pays only for what it needs.
    match args.command:
        case "check":
            from rea_edge.cli import look

            return look.check(args, screen)
        case "demo":
            from rea_edge import demo

            return demo.run(args, screen)
        case "decide":
            from pathlib import Path

            from rea_edge import decide

            decide.main_loop(sys.stdin.buffer, sys.stdout, Path(args.tools), sys.stderr)
            return EX_OK
        case "show" if args.state:
            from rea_edge.cli import look

            return look.show_state(args, screen)
        case "replay" if args.state:
            from rea_edge.cli import look

            return look.replay_state(args, screen)
        case _:
            return _ask(args, screen)


def _ask(args: argparse.Namespace, screen: Screen) -> int:
    from rea_edge.cli.ask import COMMANDS
    from rea_edge.client import Client
    from rea_edge.config.client import client_settings

    flags = {"broker": args.broker, "node": args.node, "who": args.who, "config": args.config}
    with Client(client_settings(flags, os.environ)) as client:
        return COMMANDS[args.command](client, args, screen)


def _fail(what: object, code: int) -> int:
    print(f"rea-edge: {what}", file=sys.stderr)
    return code
