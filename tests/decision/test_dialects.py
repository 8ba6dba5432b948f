"""Every dialect that public servers and parsers know, as it leaks into text: each is read, cut and hidden alike."""

from collections.abc import Mapping, Sequence

import pytest

from rea_edge.records import Offer

from .cases import same, told
from .tagged_rows import TAGGED_ROWS

LT = "<"  # tags are put together, so that this file shows none that a tool could take for its own
M3 = "]" + "<]minimax[>["
TOOLS = ["read_sensor", "set_gpio", "get_uptime", "restart_service", "run_diagnostics"]
READ: list[object] = [{"name": "read_sensor", "args": {"sensor": "temp_in"}}]
SET: list[object] = [{"name": "set_gpio", "args": {"pin": 17, "value": 1}}]
SENSOR = '{"sensor": "temp_in"}'
PIN = '{"pin": 17, "value": 1}'
NAMED_READ = '{"name": "read_sensor", "arguments": ' + SENSOR + "}"
NAMED_SET = '{"name": "set_gpio", "arguments": ' + PIN + "}"
PARAMS_READ = '{"name": "read_sensor", "parameters": ' + SENSOR + "}"
PARAMS_SET = '{"name": "set_gpio", "parameters": ' + PIN + "}"
PIN_PAIRS = [("pin", "17"), ("value", "1")]


def invoke_tag(prefix: str, name: str, pairs: Sequence[tuple[str, str]]) -> str:
    inner = "".join(f'{LT}{prefix}parameter name="{key}">{value}{LT}/{prefix}parameter>\n' for key, value in pairs)
    return f'{LT}{prefix}invoke name="{name}">\n{inner}{LT}/{prefix}invoke>'


def function_tag(name: str, pairs: Sequence[tuple[str, str]], line: str = "\n") -> str:
    inner = "".join(f"{LT}parameter={key}>{line}{value}{line}{LT}/parameter>{line}" for key, value in pairs)
    return f"{LT}function={name}>{line}{inner}{LT}/function>"


