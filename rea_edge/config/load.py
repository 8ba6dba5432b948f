"""The one reading of the configuration: files, credentials and machine to one `Settings`. Decides no value's range."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from rea_edge.config.checks import check_broker, check_shape, secret_files, settings
from rea_edge.config.document import documents, is_bare, merged, short_text
from rea_edge.config.keys import signing_key, signing_keys
from rea_edge.config.peers import check_not_oneself
from rea_edge.config.prompts import shipped_prompts
from rea_edge.config.settings import Broker, Endpoint, Node, Peer, Secret, Settings, TaskType
from rea_edge.errors import ConfigInvalid
from rea_edge.hidden import LEAST
from rea_edge.topics import is_name

DEFAULT_FILE = Path("/etc/rea-edge/config.toml")

# A password or an API key; a whole file given by mistake is refused.
_MAX_SECRET_BYTES = 8 * 1024
_CREDENTIAL = "secret_"
_HOST_CHARACTERS = 29  # 36 of a name, less a dash and 6 hex


def load(file: Path, environ: Mapping[str, str]) -> Settings:
    """Read `file` and `conf.d/*.toml` beside it, and all that they name.

    `environ` gives STATE_DIRECTORY and CREDENTIALS_DIRECTORY (set by systemd) and HOME. The node's id is filled in
    where none is configured; whoever opens the store keeps the first one it saw. Raises ConfigInvalid that names
    the file, or the path of the setting and the file it stands in: exit 78.
    """
    if file == DEFAULT_FILE and not os.access(file, os.F_OK):
        raise ConfigInvalid(str(file), "is not there: write one, or name another with --config FILE")
    parts = documents(file)
    for part in parts:
        try:
            check_shape(part.keys)
        except ConfigInvalid as exc:
            raise in_file(exc, part.file) from exc
    tables = merged(parts)
    found = settings(tables)
    credentials = environ.get("CREDENTIALS_DIRECTORY")
    folder = Path(credentials) if credentials else None
    broker = with_credentials(found.broker, folder)
    keys = signing_keys(found.access.keys, folder)
    endpoints = tuple(_with_key(index, one, credentials) for index, one in enumerate(found.endpoints))
    _need_prompts(found.task_types)
    node = _settled(found.node, broker.username, environ)
    check_not_oneself(found.peers, node.id, broker.root)
    return msgspec.structs.replace(
        found,
        node=node,
        broker=broker,
        endpoints=endpoints,
        peers={name: _with_signing_key(name, one, folder) for name, one in found.peers.items()},
        tool_secrets=tool_secrets(secret_files(tables), credentials),
        access=msgspec.structs.replace(found.access, key_texts=keys),
        files=tuple(part.file for part in parts),
    )


def with_credentials(broker: Broker, folder: Path | None, table: str = "broker") -> Broker:
    """Read the password and find the TLS files; what no setting names is looked for among systemd's credentials."""

    def named(path: Path | None, credential: str) -> Path | None:
        if path is None and folder is not None and (folder / credential).is_file():
            return folder / credential
        return path

    password_file = named(broker.password_file, "broker_password") if broker.username else None
    tls = broker.url.startswith(("mqtts:", "wss:"))
    found = msgspec.structs.replace(
        broker,
        password_file=password_file,
        password=_secret(password_file, f"{table}.password_file"),
        ca_file=named(broker.ca_file, "broker_ca") if tls else None,
        cert_file=named(broker.cert_file, "broker_cert") if tls else None,
        key_file=named(broker.key_file, "broker_key") if tls else None,
    )
    check_broker(found, table)
    for key in ("ca_file", "cert_file", "key_file"):
        _need_file(getattr(found, key), f"{table}.{key}")
    return found


def default_id(username: str | None) -> str:
    """The id of a node that has none configured: its broker login, else host name and 6 hex of the machine id."""
    if username:
        if not is_name(username) or username.startswith("_"):
            raise ConfigInvalid("node.id", f"missing, and the broker username {username!r} cannot name a node")
        return username
    host = os.uname().nodename
    try:
        machine = Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        machine = host
    # Hashed: the machine id itself is not meant to be published (machine-id(5)).
    suffix = hashlib.sha256(f"rea-edge:{machine}".encode()).hexdigest()[:6]
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in host[:_HOST_CHARACTERS])
    return f"{plain or 'node'}-{suffix}"


