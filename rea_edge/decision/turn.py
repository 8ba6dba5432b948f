"""How a reply was asked for and how it ended. Holds words and values only."""

from typing import Literal

from msgspec import Struct

from rea_edge.decision.names import Names

Asked = Literal["native", "json", "react", "command", "any"]
FORMS: dict[Asked, str] = {
    "native": "Call a tool natively, or answer in plain text.",
    "any": "Call a tool natively, or answer in plain text.",
    "json": 'Answer with one JSON object: {"action": "tool", "tool_name": ..., "tool_args": {...}}, '
    'or "finish" with "terminal_answer", or "give_up" with "reason".',
    "react": "Write Thought:, then either Action: and Action Input: (a JSON object), or Final Answer:.",
    "command": "Answer with one command line.",
}


class Turn(Struct, frozen=True):
    """How the reply was asked for and how it ended. `cut`: the server stopped it at a length.

    `ran_on`: only line breaks came at its end, many of them."""

    asked: Asked
    cut: bool
    names: Names
    ran_on: bool = False