CALLS = [
    *TAGGED_ROWS,
    (
        "kimi2",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.read_sensor:0<|tool_call_argument_begin|>"
        + SENSOR
        + "<|tool_call_end|><|tool_call_begin|>functions.set_gpio:1<|tool_call_argument_begin|>"
        + PIN
        + "<|tool_call_end|><|tool_calls_section_end|>",
        READ + SET,
    ),
    (
        "kimi text",
        "I will look.<|tool_calls_section_begin|><|tool_call_begin|> functions.read_sensor:0 <|tool_call_argument_begin|> "
        + SENSOR
        + " <|tool_call_end|><|tool_calls_section_end|>",
        READ,
    ),
    ("mistral v11", "[TOOL_CALLS]read_sensor" + SENSOR, READ),
    ("mistral v13", "[TOOL_CALLS]read_sensor[ARGS]" + SENSOR, READ),
    ("mistral callid", "[TOOL_CALLS]read_sensor[CALL_ID]123456789[ARGS]" + SENSOR, READ),
    ("mistral 2", "[TOOL_CALLS]read_sensor[ARGS]" + SENSOR + "[TOOL_CALLS]set_gpio[ARGS]" + PIN, READ + SET),
    ("mistral 2b", "[TOOL_CALLS]read_sensor" + SENSOR + "[TOOL_CALLS]set_gpio" + PIN + "</s>", READ + SET),
    ("mistral text", "I am looking. [TOOL_CALLS] [" + NAMED_READ + "]", READ),
    ("mistral obj", "[TOOL_CALLS] " + NAMED_READ, READ),
    ("magistral", "[THINK]hm[/THINK][TOOL_CALLS]read_sensor[ARGS]" + SENSOR, READ),
    ("llama json", '<|python_tag|>{"type": "function", "name": "read_sensor", "parameters": ' + SENSOR + "}", READ),
    ("llama multi", PARAMS_READ + "; " + PARAMS_SET, READ + SET),
    ("llama tag multi", "<|python_tag|>" + PARAMS_READ + "; " + PARAMS_SET, READ + SET),
    ("llama4", '<|python_start|>[read_sensor(sensor="temp_in"), set_gpio(pin=17, value=1)]<|python_end|>', READ + SET),
    ("pythonic", '[read_sensor(sensor="temp_in"), set_gpio(pin=17, value=1)]', READ + SET),
    ("pythonic nl", "[\n  read_sensor(sensor='temp_in'),\n  set_gpio(pin=17, value=1),\n]", READ + SET),
    (
        "ds v3",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_sensor\n```json\n"
        + SENSOR
        + "\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>set_gpio\n```json\n"
        + PIN
        + "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        READ + SET,
    ),
    (
        "ds odd",
        "<｜tool calls begin｜><｜tool call begin｜>function<｜tool sep｜>read_sensor\n```json\n"
        + SENSOR
        + "\n```<｜tool call end｜><｜tool calls end｜>",
        READ,
    ),
    (
        "dsml",
        f"{LT}｜DSML｜function_calls>\n"
        + f'{LT}｜DSML｜invoke name="set_gpio">\n{LT}｜DSML｜parameter name="pin" string="false">17{LT}/｜DSML｜parameter>\n{LT}｜DSML｜parameter name="value" string="false">1{LT}/｜DSML｜parameter>\n{LT}/｜DSML｜invoke>\n{LT}/｜DSML｜function_calls>',
        SET,
    ),
    (
        "dsml str",
        f'{LT}｜DSML｜function_calls>\n{LT}｜DSML｜invoke name="read_sensor">\n{LT}｜DSML｜parameter name="sensor" string="true">temp_in{LT}/｜DSML｜parameter>\n{LT}/｜DSML｜invoke>\n{LT}/｜DSML｜function_calls><｜end▁of▁sentence｜>',
        READ,
    ),
    (
        "glm45",
        "<tool_call>read_sensor\n<arg_key>sensor</arg_key>\n<arg_value>temp_in</arg_value>\n</tool_call>\n<tool_call>set_gpio\n<arg_key>pin</arg_key>\n<arg_value>17</arg_value>\n<arg_key>value</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
        READ + SET,
    ),
    (
        "glm5",
        "<tool_call>set_gpio<arg_key>pin</arg_key><arg_value>17</arg_value><arg_key>value</arg_key><arg_value>1</arg_value></tool_call>",
        SET,
    ),
    ("glm noarg", "<tool_call>get_uptime\n</tool_call>", [{"name": "get_uptime", "args": {}}]),
    (
        "seed",
        "<seed:think>hm</seed:think><seed:tool_call>\n"
        + function_tag("set_gpio", PIN_PAIRS, "")
        + "\n</seed:tool_call>",
        SET,
    ),
    (
        "step3",
        "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>"
        + invoke_tag("steptml:", "set_gpio", PIN_PAIRS)
        + "<｜tool_call_end｜><｜tool_calls_end｜>",
        SET,
    ),
    ("minimax m1", "<tool_calls>\n" + NAMED_READ + "\n" + NAMED_SET + "\n</tool_calls>", READ + SET),
    (
        "minimax m2",
        "<minimax:tool_call>\n"
        + invoke_tag("", "read_sensor", [("sensor", "temp_in")])
        + "\n"
        + invoke_tag("", "set_gpio", PIN_PAIRS)
        + "\n</minimax:tool_call>",
        READ + SET,
    ),
    ("hunyuan", "<tool_calls>[" + NAMED_READ + "]</tool_calls>", READ),
    ("granite", "<|tool_call|>[" + NAMED_READ + ", " + NAMED_SET + "]", READ + SET),
    ("granite20b", "<function_call> " + NAMED_READ, READ),
    ("granite20b2", "<function_call> " + NAMED_READ + "\n<function_call> " + NAMED_SET, READ + SET),
    ("phi4", "functools[" + NAMED_READ + "]", READ),
    ("phi4b", "<|tool_call|>[" + NAMED_READ + "]<|/tool_call|>", READ),
    (
        "cohere",
        '<|START_THINKING|>I need it.<|END_THINKING|><|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "read_sensor", "parameters": '
        + SENSOR
        + "}\n]<|END_ACTION|>",
        READ,
    ),
    (
        "cohere old",
        'Action: ```json\n[\n    {\n        "tool_name": "read_sensor",\n        "parameters": '
        + SENSOR
        + "\n    }\n]```",
        READ,
    ),
    ("internlm", "<|action_start|><|plugin|>\n" + PARAMS_READ + "<|action_end|>", READ),
    ("lfm2", '<|tool_call_start|>[read_sensor(sensor="temp_in")]<|tool_call_end|>', READ),
    ("lfm2 json", "<|tool_call_start|>[" + NAMED_READ + "]<|tool_call_end|>Reading.", READ),
    ("apertus", '<|tools_prefix|>[{"read_sensor": ' + SENSOR + "}]<|tools_suffix|>", READ),
    (
        "olmo3",
        f'{LT}function_calls>\nread_sensor(sensor="temp_in")\nset_gpio(pin=17, value=1)\n{LT}/function_calls>',
        READ + SET,
    ),
    ("gemma print", '```tool_code\nprint(read_sensor(sensor="temp_in"))\n```', READ),
    ("gemma 2", 'Okay.\n```tool_code\nread_sensor(sensor="temp_in")\nset_gpio(pin=17, value=1)\n```', READ + SET),
    ("gemma list", '```tool_code\n[read_sensor(sensor="temp_in"), set_gpio(pin=17, value=1)]\n```', READ + SET),
    ("gemma default_api", '```tool_code\nprint(default_api.read_sensor(sensor="temp_in"))\n```', READ),
    ("functiongemma", "<start_function_call>call:read_sensor{sensor:<escape>temp_in<escape>}<end_function_call>", READ),
    (
        "functiongemma2",
        "<start_function_call>call:set_gpio{pin:17,value:1}<end_function_call><start_function_response>",
        SET,
    ),
    ("gemma4", '<|tool_call>call:read_sensor{sensor:<|"|>temp_in<|"|>}<tool_call|>', READ),
    ("nemotron", "<TOOLCALL>[" + NAMED_READ + "]</TOOLCALL>", READ),
    ("xlam", "[" + NAMED_READ + ", " + NAMED_SET + "]", READ + SET),
    ("xlam fence", "```json\n[" + NAMED_READ + "]\n```", READ),
    ("xlam toolcalls", "[TOOL_CALLS][" + NAMED_READ + "]", READ),
    ("func name attr", '<function name="read_sensor">' + SENSOR + "</function>", READ),
    (
        "llama31 fn",
        "<function=read_sensor>" + SENSOR + "</function><function=set_gpio>" + PIN + "</function>",
        READ + SET,
    ),
    ("llama31 fn eom", "<function=read_sensor>" + SENSOR + "</function><|eom_id|>", READ),
    (
        "qwen coder multi",
        "<tool_call>\n"
        + function_tag("read_sensor", [("sensor", "temp_in")])
        + "\n</tool_call>\n<tool_call>\n"
        + function_tag("set_gpio", PIN_PAIRS)
        + "\n</tool_call>",
        READ + SET,
    ),
    (
        "qwen missing close",
        f"<tool_call>\n<function=set_gpio>\n{LT}parameter=pin>\n17\n{LT}parameter=value>\n1\n{LT}/parameter>\n</function>\n</tool_call>",
        SET,
    ),
    (
        "harmony2",
        "<|start|>assistant<|channel|>commentary to=functions.read_sensor<|constrain|>json<|message|>"
        + SENSOR
        + "<|call|><|start|>assistant<|channel|>commentary to=functions.set_gpio <|constrain|>json<|message|>"
        + PIN
        + "<|call|>",
        READ + SET,
    ),
    (
        "harmony recip first",
        " to=functions.read_sensor<|channel|>commentary json<|message|>" + SENSOR + "<|call|>",
        READ,
    ),
    (
        "harmony recip role",
        "<|start|>assistant to=functions.read_sensor<|channel|>commentary<|constrain|>json<|message|>" + SENSOR,
        READ,
    ),
    (
        "harmony analysis to",
        "<|channel|>analysis<|message|>x<|end|><|start|>assistant<|channel|>analysis to=functions.read_sensor <|constrain|>json<|message|>"
        + SENSOR,
        READ,
    ),
    ("functionary v3.2", ">>>read_sensor\n" + SENSOR, READ),
    ("functionary v3.2b", "read_sensor\n" + SENSOR, READ),
    ("functionary two", ">>>read_sensor\n" + SENSOR + "\n>>>set_gpio\n" + PIN, READ + SET),
    ("functionary all", "all\nI will read it.\n>>>read_sensor\n" + SENSOR, READ),
    ("functionary v2", "<|from|>assistant\n<|recipient|>read_sensor\n<|content|>" + SENSOR + "<|stop|>", READ),
    ("generic", '{"tool_call": ' + NAMED_READ + "}", READ),
    ("generic list", '{"tool_calls": [' + NAMED_READ + ", " + NAMED_SET + "]}", READ + SET),
    (
        "openai dump",
        '{"tool_calls": [{"id": "x", "type": "function", "function": {"name": "read_sensor", "arguments": "{\\"sensor\\": \\"temp_in\\"}"}}]}',
        READ,
    ),
    ("fc dump", '{"function_call": {"name": "read_sensor", "arguments": "{\\"sensor\\": \\"temp_in\\"}"}}', READ),
    ("hermes in fence", "```xml\n<tool_call>\n" + NAMED_READ + "\n</tool_call>\n```", READ),
    ("hermes fence inside", "<tool_call>\n```json\n" + NAMED_READ + "\n```\n</tool_call>", READ),
    ("tools tag", "<tools>" + NAMED_READ + "</tools>", READ),
    ("tool tag", "<tool>" + NAMED_READ + "</tool>", READ),
    ("json tag", "<json>" + NAMED_READ + "</json>", READ),
    ("response tag", "<response>" + NAMED_READ + "</response>", READ),
    ("hermes extra brace", "<tool_call>\n" + NAMED_READ + "}\n</tool_call>", READ),
    ("hermes missing brace", "<tool_call>\n" + NAMED_READ[:-1] + "\n</tool_call>", READ),
    (
        "hermes single quotes",
        "<tool_call>\n{'name': 'read_sensor', 'arguments': {'sensor': 'temp_in'}}\n</tool_call>",
        READ,
    ),
    ("hermes two in one", "<tool_call>\n" + NAMED_READ + "\n" + NAMED_SET + "\n</tool_call>", READ + SET),
    (
        "longcat",
        "<longcat_tool_call>set_gpio\n<longcat_arg_key>pin</longcat_arg_key>\n<longcat_arg_value>17</longcat_arg_value>\n<longcat_arg_key>value</longcat_arg_key>\n<longcat_arg_value>1</longcat_arg_value>\n</longcat_tool_call>",
        SET,
    ),
    ("anthropic", f"{LT}function_calls>\n" + invoke_tag("", "set_gpio", PIN_PAIRS) + f"\n{LT}/function_calls>", SET),
    ("gigachat", "function call<|role_sep|>\n" + NAMED_READ, READ),
    ("llama header", "<|start_header_id|>assistant<|end_header_id|>\n\n" + PARAMS_READ + "<|eot_id|>", READ),
    ("ernie", "<think>\nhm\n</think>\n\n<tool_call>\n" + NAMED_READ + "\n</tool_call>\n", READ),
    ("orphan think", "hm\n</think>\n\n<tool_call>\n" + NAMED_READ + "\n</tool_call>", READ),
    (
        "deepseek v31 text",
        "Let me check.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_sensor<｜tool▁sep｜>"
        + SENSOR
        + "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        READ,
    ),
    ("fence call text", "Let me check.\n\n```json\n" + NAMED_READ + "\n```\n", READ),
    (
        "xml name/args",
        "<tool_call>\n<name>read_sensor</name>\n<arguments>" + SENSOR + "</arguments>\n</tool_call>",
        READ,
    ),
    ("tool_use tag", "<tool_use>\n<name>read_sensor</name>\n<arguments>" + SENSOR + "</arguments>\n</tool_use>", READ),
    ("bare py", 'read_sensor(sensor="temp_in")', READ),
    (
        "hunyuan v3",
        "<tool_calls><tool_call>read_sensor<tool_sep>\n<arg_key>sensor</arg_key>\n<arg_value>temp_in</arg_value>\n</tool_call></tool_calls>",
        READ,
    ),
    ("trailing prose tag", "<tool_call>\n" + NAMED_READ + "\n</tool_call>\nI have called it.", READ),
    ("exaone", "<tool_call>" + NAMED_READ + "</tool_call>[|endofturn|]", READ),
    (
        "m3",
        f'<mm:think>x</mm:think>{M3}<tool_call>\n{M3}<invoke name="set_gpio">{M3}<pin>17{M3}</pin>{M3}<value>1{M3}</value>{M3}</invoke>\n{M3}</tool_call>',
        SET,
    ),
    (
        "m3 noarg",
        f'{M3}<tool_call>\n{M3}<invoke name="get_uptime">{M3}</invoke>\n{M3}</tool_call>',
        [{"name": "get_uptime", "args": {}}],
    ),
    (
        "atem",
        " to=set_gpio<|message|><atem:function_calls>\n"
        + invoke_tag("atem:", "set_gpio", PIN_PAIRS)
        + "\n</atem:function_calls>",
        SET,
    ),
    ("muse answer", " to=user<|message|>Hello, world!\nWhat's up?<|eot|>", "Hello, world!\nWhat's up?"),
    ("muse self", " to=self<|message|>I need<|eom|><|start|>assistant to=user<|message|>Hello!<|eot|>", "Hello!"),
    ("apriel", "I'm thinking\n[BEGIN FINAL RESPONSE]\nHello.", "Hello."),
    ("apriel call", "I'm thinking\n[BEGIN FINAL RESPONSE]\n<tool_calls>[" + NAMED_READ + "]</tool_calls>", READ),
    ("oss comm", "<|channel|>commentary<|message|>Hello, world!", "Hello, world!"),
    ("oss comm end", "<|channel|>commentary<|message|>Hello, world!<|end|>", "Hello, world!"),
    ("oss an", " to=functions.read_sensor<|channel|>analysis <|constrain|>json<|message|>" + SENSOR, READ),
    (
        "glm markers",
        "check\n</think>\n<tool_call>restart_service\n<arg_key>service</arg_key>\n<arg_value>has </think> and <tool_call> in</arg_value>\n</tool_call>",
        [{"name": "restart_service", "args": {"service": "has </think> and <tool_call> in"}}],
    ),
    (
        "kimi nosec",
        "<|tool_call_begin|>functions.read_sensor:0<|tool_call_argument_begin|>"
        + SENSOR
        + "<|tool_call_begin|>functions.set_gpio:1<|tool_call_argument_begin|>"
        + PIN,
        READ + SET,
    ),
    (
        "fake in reasoning",
        "Let me think about <tool_call>\n"
        + NAMED_SET
        + "</tool_call> hmm\n</think>\n\n<tool_call>\n"
        + NAMED_READ
        + "</tool_call>",
        READ,
    ),
    (
        "seed nl",
        "<seed:tool_call>\n<function=restart_service>\n<"
        + "parameter=service>a\n<"
        + "/parameter>\n</function>\n</seed:tool_call>",
        [{"name": "restart_service", "args": {"service": "a\n"}}],
    ),
]


