"""What counts, what is only shown, what conflicts, and what the model is told, beyond the corpus."""

import json
from collections.abc import Mapping

import pytest

from rea_edge import decision
from rea_edge.decision.turn import Asked
from rea_edge.errors import DecisionRejected
from rea_edge.records import Calls, Finish, GiveUp, Guard, Offer

from .cases import told

TOOLS = ["read_sensor", "set_gpio", "get_uptime", "restart_service", "list_files"]
READ = '{"name": "read_sensor", "arguments": {"sensor": "temp_in"}}'
SET = '{"action": "tool", "tool_name": "set_gpio", "tool_args": {"pin": 17, "value": 1}}'
DONE = '{"action": "finish", "terminal_answer": "Done."}'


@pytest.mark.parametrize(
    ("protocol", "text", "name"),
    [
        pytest.param("json", f"Here:\n```\n{SET}\n```", "set_gpio", id="json: a plain fence at the end"),
        pytest.param("json", SET.replace('"', '\\"'), "set_gpio", id="json: escaped as a whole"),
        pytest.param("json", json.dumps(SET), "set_gpio", id="json: as a JSON string"),
        pytest.param("json", f"Thought: needed.\n{SET}", "set_gpio", id="json: after a thought"),
        pytest.param("json", f"{SET}\n{SET[:-1]}, \"reason\": \"again\"}}", "set_gpio", id="json: the same decision twice"),
        pytest.param("json", '{"tool_name": "get_uptime"}', "get_uptime", id="json: only the name"),
        pytest.param("native", f"Calling: {READ}", "read_sensor", id="native: announced on its line"),
        pytest.param("native", f"{READ}}}", "read_sensor", id="native: one brace too many"),
        pytest.param("native", f"{READ}\nObservation: 21\nIt is 21.", "read_sensor", id="native: a result of its own after it"),
        pytest.param("native", "get_uptime()", "get_uptime", id="native: one Python call and nothing else"),
        pytest.param("react", 'Action: read_sensor, Action Input: {"sensor": "x"}', "read_sensor", id="react: one line"),
        pytest.param("react", 'Action: read_sensor\n{"sensor": "x"}', "read_sensor", id="react: no input label"),
        pytest.param("react", "Action: restart_service\nAction Input: 'nginx'", "restart_service", id="react: other quotes"),
        pytest.param("react", SET, "set_gpio", id="react: a JSON decision"),
        pytest.param("react", f"Thought: first\nAction: get_uptime\nObservation: 5\nAction: set_gpio\n{DONE}", "get_uptime",
                     id="react: all after a result is fiction"),
        pytest.param("any", f"<decision>{SET}</decision>", "set_gpio", id="any: a tag of its own"),
        pytest.param("react", '\ufeffAction: read_sensor\nAction Input: {"sensor": "x"}\nObservation: 5\nFinal Answer: 5', "read_sensor",
                     id="react: a byte order mark"),
        pytest.param("react", '<think>x</think>Action: read_sensor\nAction Input: {"sensor": "x"}', "read_sensor",
                     id="react: right after a thought"),
        pytest.param("native", f"\u00a0```json\n{READ}\n```\u00a0", "read_sensor", id="native: hard blanks around it"),
        pytest.param("json", SET[:-1] + "</s>", "set_gpio", id="json: its own brace missing before the end of the turn"),
        pytest.param("any", f'[TOOL_REQUEST]{READ}[END_TOOL_REQUEST]', "read_sensor", id="any: LM Studio"),
        pytest.param("any", '<<function>>restart_service(service="x")', "restart_service", id="any: Gorilla"),
        pytest.param("any", 'restart_service: {"service": "x"}', "restart_service", id="any: a name, a colon and an object"),
        pytest.param("json", f"I did not see it yet, so I look: {SET}", "set_gpio", id="json: a not that is no ban"),
    ],
)  # fmt: skip
def test_a_call_that_is_certain_is_read(protocol: str, text: str, name: str, known: Mapping[str, Offer]) -> None:
    got = told(text, known, protocol=protocol, tools=TOOLS)
    assert got["decision"] == "tool", got
    assert [call["name"] for call in got["calls"]] == [name]  # type: ignore[attr-defined]  # JSON


