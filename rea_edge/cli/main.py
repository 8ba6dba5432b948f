"""From words typed to an exit code: every command but `run`."""

import argparse
import logging
import os
import signal
import sys
from collections.abc import Sequence

import msgspec

from rea_edge.cli.parser import parser
from rea_edge.errors import ConfigInvalid, NodeSilent, ReaError, RequestRefused, StoreBusy, StoreUnusable
from rea_edge.screen import Screen

EX_OK, EX_FAILED, EX_USAGE, EX_IOERR, EX_TEMPFAIL, EX_CONFIG, EX_INTERRUPTED = 0, 1, 2, 74, 75, 78, 130


def main(words: Sequence[str]) -> int:
    """Run one command; gives its exit code. Errors are one line on standard error."""
    args = parser().parse_args(words)
    # A pipe that closes early (head) ends us quietly, as people expect of a command.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    # The log is for a daemon's operator. Here a person looks on, and gets one line that says what went wrong.
    logging.getLogger("rea_edge").addHandler(logging.NullHandler())
    screen = Screen()
    try:
        return _run(args, screen)
    except ConfigInvalid as exc:
        return _fail(args, "config_invalid", exc, EX_CONFIG)
    except StoreBusy as exc:
        return _fail(args, "busy", f"{exc}: stop the service first", EX_TEMPFAIL)
    except StoreUnusable as exc:
        return _fail(args, "store_failed", exc, EX_IOERR)
    except RequestRefused as exc:
        return _fail(args, exc.code, exc.message, EX_FAILED, f"{exc.code}: ", " (try again)" if exc.retryable else "")
    except NodeSilent as exc:
        return _fail(args, "silent", exc, EX_FAILED)
    except ReaError as exc:
        return _fail(args, "failed", exc, EX_FAILED)
    except (ValueError, msgspec.MsgspecError) as exc:
        return _fail(args, "usage", exc, EX_USAGE)
    except KeyboardInterrupt:
        at_node = (
            "" if args.command in {"demo", "check", "release", "peers"} else "; what was accepted goes on at the node"
        )
        return _fail(args, "interrupted", f"interrupted{at_node}", EX_INTERRUPTED)


def _run(args: argparse.Namespace, screen: Screen) -> int:
    # Imported here: each command pays only for what it needs.
    match args.command:
        case "run":
            # `__main__` runs the daemon, by hand and without us: what comes here is not how it is called.
            raise ValueError("run takes --config FILE, or nothing")
        case "check" if args.state:
            from rea_edge.cli import state

            return state.check(args, screen)
        case "export":
            from rea_edge.cli import state

            return state.export(args, screen)
        case "check":
            from rea_edge.cli import look

            return look.check(args, screen)
        case "release" if not (args.broker or args.node or args.who):
            from rea_edge.cli import release

            return release.run(args, screen)
        case "peers":
            from rea_edge.cli import peers

            return peers.run(args, screen)
        case "demo":
            from rea_edge import demo

            return demo.run(args, screen)
        case "exam":
            from rea_edge.cli import exam

            return exam.run(args, screen)
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
    flags["signing_key_file"] = args.signing_key_file
    approver = args.command in {"asks", "approve", "deny"}
    with Client(client_settings(flags, os.environ), approver=approver) as client:
        return COMMANDS[args.command](client, args, screen)


def _fail(args: argparse.Namespace, code: str, what: object, exit_code: int, before: str = "", after: str = "") -> int:
    """One line for a person on standard error; with --json also an object on standard output."""
    print(f"rea-edge: {before}{what}{after}", file=sys.stderr)
    if getattr(args, "json", False):
        print(msgspec.json.encode({"ok": False, "error": {"code": code, "message": str(what)}}).decode())
    return exit_code