def in_file(exc: ConfigInvalid, file: Path) -> ConfigInvalid:
    """The same complaint, saying where the setting stands."""
    return ConfigInvalid(exc.place, f"{str(exc).removeprefix(f'{exc.place}: ')} (in {file})")


def _settled(node: Node, username: str | None, environ: Mapping[str, str]) -> Node:
    return msgspec.structs.replace(
        node,
        id=node.id or default_id(username),
        state_dir=node.state_dir if node.state_dir != Path() else _state_dir(environ),
    )


def _state_dir(environ: Mapping[str, str]) -> Path:
    # systemd gives several separated by colons where the unit names several; the first is ours.
    if given := environ.get("STATE_DIRECTORY", "").split(":")[0]:
        return Path(given)
    if home := environ.get("HOME"):
        return Path(home) / ".local/state/rea-edge"
    raise ConfigInvalid("node.state_dir", "missing, and neither STATE_DIRECTORY nor HOME is set")


def _with_key(index: int, endpoint: Endpoint, credentials: str | None) -> Endpoint:
    file = endpoint.api_key_file
    if file is None and credentials:
        offered = Path(credentials) / f"api_key_{endpoint.name}"
        file = offered if offered.is_file() else None
    return msgspec.structs.replace(
        endpoint, api_key_file=file, api_key=_secret(file, f"endpoint[{index}].api_key_file")
    )


def tool_secrets(files: Mapping[str, Path], credentials: str | None) -> dict[str, Secret]:
    """What tools may need, by name: the files of `[secrets]`, and what systemd gives as `secret_NAME`."""
    found: dict[str, Secret] = {}
    for name, file in sorted(files.items()):
        place = f"secrets.{name}_file"
        found[name] = _hideable(file, place)
        if file.stat().st_mode & 0o007:  # systemd keeps its credentials from others by their folder
            raise ConfigInvalid(place, f"any user can read or write {file}: chmod o= it")
    for file in sorted(Path(credentials).glob(f"{_CREDENTIAL}*")) if credentials else ():
        name = file.name.removeprefix(_CREDENTIAL)
        if name not in found:
            found[name] = _hideable(file, f"credential {file.name}")
    return found


def _hideable(file: Path, place: str) -> Secret:
    """A secret that can be told from the words that tools say."""
    secret = _secret(file, place)
    assert secret is not None
    if len(secret.reveal()) < LEAST:
        raise ConfigInvalid(
            place, f"{file} must hold at least {LEAST} characters: less cannot be told from other words"
        )
    return secret


def _with_signing_key(name: str, peer: Peer, credentials: Path | None) -> Peer:
    file = peer.signing_key_file
    if file is None and credentials is not None and (offered := credentials / f"peer_key_{name}").is_file():
        file = offered
    if file is None:
        return peer
    key = signing_key(file, f"peer.{name}.signing_key_file", credentials)
    return msgspec.structs.replace(peer, signing_key_file=file, signing_key=key)


def _secret(file: Path | None, place: str) -> Secret | None:
    if file is None:
        return None
    try:
        text = short_text(file, _MAX_SECRET_BYTES)
    except ConfigInvalid as exc:
        raise ConfigInvalid(place, str(exc)) from exc
    # Editors end a file with a newline; it is never part of a secret. Blanks may be.
    text = text.rstrip("\r\n")
    if not text or "\n" in text:
        raise ConfigInvalid(place, f"{file} must hold one line")
    return Secret(text)


def _need_file(file: Path | None, place: str) -> None:
    if file is not None and not file.is_file():
        raise ConfigInvalid(place, f"no such file: {file}")


def _need_prompts(kinds: Mapping[str, TaskType]) -> None:
    for name, kind in kinds.items():
        if kind.prompt is not None and not is_bare(kind.prompt):
            _need_file(Path(kind.prompt), f"task.{name}.prompt")
        elif kind.prompt is not None and kind.prompt not in shipped_prompts():
            known = ", ".join(shipped_prompts())
            raise ConfigInvalid(f"task.{name}.prompt", f"expected a file or one of {known}, got {kind.prompt!r}")
