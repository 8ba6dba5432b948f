"""A node with the shipped packs for other people's devices, as its owner sets it up, and calls of their tools."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from rea_edge.client import Client
from rea_edge.emulated.devices.appliance import Appliance
from tests.brokers import AnyBroker, wait_until
from tests.e2e.house import ROOT, House, wait_online
from tests.emulated.client import Client as Onlooker

SHIPPED = ROOT / "tools"
PACKS = ("zigbee2mqtt", "tasmota", "shelly", "esphome", "homeassistant", "notify")


def furnished(house: House, *packs: str, **settings: str) -> House:
    """A daemon that runs with copies of these packs, which wait less long."""
    for pack in packs:
        text = (SHIPPED / f"{pack}.toml").read_text()
        (house.folder / f"{pack}.toml").write_text(re.sub(r"timeout_s = [0-9.]+", "timeout_s = 1.0", text))
    return tooled(house, *(str(house.folder / f"{pack}.toml") for pack in packs), **settings)


def tooled(house: House, *entries: str, **settings: str) -> House:
    named = "".join(f'"{entry}", ' for entry in entries)
    house.config.write_text(house.config.read_text().replace("tools = [", f"tools = [{named}", 1))
    return house.start(**{f"REA_TOOL_{setting}": value for setting, value in settings.items()})


@contextmanager
def asking(house: House) -> Iterator[Client]:
    with house.client(silent_s=30) as client:
        wait_online(client)
        yield client


def asked(client: Client, tool: str, **args: object) -> tuple[str, object]:
    """`ok` and the data, or the code and the message."""
    reply = client.ask("call", {"args": args}, tool, wait_s=30)
    return ("ok", reply.data) if reply.error is None else (reply.error.code, reply.error.message)


def values(device: Appliance) -> list[object]:
    return [deed.value for deed in device.deeds]


def said_last(broker: AnyBroker, topic: str) -> bytes:
    """What is retained there."""
    with Onlooker(broker.port, "onlooker") as client:
        client.subscribe(topic)
        return client.next().payload


def wait_offline(broker: AnyBroker, topic: str) -> None:
    wait_until(lambda: b"ffline" in said_last(broker, topic), f"{topic} says offline", 15)