@pytest.mark.parametrize(
    ("text", "expected"), [pytest.param(text, expected, id=name) for name, text, expected in CALLS]
)
def test_a_dialect_is_read_in_every_protocol(text: str, expected: object, known: Mapping[str, Offer]) -> None:
    for protocol in ("native", "any"):
        got = told(text, known, protocol=protocol, tools=TOOLS)
        if isinstance(expected, str):
            assert got == {"decision": "finish", "answer": expected}
        else:
            assert got.get("calls") == expected, got


# Where the opening tag of a thought was part of the prompt, a cut reply does not show that it was one.
@pytest.mark.parametrize(
    ("text", "expected"),
    [pytest.param(text, expected, id=name) for name, text, expected in CALLS if name != "fake in reasoning"],
)
def test_a_dialect_cut_anywhere_gives_only_whole_calls(text: str, expected: object, known: Mapping[str, Offer]) -> None:
    if isinstance(expected, str):
        return
    for length in range(0, len(text), 3):
        got = told(text[:length], known, reason="length", tools=TOOLS)
        assert got["decision"] != "finish", text[:length]
        assert got["decision"] != "tool" or same(got["calls"], expected), text[:length]


@pytest.mark.parametrize(
    ("text", "expected"), [pytest.param(text, expected, id=name) for name, text, expected in CALLS]
)
def test_a_dialect_in_code_marks_or_thought_gives_no_call(
    text: str, expected: object, known: Mapping[str, Offer]
) -> None:
    for around in ("<think>{}</think>Done.", "As text it reads:\n````\n{}\n````\nNothing was run."):
        assert told(around.replace("{}", text), known, tools=TOOLS)["decision"] != "tool"
