"""How the broker is reached, checked before a connection is tried. Opens nothing but certificate files."""

import ipaddress
import ssl
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from rea_edge.errors import ConfigInvalid

Transport = Literal["tcp", "websockets", "unix"]

PORTS = {"mqtt": 1883, "mqtts": 8883, "ws": 80, "wss": 443}


class LinkSettings(Struct, frozen=True, kw_only=True):
    """Times are seconds, sizes bytes, files absolute paths (empty: none).

    `session_expiry_s` 0 asks for a clean session, which is what a short-lived client wants. `insecure` allows an
    unencrypted connection beyond this machine; certificates are always verified.
    """

    url: str = "mqtt://127.0.0.1:1883"
    client_id: str
    username: str = ""
    password: str = ""
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    protocol: Literal["auto", "5", "3.1.1"] = "auto"
    keepalive_s: int = 30
    reconnect_min_s: float = 1.0
    reconnect_max_s: float = 60.0
    session_expiry_s: int = 604_800
    packet_max: int = 1_310_720
    insecure: bool = False

    def __repr__(self) -> str:
        return f"LinkSettings(url={self.url!r}, client_id={self.client_id!r}, username={self.username!r}, ...)"


class Address(Struct, frozen=True, kw_only=True):
    """A broker URL, taken apart. `host` is the path of the socket for transport `unix`."""

    transport: Transport
    host: str
    port: int
    path: str = ""
    encrypted: bool = False


def check_settings(settings: LinkSettings) -> None:
    """Raise `ConfigInvalid` for what no number of attempts would mend."""
    address = address_of(settings.url)
    if not (address.encrypted or settings.insecure or _stays_here(address)):
        raise ConfigInvalid(
            "broker.url",
            f"{settings.url!r} leaves this machine unencrypted; use mqtts:// or wss://, or set broker.insecure = true",
        )
    if not settings.client_id:
        raise ConfigInvalid("broker.client_id", "is empty; a session is kept by it")
    for key, value, least, most in (
        ("keepalive_s", settings.keepalive_s, 1, 65_535),
        ("reconnect_min_s", settings.reconnect_min_s, 0.01, 3_600),
        ("reconnect_max_s", settings.reconnect_max_s, 0.01, 86_400),
        ("session_expiry_s", settings.session_expiry_s, 0, 0xFFFFFFFF),
        ("packet_max", settings.packet_max, 1_024, 268_435_455),
    ):
        if not least <= value <= most:
            raise ConfigInvalid(f"broker.{key}", f"{value} is not between {least} and {most}")
    if settings.key_file and not settings.cert_file:
        raise ConfigInvalid("broker.key_file", "given without broker.cert_file")
    tls_context(settings)


def address_of(url: str) -> Address:
    """Take `mqtt://`, `mqtts://`, `ws://`, `wss://` or `unix:///path` apart, or raise `ConfigInvalid`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as exc:
        raise ConfigInvalid("broker.url", f"{url!r}: {exc}") from exc
    if parts.username is not None or parts.password is not None:
        # The URL is printed in logs and errors, so it must not hold them; nor is it printed here.
        raise ConfigInvalid("broker.url", "holds a login; use broker.username and broker.password_file")
    if parts.scheme == "unix":
        return _socket_file(url, parts)
    if parts.scheme not in PORTS or not parts.hostname:
        raise ConfigInvalid("broker.url", f"{url!r} is none of mqtt:// mqtts:// ws:// wss:// HOST, unix:///PATH")
    if port == 0:
        raise ConfigInvalid("broker.url", f"{url!r}: nothing listens on port 0")
    web = parts.scheme in ("ws", "wss")
    if parts.query or (parts.path.strip("/") and not web):
        raise ConfigInvalid("broker.url", f"{url!r} has a path or query, which {parts.scheme}:// cannot have")
    return Address(
        transport="websockets" if web else "tcp",
        host=parts.hostname,
        port=PORTS[parts.scheme] if port is None else port,
        path=(parts.path or "/mqtt") if web else "",
        encrypted=parts.scheme in ("mqtts", "wss"),
    )


def tls_context(settings: LinkSettings) -> ssl.SSLContext | None:
    """The context for an encrypted address, else None; raises `ConfigInvalid` naming a file that cannot be used."""
    if not address_of(settings.url).encrypted:
        return None
    for key, name in (
        ("ca_file", settings.ca_file),
        ("cert_file", settings.cert_file),
        ("key_file", settings.key_file),
    ):
        if name and not Path(name).is_file():
            raise ConfigInvalid(f"broker.{key}", f"there is no file {name!r}")
    key = "ca_file"
    try:
        context = ssl.create_default_context(cafile=settings.ca_file or None)
        key = "cert_file"
        if settings.cert_file:
            # An empty password, so that an encrypted key is an error and not a question on a terminal.
            context.load_cert_chain(settings.cert_file, settings.key_file or None, password="")
    except OSError as exc:  # ssl.SSLError is one
        raise ConfigInvalid(f"broker.{key}", f"cannot be used: {exc}") from exc
    return context


def _socket_file(url: str, parts: SplitResult) -> Address:
    if parts.netloc or not parts.path.startswith("/"):
        raise ConfigInvalid("broker.url", f"{url!r} names no absolute path; write unix:///run/mosquitto.sock")
    return Address(transport="unix", host=parts.path, port=1)


def _stays_here(address: Address) -> bool:
    if address.transport == "unix" or address.host == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.host).is_loopback
    except ValueError:
        return False
