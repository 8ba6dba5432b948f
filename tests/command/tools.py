"""Tools that the tests of the command protocol offer: a reading one, acting ones, and one with every odd parameter."""

from rea_edge.records import Example, Offer, Tool


def _object(properties: dict[str, object], required: list[str]) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


READING: dict[str, object] = _object({"value": {"type": "number"}, "unit": {"type": "string"}}, ["value", "unit"])
SENSORS = ["boiler", "flow", "room"]

TOOLS = (
    Tool(
        name="read_sensor",
        description="Read one sensor.",
        parameters=_object({"name": {"enum": SENSORS}}, ["name"]),
        effect="read",
        returns=READING,
        examples=(
            Example(say="How hot is the boiler?", answer={"name": "boiler"}),
            Example(say="What is the weather?", answer="cannot"),
        ),
    ),
    Tool(
        name="set_fan",
        description="Start or stop the fan.",
        parameters=_object({"on": {"type": "boolean"}}, ["on"]),
        effect="idempotent",
        examples=(
            Example(say="Switch the fan on.", answer={"on": True}),
            Example(
                say="Cool the boiler if it is over 80.",
                answer="if read_sensor boiler -> value > 80 then set_fan on=true",
            ),
        ),
    ),
    Tool(
        name="set_valve",
        description="Open the valve.",
        parameters=_object({"percent": {"type": "integer", "minimum": 0, "maximum": 100}}, ["percent"]),
        effect="once",
        examples=(Example(say="Open the valve halfway.", answer={"percent": 50}),),
    ),
    Tool(
        name="say",
        description="Speak a text.",
        parameters=_object({"text": {"type": "string"}, "volume": {"type": "number"}}, ["text"]),
        effect="once",
        examples=(Example(say="Say good morning.", answer={"text": "good morning"}),),
    ),
    Tool(
        name="odd",
        description="Has every kind of parameter.",
        parameters=_object(
            {
                "mode": {"enum": ["two words", 'a "quote"', "back\\slash", "true", "7", "süd", "a=b", ""]},
                "level": {"enum": [1, 2, None]},
                "times": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
                "list": {"type": "array", "items": {"type": "integer"}},
                "more": {"type": ["string", "null"]},
            },
            ["mode", "level"],
        ),
        effect="idempotent",
    ),
    Tool(name="ping", description="Nothing.", parameters=_object({}, []), effect="read"),
)
OFFERS = tuple(Offer.of(tool) for tool in TOOLS)
