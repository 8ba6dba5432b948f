"""The keys of an MQTT tool's table: what it publishes, what it awaits, where its device says that it is there.

Imported in short-lived children only. Raises ToolInvalid with file, tool and key. Which topics are the nodes' own is
not known here.
"""

from collections.abc import Iterator, Mapping

import msgspec

from rea_edge.condition import PATH_LENGTH, is_path
from rea_edge.device.places import REQUEST_ID, Unfit, filled_value, places_in
from rea_edge.device.toggle import toggle_in
from rea_edge.device.topic import choices, topic_fault, variants
from rea_edge.errors import ToolInvalid
from rea_edge.parameters import PLACE, shape_of, shapes_of
from rea_edge.records import Args, Availability, Exchange, Tool
from rea_edge.toolhost.extras import check_filled

MQTT_KEYS = ("publish", "payload", "qos", "await", "await_path", "await_match", "await_error", "availability")
WITH = {"payload": "publish", "qos": "publish", "await_path": "await", "await_match": "await", "await_error": "await"}
SCALARS = ("string", "integer", "number", "boolean")


def exchange_of(place: str, table: Args, parameters: Args) -> Exchange:
    """What the keys of a table say, each checked by itself."""
    said = {key: table[key] for key in MQTT_KEYS if key in table}
    if REQUEST_ID in shapes_of(parameters):
        raise ToolInvalid(
            f"{place}.parameters", f"{REQUEST_ID!r} stands for the id of the call here; name it otherwise"
        )
    if "publish" not in said and "await" not in said:
        raise ToolInvalid(place, "names no topic: publish, await or both")
    for key, needs in WITH.items():
        if key in said and needs not in said:
            raise ToolInvalid(f"{place}.{key}", f"is given without {needs}")
    if said.get("qos", 1) not in (0, 1) or isinstance(said.get("qos"), bool):
        raise ToolInvalid(f"{place}.qos", f"{said['qos']!r} is neither 0 nor 1")
    if said.get("qos") == 1 and table.get("effect") == "once" and "verify" not in table:
        raise ToolInvalid(f"{place}.qos", "a broker may deliver QoS 1 twice: 'once' without verify goes with 0")
    if said.get("await") == said.get("publish") and "await_match" not in said:
        raise ToolInvalid(
            f"{place}.await",
            "is the topic of publish: what anybody asks there would be an answer; say with await_match",
        )
    exchange = msgspec.convert(
        {
            "publish": checked_topic(f"{place}.publish", said["publish"], parameters) if "publish" in said else "",
            "payload": checked_payload(f"{place}.payload", said.get("payload", ""), parameters),
            # A verify tells of a message that was lost, never of one that came twice.
            "qos": said.get("qos", 0 if table.get("effect") == "once" else 1),
            "reply": checked_topic(f"{place}.await", said["await"], parameters) if "await" in said else "",
            "path": checked_path(f"{place}.await_path", said["await_path"]) if "await_path" in said else "",
            "error": checked_path(f"{place}.await_error", said["await_error"]) if "await_error" in said else "",
            "match": checked_match(f"{place}.await_match", said.get("await_match", {}), parameters),
        },
        Exchange,
    )
    available = tuple(availabilities(f"{place}.availability", said.get("availability", []), parameters))
    check_all_used(place, said, parameters)
    return msgspec.structs.replace(exchange, availability=available)


def check_repeatable(place: str, tool: Tool) -> None:
    """Refuse what would be done twice, where the effect says something else."""
    exchange = tool.exchange
    assert exchange is not None
    if not exchange.publish and tool.effect != "read":
        raise ToolInvalid(f"{place}.effect", f"a tool that publishes nothing reads; its effect is {tool.effect!r}")
    if tool.effect == "once":
        return
    for topic, payload in messages(exchange, tool.parameters):
        if word := toggle_in(topic, payload):
            raise ToolInvalid(
                f"{place}.payload",
                f"{word!r} does something else each time it is sent: that is effect 'once'; or send what shall be, such as "
                "on or off",
            )


def messages(exchange: Exchange, parameters: Args) -> Iterator[tuple[str, object]]:
    """The messages that the declaration itself can make: each choice of an enum once, free places left as they are."""
    names = {*places_in(exchange.publish), *places_in(exchange.payload)}
    free: Args = {name: f"{{{name}}}" for name in names}
    yield exchange.publish, exchange.payload
    for name in sorted(names):
        for choice in choices(parameters, name) or ():
            known = {**free, name: choice}
            topic, payload = filled_value(exchange.publish, known), filled_value(exchange.payload, known)
            yield str(topic), payload


