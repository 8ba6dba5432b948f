"""What can be typed: commands and their flags. Does nothing."""

import argparse
from typing import TypeAlias

from rea_edge import __version__
from rea_edge.tool import NAME
from rea_edge.topics import is_name

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(
        prog="rea-edge",
        description="Tasks in plain language for small boards, over MQTT.",
        epilog="`rea-edge COMMAND --help` says more. Exit codes: 0 good; 1 the task, call or check failed, or the node is "
        "silent; 2 usage; 74 state file; 75 try again; 78 configuration.",
    )
    root.add_argument("--version", action="version", version=f"rea-edge {__version__}")
    commands = root.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_local(commands)
    _add_talking(commands)
    decide = _command(commands, "decide", "read model answers (JSON lines on standard input) as decisions")
    decide.add_argument("--tools", metavar="FILE", required=True, help="tool definitions, OpenAI form")
    return root


def _add_local(commands: Commands) -> None:
    run = _command(commands, "run", "run the daemon, until SIGTERM; SIGHUP reads its configuration and tools anew")
    _config(run)
    check = _command(commands, "check", "check configuration, tools, broker and endpoint; or a state file")
    _config(check)
    _json(check)
    check.add_argument("--state", metavar="PATH", help="check this state file or folder instead, not in use")
    check.add_argument("--acl", action="store_true", help="try the broker's access rules instead, with a second login")
    check.add_argument("--as", dest="login", type=_name, metavar="NAME", help="with --acl: the login of a person")
    check.add_argument("--password-file", metavar="FILE", help="with --acl: his password")
    check.add_argument("--broker", metavar="URL", help="with --acl: where people come in, if not where nodes do")
    export = _command(commands, "export", "print all that can be read of a state file, damaged or not: JSON lines")
    export.add_argument("--state", metavar="PATH", required=True, help="a state file or folder, such as broken-1")
    _config(export)
    peers = _command(commands, "peers", "other nodes whose tools are offered here: accepted, changed, offline")
    peers.add_argument("action", nargs="?", choices=["accept"], help="pin what the card of NAME says of its tools now")
    peers.add_argument("peer", nargs="?", metavar="NAME", help="a [peer.NAME] of the configuration")
    _config(peers)
    _json(peers)
    demo = _command(commands, "demo", "a boiler room, a broker and a small model on this machine, and the daemon")
    demo.add_argument("--once", action="store_true", help="end after the three tasks; exit 0 only if all came true")
    demo.add_argument("--endpoint", metavar="URL", help="use this OpenAI-compatible server instead of the small model")
    demo.add_argument(
        "--model",
        metavar="NAME",
        default="any",
        help="smollm2 (135M), qwen (1.5B, 1.1 GB to fetch); or one at --endpoint",
    )
    demo.add_argument("--yes", action="store_true", help="fetch the larger model without asking")
    demo.add_argument(
        "--protocol", choices=["auto", "native", "json", "react", "command"], help="how to ask the model at --endpoint"
    )
    exam = _command(commands, "exam", "ask the endpoints the tools' own examples in every protocol; keep the best")
    _config(exam)
    _json(exam)
    exam.add_argument("--endpoint", metavar="NAME", help="only this one of the configuration")
    exam.add_argument(
        "--protocol", action="append", choices=["native", "json", "react", "command"], help="only this one; may repeat"
    )
    exam.add_argument("--questions", type=int, default=40, metavar="N", help="at most so many examples (40)")


