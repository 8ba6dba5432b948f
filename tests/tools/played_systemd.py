"""systemctl and journalctl as far as `services` uses them: their output, their words, their exit codes (systemd 252).

Called as PROGRAM FILE ARGUMENTS; the file keeps what each unit is. Independent of the tool it is for: it refuses any
argument that it does not know, as the real ones do.
"""

import json
import sys
import time
from pathlib import Path

TYPES = {"sleeper": "simple", "wrong": "oneshot", "errand": "oneshot", "slow": "oneshot", "masked": ""}


def main(program: str, file: Path, words: list[str]) -> int:
    units = json.loads(file.read_text()) if file.exists() else {}
    if program == "journalctl":
        return journal(units, words)
    verb, *rest = words
    known = {"--no-pager", "--no-ask-password", "--quiet", "--property"}
    if unknown := [word for word in rest[: rest.index("--")] if word.startswith("-") and word not in known]:
        print(f"systemctl: unrecognized option '{unknown[0]}'", file=sys.stderr)
        return 1
    unit = rest[rest.index("--") + 1]
    name = unit.removesuffix(".service")
    if verb == "show":
        return show(units, name, rest[rest.index("--property") + 1].split(","))
    code = change(units, verb, name)
    file.write_text(json.dumps(units))
    return code


def show(units: dict[str, dict[str, object]], name: str, wanted: list[str]) -> int:
    found = units.get(name, {})
    load = "masked" if name == "masked" else "loaded" if name in TYPES else "not-found"
    told = {
        "Type": TYPES.get(name, ""),
        "NRestarts": "0",
        "MemoryCurrent": "401408" if found.get("state") == "active" else "[not set]",
        "LoadState": load,
        "ActiveState": found.get("state", "inactive"),
        "UnitFileState": {"loaded": "static", "masked": "masked"}.get(load, ""),
        "ActiveEnterTimestampMonotonic": str(found.get("since", 0)),
    }
    for key, value in told.items():
        if key in wanted:
            print(f"{key}={value}")
    return 0


def change(units: dict[str, dict[str, object]], verb: str, name: str) -> int:
    if name not in TYPES:
        print(f"Failed to {verb} {name}.service: Unit {name}.service not found.", file=sys.stderr)
        return 5
    if name == "slow" and verb != "stop":
        time.sleep(1000)
    if name == "wrong" and verb != "stop":
        units[name] = {"state": "failed"}
        print(
            f"Job for {name}.service failed because the control process exited with error code.\n"
            f'See "systemctl status {name}.service" and "journalctl -xeu {name}.service" for details.',
            file=sys.stderr,
        )
        return 1
    runs = verb != "stop" and TYPES[name] == "simple"
    units[name] = {"state": "active", "since": time.monotonic_ns() // 1000} if runs else {"state": "inactive"}
    return 0


def journal(units: dict[str, dict[str, object]], words: list[str]) -> int:
    options = dict(zip(words[::2], words[1::2], strict=False))
    lines = units.get("journal", {}).get(options["--unit"], [])
    assert isinstance(lines, list) and options["--output"] == "json"
    for line in lines[-int(options["--lines"]) :]:
        print(json.dumps(line))
    if units.get("journal", {}).get("unreadable"):
        print("No journal files were opened due to insufficient permissions.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