@pytest.mark.parametrize(
    ("protocol", "text", "kind", "mention"),
    [
        pytest.param("native", f"I will not run {READ}", "unparseable", "certain", id="an unfinished sentence before it"),
        pytest.param("native", f"{READ}\n\nThis reads it.", "unparseable", "alone", id="a text after it"),
        pytest.param("native", "<read_sensor><probe>x</probe></read_sensor>", "unparseable", "read_sensor", id="a strange tag"),
        pytest.param("native", "<read_sensor><sensor>x</sensor></read_sensor>\nThis reads it.", "unparseable", "alone",
                     id="a tag of a tool, and a text"),
        pytest.param("native", f"```json\n{READ}\n```\nthen\n```json\n{READ.replace('in', 'out')}\n```", "conflict", "fences",
                     id="two calls in fences"),
        pytest.param("native", "<tool_call>set_gpio\n<arg_key>pin</arg_key>\n<arg_value>17\n<arg_key>value</arg_key>\n"
                     "<arg_value>1</arg_value>\n</tool_call>", "unparseable", "pin", id="a value that is not closed"),
        pytest.param("native", "<function=read_sensor><parameter=sensor>x<parameter=unit>lux</parameter></function>",
                     "unparseable", "sensor", id="a parameter that is not closed"),
        pytest.param("native", "get_uptime", "unparseable", "call", id="only a name"),
        pytest.param("native", "<|begin_fn|>get_uptime<|fn_args|>{}<|end_fn|>", "unparseable", "tokens", id="a dialect that is not known"),
        pytest.param("any", f'{{"tool_calls": [{READ}], "final_answer": "It is 21."}}', "conflict", "answer", id="calls and an answer"),
        pytest.param("any", f"<|im_start|>user\nread it<|im_end|>\n<tool_call>{READ}</tool_call>", "empty", "reply",
                     id="a made-up user first"),
        pytest.param("any", "Thought: I should look first.", "unparseable", "thought", id="only a thought"),
        pytest.param("json", SET[:-3] + "<|im_end|>", "truncated", "cut", id="json: cut at the end of a turn"),
        pytest.param("native", "<|channel|>final<|message|>It is on.<|end|><|start|>assistant<|channel|>commentary "
                     'to=functions.set_gpio<|message|>{"pin": 17, "value": 1}<|call|>', "conflict", "answer",
                     id="an answer, and a call after it"),
        pytest.param("native", f"Don't send {READ}", "unparseable", "certain", id="a ban in two words"),
        pytest.param("json", f"Do not run this:\n{SET}", "unparseable", "certain", id="json: a ban on the line before"),
        pytest.param("json", f"不要执行：{SET}", "unparseable", "certain", id="json: a ban in Chinese"),
        pytest.param("native", f"我现在还不想执行这个命令 {READ}", "unparseable", "certain", id="an unfinished sentence in Chinese"),
        pytest.param("native", "set_gpio(pin=17, val", "truncated", "set_gpio", id="a Python call that is not closed"),
        pytest.param("native", "set_gpio(pin=high)", "invalid_args", "pin", id="a Python call that cannot be read"),
        pytest.param("native", 'Use it:\n```python\nread_sensor(sensor="x")\n```', "unparseable", "certain", id="an example"),
        pytest.param("native", "<tool_call>\nread the sensor", "unparseable", "name", id="markup without a call"),
        pytest.param("native", '{"name": "set_gpio", "parameters": {"type": "object", "properties": {"pin": {}}}}', "invalid_args",
                     "declaration", id="a declaration"),
        pytest.param("native", "<｜tool▁calls▁begin｜>function<｜tool▁sep｜>get_uptime\n{}", "unparseable", "call", id="a section"),
        pytest.param("native", "<tool_call></tool_call>", "unparseable", "empty", id="empty markup"),
        pytest.param("json", f"I will not send {SET} because it is hot.", "unparseable", "action", id="mid-sentence"),
        pytest.param("json", f"> {SET}", "unparseable", "action", id="a quoted line"),
        pytest.param("json", f"`{SET}`", "unparseable", "action", id="code marks"),
        pytest.param("json", f"{DONE}\n{DONE.replace('Done', 'Off')}", "conflict", "answer", id="two answers"),
        pytest.param("json", f"{SET[:-1]}, \"terminal_answer\": \"It is on.\"}}", "conflict", "finish", id="a call that answers"),
        pytest.param("json", f"{DONE[:-1]}, \"tool_name\": \"get_uptime\"}}", "conflict", "get_uptime", id="an answer that calls"),
        pytest.param("json", '{"tool": "read_sensor", "sensor": "x"}', "invalid_args", "sensor", id="arguments beside the name"),
        pytest.param("json", '{"action": "tool", "tool_name": "list_files", "path": "/"}', "invalid_args", "path",
                     id="optional arguments beside the name"),
        pytest.param("json", '{"action": "finish", "terminal_answer": {"a": 1}}', "unparseable", "terminal_answer", id="an object"),
        pytest.param("react", "Observation: 21\nAction: get_uptime", "unparseable", "observation", id="an echoed action"),
        pytest.param("react", "Action: restart_service\nAction Input: service=nginx", "invalid_args", "service", id="key=value"),
        pytest.param("react", "Action: restart_service\nAction Input: None", "invalid_args", "service", id="None is no value"),
        pytest.param("json", '{"action": "tool", "tool_name": "get_uptime", "tool_name": "set_gpio"}', "conflict", "name",
                     id="two names"),
        pytest.param("react", "Thought: x\nAction: None\nAction Input: None", "unparseable", "Final Answer", id="no action"),
        pytest.param("react", "Final Answer:", "empty", "Final Answer", id="an empty answer"),
        pytest.param("any", "[set_gpio(pin=10+7, value=1)]", "invalid_args", "pin", id="an expression"),
        pytest.param("any", "[set_gpio(pin=1, pin=2, value=1)]", "invalid_args", "pin", id="one key twice"),
        pytest.param("any", '[{"name": "get_uptime", "arguments": {}}, {"name": "reset", "arguments": {}}]', "unknown_tool",
                     "reset", id="one bad call stops the batch"),
    ],
)  # fmt: skip
def test_what_is_not_certain_is_sent_back(
    protocol: str, text: str, kind: str, mention: str, known: Mapping[str, Offer]
) -> None:
    got = told(text, known, protocol=protocol, tools=TOOLS)
    assert got.get("error_kind") == kind, got
    assert mention.lower() in str(got["message"]).lower(), got
    assert len(str(got["message"])) < 400


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param("# Report\n\n- temp: 20\n- {\"a\": 1}", "# Report\n\n- temp: 20\n- {\"a\": 1}", id="a list with JSON"),
        pytest.param('{"name": "Bob", "age": 5}', '{"name": "Bob", "age": 5}', id="JSON with a name"),
        pytest.param("To reset:\nAction: hold the button\nThen wait.", "To reset:\nAction: hold the button\nThen wait.",
                     id="a label in a text"),
        pytest.param("Answer: 4 days.", "Answer: 4 days.", id="the word answer"),
        pytest.param(f'It wrote "<tool_call>{READ}</tool_call>" then.', f'It wrote "<tool_call>{READ}</tool_call>" then.',
                     id="markup in quotation marks"),
        pytest.param(f"<tool_response>\nrun <tool_call>{READ}</tool_call>", f"<tool_response>\nrun <tool_call>{READ}</tool_call>",
                     id="a made-up result that is not closed"),
        pytest.param("- get_uptime(): seconds\n- set_gpio(pin=1, value=1): a pin", "- get_uptime(): seconds\n- set_gpio(pin=1, value=1): a pin",
                     id="a list of what calls do"),
        pytest.param("Use <think> tags for notes.", "Use <think> tags for notes.", id="a tag named in a sentence"),
        pytest.param("<think>hm</think>\n\nIt is 4.", "It is 4.", id="after a thought"),
        pytest.param("hm, 2+2\n</think>\nIt is 4.", "It is 4.", id="after a thought whose opening was in the prompt"),
        pytest.param("It is 4.<|im_end|>\n<|im_start|>user\nreally?", "It is 4.", id="up to the end of the turn"),
        pytest.param("hm, 2+2<|end|><|start|>assistant<|channel|>final<|message|>It is 4.<|return|>", "It is 4.",
                     id="after a message whose header was in the prompt"),
        pytest.param("<|im_start|>assistant\nIt is 4.", "It is 4.", id="after the tokens of its turn"),
        pytest.param("```python\nimport os\n```", "```python\nimport os\n```", id="code"),
    ],
)  # fmt: skip
def test_a_text_without_a_decision_is_the_answer(text: str, answer: str, known: Mapping[str, Offer]) -> None:
    assert told(text, known, protocol="native", tools=TOOLS) == {"decision": "finish", "answer": answer}


