"""What a command that talks to a node needs to know: which broker, which node, who asks. No other settings."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from rea_edge.config.checks import check_node, convert
from rea_edge.config.document import document, documents, merged
from rea_edge.config.keys import signing_key
from rea_edge.config.load import DEFAULT_FILE, default_id, in_file, with_credentials
from rea_edge.config.settings import Broker, Secret, Table
from rea_edge.errors import ConfigInvalid

_ENVIRON = {
    "REA_EDGE_BROKER": "url",
    "REA_EDGE_ROOT": "root",
    "REA_EDGE_USERNAME": "username",
    "REA_EDGE_PASSWORD_FILE": "password_file",
    "REA_EDGE_CA_FILE": "ca_file",
    "REA_EDGE_CERT_FILE": "cert_file",
    "REA_EDGE_KEY_FILE": "key_file",
    "REA_EDGE_PROTOCOL": "protocol",
}  # and REA_EDGE_INSECURE=1, REA_EDGE_NODE, REA_EDGE_WHO, REA_EDGE_CONFIG, REA_EDGE_SIGNING_KEY_FILE


class Client(Struct, frozen=True, kw_only=True):
    """`node` is None where nothing names one: then it must be asked for or found by its status. Without a
    `signing_key` requests are not signed."""

    broker: Broker
    node: str | None
    who: str
    signing_key: Secret | None = None


class _Layer(Struct, frozen=True, kw_only=True):
    """One source. `broker` holds keys of a `[broker]` table; `whole`: a file, which always speaks of one broker."""

    broker: dict[str, object]
    node: str | None = None
    who: str | None = None
    signing_key_file: Path | None = None
    whole: bool = False


class _ClientFile(Table, frozen=True):
    node: str | None = None
    who: str | None = None
    signing_key_file: Path | None = None
    # hex digits, the same as at the nodes that ask for it; default: requests are not signed
    broker: Broker = Broker()


def client_settings(args: Mapping[str, str | None], environ: Mapping[str, str]) -> Client:
    """Settle each setting by the first source that has it: flags, REA_EDGE_*, client.toml, the daemon's file.

    `args` has `broker` (a URL), `node`, `who`, `signing_key_file`, `config` (the daemon's file); absent or None: not
    given. client.toml (in `~/.config/rea-edge`) has the keys node, who and signing_key_file, and a `[broker]` table as
    the daemon's. Login and TLS of a
    source count only for the broker it names, so that a password never goes to another. `who` defaults to the login,
    else to the user's name. Raises ConfigInvalid: exit 78 (or 2 for flags, as the caller likes).
    """
    layers = [_flags(args), _environ(environ), *_files(args, environ)]
    broker = with_credentials(_broker(layers), None)
    node = next((layer.node for layer in layers if layer.node), None)
    who = next((layer.who for layer in layers if layer.who), None) or _default_who(broker, environ)
    check_node(node or "", "node")
    check_node(who, "who")
    file = next((layer.signing_key_file for layer in layers if layer.signing_key_file), None)
    key = signing_key(file, "signing_key_file") if file is not None else None
    return Client(broker=broker, node=node, who=who, signing_key=key)


def _flags(args: Mapping[str, str | None]) -> _Layer:
    url = args.get("broker")
    return _Layer(
        broker={"url": url} if url else {},
        node=args.get("node"),
        who=args.get("who"),
        signing_key_file=_path(args.get("signing_key_file")),
    )


def _environ(environ: Mapping[str, str]) -> _Layer:
    broker: dict[str, object] = {key: environ[name] for name, key in _ENVIRON.items() if environ.get(name)}
    if environ.get("REA_EDGE_INSECURE", "").lower() in {"1", "true", "yes"}:
        broker["insecure"] = True
    key_file = _path(environ.get("REA_EDGE_SIGNING_KEY_FILE"))
    return _Layer(
        broker=broker, node=environ.get("REA_EDGE_NODE"), who=environ.get("REA_EDGE_WHO"), signing_key_file=key_file
    )


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def _files(args: Mapping[str, str | None], environ: Mapping[str, str]) -> list[_Layer]:
    found: list[_Layer] = []
    home = environ.get("XDG_CONFIG_HOME") or (environ["HOME"] + "/.config" if environ.get("HOME") else None)
    if home and (own := Path(home) / "rea-edge" / "client.toml").is_file():
        found.append(_client_file(own))
    named = args.get("config") or environ.get("REA_EDGE_CONFIG")
    # A person may well not be allowed to read the daemon's file; only one that was asked for must be there.
    if named or os.access(DEFAULT_FILE, os.R_OK):
        found.append(_daemon_file(Path(named) if named else DEFAULT_FILE))
    return found


def _client_file(file: Path) -> _Layer:
    keys = document(file).keys
    try:
        found = convert(keys, _ClientFile)
    except ConfigInvalid as exc:
        raise in_file(exc, file) from exc
    return _Layer(
        broker=_table(keys, "broker"),
        node=found.node,
        who=found.who,
        signing_key_file=found.signing_key_file,
        whole=True,
    )


def _daemon_file(file: Path) -> _Layer:
    keys = merged(documents(file))
    broker, node = _table(keys, "broker"), _table(keys, "node").get("id")
    try:
        login = convert(broker, Broker, "broker").username
    except ConfigInvalid as exc:
        raise in_file(exc, file) from exc
    # A client has a session of its own: with the daemon's client id it would take the daemon's away.
    broker = {key: value for key, value in broker.items() if key != "client_id"}
    return _Layer(broker=broker, node=node if isinstance(node, str) and node else default_id(login), whole=True)


def _table(keys: Mapping[str, object], name: str) -> dict[str, object]:
    found = keys.get(name)
    return found if isinstance(found, dict) else {}


def _broker(layers: list[_Layer]) -> Broker:
    url = next((url for layer in layers if (url := _url(layer)) is not None), Broker().url)
    keys: dict[str, object] = {}
    for layer in reversed(layers):
        if _url(layer) in (None, url):
            keys |= layer.broker
    return convert({**keys, "url": url}, Broker, "broker")


def _url(layer: _Layer) -> object:
    return layer.broker.get("url", Broker().url if layer.whole else None)


def _default_who(broker: Broker, environ: Mapping[str, str]) -> str:
    return broker.username or environ.get("LOGNAME") or environ.get("USER") or "me"
