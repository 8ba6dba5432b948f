"""From a `[broker]` table to the settings of a link: of a node, or of a person at a command line."""

import os

from msgspec import structs

from rea_edge.config import Broker
from rea_edge.mqtt import LinkSettings

DEVICE_PACKET_MAX = 65_536  # bytes of what a device says; a state is some hundred, and all of a reply goes to a model
DEVICE_REST_S = 5.0


def link_settings(broker: Broker, client_id: str, *, session_expiry_s: int | None = None) -> LinkSettings:
    """`session_expiry_s` 0 asks for a session that ends with the connection; default: the configured one."""
    return LinkSettings(
        url=broker.url,
        client_id=client_id,
        username=broker.username or "",
        password=broker.password.reveal() if broker.password else "",
        ca_file=str(broker.ca_file or ""),
        cert_file=str(broker.cert_file or ""),
        key_file=str(broker.key_file or ""),
        protocol=broker.protocol,
        keepalive_s=broker.keepalive_s,
        reconnect_min_s=broker.reconnect_min_s,
        session_expiry_s=broker.session_expiry_s if session_expiry_s is None else session_expiry_s,
        insecure=broker.insecure,
    )


def node_client_id(broker: Broker, node: str) -> str:
    """A node's client id: stable, since the broker keeps its queue under it."""
    return broker.client_id or broker.username or f"rea-{node}"


def controls_client_id(node_id: str) -> str:
    """The client id of a node's session for controls. With the dot it is nobody's login: where a broker makes logins
    client ids, no person can take it over."""
    return f"{node_id}.ctl"


def standby_client_id(node_id: str) -> str:
    """The client id of a node that only watches another one with its id."""
    return f"{node_id}.standby"


def device_settings(broker: Broker, node_id: str) -> LinkSettings:
    """Of a node's own connection for devices: what comes late must find nobody, so its session ends with it. Callers
    wait for it with short deadlines, so it never rests for long."""
    own = link_settings(broker, f"{node_id}.dev", session_expiry_s=0)
    return structs.replace(own, packet_max=DEVICE_PACKET_MAX, reconnect_max_s=max(DEVICE_REST_S, own.reconnect_min_s))


def peers_client_id(node_id: str) -> str:
    """The client id of a node's connection to its peers. Nothing is kept for it, so each start takes another: two nodes of
    one name must not end each other's."""
    return f"{node_id}.peers-{os.urandom(4).hex()}"


def person_client_id(who: str) -> str:
    """A client id nobody else has: two commands of one person must not take each other's connection over."""
    return f"{who}-{os.urandom(6).hex()}"