def checked_topic(place: str, topic: object, parameters: Args) -> str:
    if not isinstance(topic, str):
        raise ToolInvalid(place, f"{topic!r} is not a topic")
    for name in places_in(topic):
        check_scalar(place, parameters, name)
    try:
        for variant in variants(topic, parameters):
            # A free place stands for at least one character.
            if why := topic_fault(PLACE.sub("x", variant)):
                raise ToolInvalid(place, f"the topic {variant!r} cannot be used: {why}")
    except Unfit as exc:
        raise ToolInvalid(place, str(exc)) from exc
    return topic


def checked_payload(place: str, payload: object, parameters: Args) -> object:
    check_plain(place, payload)
    if isinstance(payload, str):
        if payload.lstrip()[:1] in ("{", "[") and not PLACE.match(payload) and any(places_in(payload)):
            raise ToolInvalid(
                place, "is JSON as a text, which an argument with a quote could break out of; write it as a TOML table"
            )
        for name in places_in(payload):
            check_scalar(place, parameters, name)
    else:
        check_leaves(place, payload, parameters)
    return payload


def checked_path(place: str, path: object) -> str:
    if not isinstance(path, str) or not is_path(path):
        raise ToolInvalid(
            place, f"{path!r} is no path of at most {PATH_LENGTH} characters such as state or sensors.0.value"
        )
    return path


def checked_match(place: str, match: object, parameters: Args) -> Args:
    """By path. A table within a table is a longer path; what is no table must be the whole reply."""
    check_plain(place, match)
    found = dict(paths_in(match)) if isinstance(match, dict) else {"": match}
    for path, wanted in found.items():
        if path:
            checked_path(place, path)
        if isinstance(wanted, list):
            raise ToolInvalid(place, f"{path} is a list, which is not compared with")
        check_leaves(place, wanted, parameters)
    return found


def paths_in(table: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        path = f"{before}{key}"
        if isinstance(value, dict):
            yield from paths_in(value, f"{path}.")
        else:
            yield path, value


def availabilities(place: str, said: object, parameters: Args) -> Iterator[Availability]:
    for one in said if isinstance(said, list) else [said]:
        table = {"topic": one} if isinstance(one, str) else one
        try:
            found = msgspec.convert(table, Availability)
        except msgspec.ValidationError as exc:
            raise ToolInvalid(place, f"is no topic, nor {{topic, path, online}}: {exc}") from exc
        if isinstance(table, dict) and (unknown := sorted(table.keys() - {"topic", "path", "online"})):
            raise ToolInvalid(place, f"{unknown[0]!r} is not a key of it; the keys are topic, path, online")
        if found.path:
            checked_path(f"{place}.path", found.path)
        if not found.online:
            raise ToolInvalid(f"{place}.online", "is empty: the device would never be there")
        yield msgspec.structs.replace(found, topic=checked_topic(f"{place}.topic", found.topic, parameters))


def check_plain(place: str, value: object) -> None:
    """TOML has dates and infinities, JSON has not."""
    match value:
        case dict():
            for key, inner in value.items():
                check_plain(f"{place}.{key}", inner)
        case list():
            for inner in value:
                check_plain(place, inner)
        case str() | bool() | int():
            return
        case float() if value - value == 0:
            return
        case _:
            raise ToolInvalid(place, f"{value} has no place in JSON")


def check_leaves(place: str, value: object, parameters: Args) -> None:
    """What stands for a whole value may be of any type, and absent in a table; what stands in a text may not."""
    match value:
        case dict():
            for key, inner in value.items():
                check_leaves(f"{place}.{key}", inner, parameters)
        case list():
            for inner in value:
                check_leaves(place, inner, parameters)
        case str():
            alone = PLACE.fullmatch(value)
            for name in places_in(value):
                if alone:
                    check_known(place, parameters, name)
                else:
                    check_scalar(place, parameters, name)


def check_known(place: str, parameters: Args, name: str) -> None:
    if name != REQUEST_ID and name not in shapes_of(parameters):
        raise ToolInvalid(place, f"{{{name}}} is not a parameter; it has {', '.join(shapes_of(parameters)) or 'none'}")


def check_scalar(place: str, parameters: Args, name: str) -> None:
    if name == REQUEST_ID:
        return
    check_filled(place, parameters, name)
    shape = shape_of(parameters, name)
    if choices(parameters, name) is None and shape.get("type") not in SCALARS:
        raise ToolInvalid(place, f"{{{name}}} must be one of {', '.join(SCALARS)}, or have an enum")


def check_all_used(place: str, said: Args, parameters: Args) -> None:
    used = {name for value in said.values() for name in places_in(value)}
    for name in sorted(shapes_of(parameters).keys() - used):
        raise ToolInvalid(place, f"the parameter {name!r} is used nowhere")