@pytest.mark.parametrize("between", ["\n", ", ", ";\n"])
def test_python_calls_and_nothing_else_are_parallel_calls(between: str, known: Mapping[str, Offer]) -> None:
    text = f"get_uptime(){between}set_gpio(pin=17, value=1)"
    got = told(text, known, tools=TOOLS)
    assert got.get("calls") == [
        {"name": "get_uptime", "args": {}},
        {"name": "set_gpio", "args": {"pin": 17, "value": 1}},
    ]
    assert told(text, known, reason="length", tools=TOOLS)["error_kind"] == "truncated"


def test_an_action_in_a_fence_with_its_made_up_result_is_not_run_where_the_reply_was_cut(
    known: Mapping[str, Offer],
) -> None:
    text = "It reads:\n```\nThought: x\nAction: get_uptime\nAction Input: {} Observation: 5"
    assert told(text, known, reason="length", tools=TOOLS)["error_kind"] == "truncated"


def test_a_name_that_may_be_cut_is_not_run(known: Mapping[str, Offer]) -> None:
    offers = [Offer(name=name, effect="once", parameters={"type": "object"}) for name in ("pump", "pump_off")]
    for text, cut in (("Action: pump", True), ("Action: pump_off", False)):
        if not cut:
            assert isinstance(decision.read({"content": text}, "length", offers, "react"), Calls)
            continue
        with pytest.raises(DecisionRejected) as rejected:
            decision.read({"content": text}, "length", offers, "react")
        assert rejected.value.kind == "truncated"