def _add_talking(commands: Commands) -> None:
    task = _talks(commands, "task", "send a task, show its steps, print its answer; exit 0 only if achieved")
    task.add_argument("goal", type=_goal, help="what is to be done, in plain words")
    task.add_argument("--type", dest="kind", metavar="TYPE", help="task type of the node's configuration")
    task.add_argument("--query", action="store_true", help="may only read (mode query)")
    task.add_argument("--dry-run", action="store_true", help="tools that act are checked and not run")
    task.add_argument("--steps", type=int, help="ask the model at most this often")
    task.add_argument("--id", type=_name, metavar="ID", help="the task's id: the same id and goal is the same task")
    _talks(commands, "status", "how the node is; exit 0 only if it is online and not degraded")
    _talks(commands, "tools", "the tools of the node")
    _talks(commands, "tasks", "your tasks on the node")
    call = _talks(commands, "call", "call a tool, without a model")
    call.add_argument("tool", type=_tool, help="its name, as `rea-edge tools` lists it")
    call.add_argument("args", nargs="*", metavar="KEY=VALUE", help="a value is JSON where it can be, else a text")
    call.add_argument("--dry-run", action="store_true", help="check it and do not run it, unless it only reads")
    cancel = _talks(commands, "cancel", "cancel a task")
    cancel.add_argument("task", type=_owned, metavar="[WHO/]TASK", help="a task's id, and whose it is if not yours")
    settle = _talks(commands, "settle", "say whether a call took effect, of which the node cannot know")
    settle.add_argument("task", type=_owned, metavar="[WHO/]TASK", help="a task's or direct call's id, and whose it is")
    settle.add_argument("--n", type=int, required=True, metavar="N", help="the number of the call, as in its state")
    settle.add_argument("outcome", choices=["done", "not_done"], help="what you have found")
    _talks(commands, "halt", "operators: end what runs and let nothing act until a release")
    _talks(
        commands,
        "release",
        "take note that a node is halted or has lost its state, so that tools act again: of the node named by --node, "
        "--broker or --who, or else on the device, of the stopped node of --config",
    )
    _talks(commands, "reload", "operators: have the node read its configuration and tools anew")
    _talks(commands, "asks", "the calls that wait for a person's yes")
    for word, said in (("approve", "yes"), ("deny", "no")):
        made = _talks(commands, word, f"say {said} to a call that waits for it")
        made.add_argument(
            "task", type=_owned, metavar="[WHO/]TASK", help="a task's or call's id, or the id of the request"
        )
    show = _talks(commands, "show", "the journal of a task")
    show.add_argument("task", type=_owned, metavar="[WHO/]TASK", help="a task's id, and whose it is if not yours")
    show.add_argument("--state", metavar="FOLDER", help="read a copy of a state folder instead of asking the node")
    replay = _talks(commands, "replay", "read a task's recorded answers once more; exit 1 if any is read otherwise now")
    replay.add_argument("task", type=_owned, metavar="[WHO/]TASK", help="a task's id, and whose it is if not yours")
    replay.add_argument("--state", metavar="FOLDER", help="read a copy of a state folder instead of asking the node")


def _goal(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("a goal must say something")
    return text


def _name(text: str) -> str:
    # Asked of the node, such an id would get no answer: it is a part of the answer's topic.
    if not is_name(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no id: 1 to 36 of A-Z a-z 0-9 _ -")
    return text


def _owned(text: str) -> str:
    who, slash, task = text.rpartition("/")
    if slash:
        _name(who)
    _name(task)
    return text


def _tool(text: str) -> str:
    if NAME.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a tool: up to 48 of a-z 0-9 _")
    return text


def _talks(commands: Commands, name: str, words: str) -> argparse.ArgumentParser:
    made = _command(commands, name, words)
    made.add_argument("--broker", metavar="URL", help="such as mqtt://127.0.0.1:1883; default: as for --node")
    where = "default: $REA_EDGE_NODE, client.toml, the daemon's file"
    made.add_argument("--node", metavar="NAME", help=f"the node to talk to; {where}")
    made.add_argument("--who", metavar="NAME", help="your name as a sender; default: your login, else your user name")
    made.add_argument("--signing-key-file", metavar="FILE", help="sign what is sent with the key in this file")
    made.add_argument("--config", metavar="FILE", help="read broker and node from the daemon's configuration")
    _json(made)
    return made


def _command(commands: Commands, name: str, words: str) -> argparse.ArgumentParser:
    return commands.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")


def _config(made: argparse.ArgumentParser) -> None:
    made.add_argument("--config", metavar="FILE", help="default: /etc/rea-edge/config.toml")


def _json(made: argparse.ArgumentParser) -> None:
    made.add_argument("--json", action="store_true", help="print JSON")
