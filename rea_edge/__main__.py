"""`rea-edge` and `python -m rea_edge`: runs the daemon, or hands everything else to `cli`."""

import sys


def main() -> int:
    """Gives the exit code of the command typed."""
    match sys.argv[1:]:
        case ["run"]:
            return _run_daemon(None)
        case ["run", "--config", file]:
            return _run_daemon(file)
        case ["run", flag] if flag.startswith("--config="):
            return _run_daemon(flag.removeprefix("--config="))
        case words:
            from rea_edge.cli.main import main as command

            return command(words)


def _run_daemon(file: str | None) -> int:
    # Read by hand: a daemon that lives for months should not hold an argument parser. And what is loaded at the start
    # stays: collecting while it loads finds nothing, and later collections need not look at it.
    import gc
    import os
    from pathlib import Path

    from rea_edge.config import DEFAULT_FILE, Settings, load
    from rea_edge.errors import ConfigInvalid

    gc.disable()

    def loaded() -> Settings:
        return load(Path(file) if file else DEFAULT_FILE, os.environ)

    try:
        settings = loaded()
    except ConfigInvalid as exc:
        print(f"rea-edge: {exc}", file=sys.stderr)
        return 78
    from rea_edge.daemon.main import run

    gc.freeze()
    gc.enable()
    return run(settings, loaded)


if __name__ == "__main__":
    sys.exit(main())