def test_an_action_that_is_none_does_not_stand_against_an_answer(known: Mapping[str, Offer]) -> None:
    text = "Thought: done\nAction: None\nAction Input: None\nFinal Answer: It is 21."
    assert told(text, known, protocol="react") == {"decision": "finish", "answer": "It is 21."}


@pytest.mark.parametrize(
    "message",
    [
        {}, {"content": 5}, {"content": {"a": 1}}, {"content": [None, 1, [], {"type": 1}]}, {"tool_calls": "x"},
        {"tool_calls": [None]}, {"tool_calls": [{}]}, {"tool_calls": [{"function": None}]}, {"tool_calls": {"function": {"name": 1}}},
        {"tool_calls": [{"function": {"name": "read_sensor", "arguments": 5}}]}, {"function_call": "x"}, {"refusal": 1},
        {"tool_calls": [{"function": {"name": ["x"], "arguments": "{}"}}]}, {"content": "\ud800", "reasoning": ["\udfff"]},
        {"content": [{"type": "thinking", "thinking": [{"text": [{"text": []}]}]}]}, {"reasoning_details": [{"text": "x"}]},
    ],
)  # fmt: skip
def test_a_message_of_any_shape_gives_an_outcome(message: dict[str, object], known: Mapping[str, Offer]) -> None:
    for protocol in ("native", "json", "react", "command", "any"):
        try:
            read(message, known, protocol)
        except DecisionRejected as rejected:
            assert rejected.message.encode()


def test_text_between_tags_takes_the_type_of_its_parameter() -> None:
    shape: dict[str, object] = {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "maybe": {"type": ["string", "null"]},
            "any_of": {"type": ["string", "number", "object"]},
            "count": {"type": ["integer", "null"]},
            "list": {"type": "array", "items": {"type": "integer"}},
        },
    }
    texts = {"text": "null", "maybe": "null", "any_of": "42", "count": "null", "list": "[1, '2']"}
    parameters = "".join(f"<{'parameter'}={key}>\n{value}\n</{'parameter'}>\n" for key, value in texts.items())
    offers = [Offer(name="put", effect="once", parameters=shape)]
    got = decision.read({"content": f"<function=put>\n{parameters}</function>"}, "stop", offers, "native")
    assert isinstance(got, Calls)
    assert got.calls[0].args == {"text": "null", "maybe": None, "any_of": 42, "count": None, "list": [1, 2]}


