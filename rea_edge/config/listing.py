"""What of a configuration may be seen from outside: an allow-list, and a hash that tells two apart. No secrets."""

import hashlib
from pathlib import Path

import msgspec

from rea_edge.allowance import Allowance
from rea_edge.canonical import canonical
from rea_edge.config.settings import Secret, Settings
from rea_edge.records import Limits, Rule


def config_hash(settings: Settings) -> str:
    """Name these settings: `sha256:` and hex. The same for equal settings, whatever files they came from; a changed
    secret does not change it, but having one or none does.
    """
    seen = msgspec.structs.replace(settings, files=())
    return "sha256:" + hashlib.sha256(canonical(msgspec.to_builtins(seen, enc_hook=_plain))).hexdigest()


def public(settings: Settings) -> dict[str, object]:
    """The settings that `query config` shows to anyone who may ask: no addresses, no paths, no logins, no secrets."""
    return {
        "node": {"id": settings.node.id, "tools": [Path(entry).name for entry in settings.node.tools]},
        "broker": _some(settings.broker, "root", "protocol", "keepalive_s", "session_expiry_s"),
        "endpoint": [
            _some(one, "name", "model", "protocol", "context_tokens", "temperature", "connect_s", "idle_s")
            for one in settings.endpoints
        ],
        "limits": {
            **_some(settings.limits, *Limits.__struct_fields__),
            **_some(settings.allowance, *Allowance.__struct_fields__),
            "queue": settings.queue.size,
            "queue_s": settings.queue.longest_s,
        },
        "queue": {key: _some(getattr(settings.paces, key), "per_s", "burst") for key in ("run", "query", "control")},
        "memory": _some(settings.memory, "soft_mib", "hard_mib", "tool_mib"),
        "store": _some(settings.store, "max_mib", "keep_days", "keep_runs"),
        "access": _some(settings.access, "identity", "plain_text"),
        "task": {
            name: {
                **_some(kind, "tools", "mode", "min_observations", "protocol", "commands", "untrusted"),
                "prompt": None if kind.prompt is None else Path(kind.prompt).name,
                "limits": _some(settings.limits_of(kind), *Limits.__struct_fields__),
            }
            for name, kind in sorted(settings.task_types.items())
        },
        "gate": {name: _rule(rule) for name, rule in sorted(settings.gates.items())},
        "peer": {name: _some(one, "tools", "effect", "timeout_s") for name, one in sorted(settings.peers.items())},
        "log": _some(settings.log, "level"),
        "config_hash": config_hash(settings),
    }


def _rule(rule: Rule) -> dict[str, object]:
    """Who may say yes is nobody else's to know, like who operates."""
    told: dict[str, object] = msgspec.to_builtins(rule)
    return {key: value for key, value in told.items() if key != "approvers"}


def _some(table: msgspec.Struct, *keys: str) -> dict[str, object]:
    return {key: getattr(table, key) for key in keys}


def _plain(value: object) -> object:
    return "set" if isinstance(value, Secret) else str(value)
