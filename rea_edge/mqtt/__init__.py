"""The link to the broker; the only owner of paho. Holds no topics of ours and no meaning of a payload.

Files import in this order: limits, messages, backoff, fence, look, refusals, sharing, beside, suspects, talk, versions,
waiting, window, packets, settings, line, client, connection, channel, feed, bell, life, exchange, link.
`exchange` and `talk` are imported from there, by who has tools that need them.
"""

from rea_edge.mqtt.link import Link
from rea_edge.mqtt.messages import Controls, Incoming, LinkState, Outgoing, Presence, Session, Will
from rea_edge.mqtt.refusals import BROKE, verdict
from rea_edge.mqtt.settings import Address, LinkSettings, address_of, check_settings

__all__ = [
    "BROKE",
    "Address",
    "Controls",
    "Incoming",
    "Link",
    "LinkSettings",
    "LinkState",
    "Outgoing",
    "Presence",
    "Session",
    "Will",
    "address_of",
    "check_settings",
    "verdict",
]