def test_a_refusal_comes_before_calls_and_calls_before_text(known: Mapping[str, Offer]) -> None:
    calls = [{"function": {"name": "get_uptime", "arguments": "{}"}}]
    assert isinstance(read({"refusal": "no", "tool_calls": calls}, known), GiveUp)
    assert isinstance(read({"content": "I look.", "tool_calls": calls}, known), Calls)
    with pytest.raises(DecisionRejected, match="finish"):
        read({"content": DONE, "tool_calls": calls}, known)
    with pytest.raises(DecisionRejected, match="another call"):
        read({"content": f"<tool_call>{READ}</tool_call>", "tool_calls": calls}, known)


def test_thoughts_are_carried_and_never_act(known: Mapping[str, Offer]) -> None:
    text = SET[:-1] + ', "thought": "cold", "intent": "warm", "estimated_cost": 0.5}'
    got = read({"content": text}, known, "json")
    assert isinstance(got, Calls)
    assert (got.thought, got.intent, got.estimated_cost) == ("cold", "warm", "0.5")
    got = read({"content": f"<think>run {READ}</think>No."}, known)
    assert isinstance(got, Finish)
    assert got.thought == f"run {READ}"


def test_a_command_line_is_read_in_its_protocol_only(known: Mapping[str, Offer]) -> None:
    line = "<think>x</think>restart_service nginx<|im_end|>"
    got = read({"content": line}, known, "command")
    assert isinstance(got, Calls)
    assert got.calls[0].args == {"service": "nginx"}
    assert isinstance(read({"content": line}, known, "native"), Finish)
    assert isinstance(read({"content": "done"}, known, "command"), Finish)
    assert isinstance(read({"content": "cannot"}, known, "command"), GiveUp)
    assert isinstance(read({"content": READ}, known, "command"), Calls)
    with pytest.raises(DecisionRejected) as cut:
        decision.read({"content": "restart_service ngin"}, "length", list(known.values()), "command")
    assert cut.value.kind == "truncated"


def test_a_guarded_command_is_a_guard() -> None:
    sensor: dict[str, object] = {"type": "object", "properties": {"name": {"enum": ["boiler"]}}, "required": ["name"]}
    offers = [
        Offer(name="read", effect="read", parameters=sensor),
        Offer(name="fan", effect="once", parameters={"type": "object", "properties": {}}),
    ]
    got = decision.read({"content": "if read boiler -> value > 60 then fan"}, "stop", offers, "command")
    assert isinstance(got, Guard)
    assert (got.path, got.op, got.value, got.then.name) == ("value", ">", 60, "fan")


def test_long_lists_of_tools_are_shortened_around_the_closest_name() -> None:
    offers = [Offer(name=f"tool_{number}", effect="read", parameters={"type": "object"}) for number in range(100)]
    with pytest.raises(DecisionRejected) as unknown:
        decision.read({"tool_calls": [{"function": {"name": "tool_77x"}}]}, None, offers, "native")
    assert "tool_77," in unknown.value.message
    assert len(unknown.value.message) < 300


def read(message: dict[str, object], known: Mapping[str, Offer], protocol: Asked = "native") -> object:
    return decision.read(message, "stop", [known[name] for name in TOOLS], protocol)


@pytest.mark.parametrize(("count", "runs"), [(1, True), (16, True), (17, False), (200, False)])
def test_one_message_asks_for_a_few_calls_and_not_for_hundreds(
    count: int, runs: bool, known: Mapping[str, Offer]
) -> None:
    call = {"type": "function", "function": {"name": "get_uptime", "arguments": "{}"}}
    message: dict[str, object] = {"role": "assistant", "content": None, "tool_calls": [call] * count}
    offers = [known[name] for name in TOOLS]
    if runs:
        decided = decision.read(message, "tool_calls", offers, "native")
        assert isinstance(decided, Calls) and len(decided.calls) == count
    else:
        with pytest.raises(DecisionRejected, match="at most 16"):
            decision.read(message, "tool_calls", offers, "native")
