"""Dialects whose calls or values stand in tags of their own: name, text, and the calls or the answer they say."""

LT = "<"  # tags are put together, so that this file shows none that a tool could take for its own
M3 = "]" + "<]minimax[>["
READ: list[object] = [{"name": "read_sensor", "args": {"sensor": "temp_in"}}]
SET: list[object] = [{"name": "set_gpio", "args": {"pin": 17, "value": 1}}]
UPTIME: list[object] = [{"name": "get_uptime", "args": {}}]
CHECK: list[object] = [{"name": "run_diagnostics", "args": {"checks": ["cpu", "net"], "options": {"timeout_s": 2.5}}}]
SENSOR = '{"sensor": "temp_in"}'
NAMED_READ = '{"name": "read_sensor", "arguments": ' + SENSOR + "}"


def m3(name: str, inner: str) -> str:
    return f'{M3}<tool_call>\n{M3}<invoke name="{name}">{inner}{M3}</invoke>\n{M3}</tool_call>'


def m3_tag(key: str, inner: str) -> str:
    return f"{M3}<{key}>{inner}{M3}</{key}>"


def keyed(name: str, pairs: list[tuple[str, str]], before: str = "", after: str = "", kind: str = "") -> str:
    def tag(word: str, text: str) -> str:
        return f"{LT}{before}{word}{after}>{text}{LT}/{before}{word}{after}>"

    inner = "".join(tag("arg_key", key) + kind + tag("arg_value", value) for key, value in pairs)
    return tag("tool_call", name + inner)


def solar(name: str, pairs: list[tuple[str, str]]) -> str:
    inner = "".join(f"<|tool_arg:start|>{key}<|tool_arg:value|>{value}<|tool_arg:end|>\n" for key, value in pairs)
    return f"<|tool_call:start|>{name}\n{inner}<|tool_call:end|>"


def kimi3(number: int, name: str, pairs: list[tuple[str, str, str]]) -> str:
    inner = "".join(
        f'<|open|>argument key="{key}" type="{kind}"<|sep|>{value}<|close|>argument<|sep|>'
        for key, kind, value in pairs
    )
    return f'<|open|>call tool="{name}" index="{number}"<|sep|>{inner}<|close|>call<|sep|>'


def plamo(name: str, args: str) -> str:
    inner = f"<|plamo:begin_tool_name:plamo|>{name}<|plamo:end_tool_name:plamo|>"
    inner += f"<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{args}"
    return (
        f"<|plamo:begin_tool_request:plamo|>{inner}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>"
    )


def params(name: str, pairs: list[tuple[str, str]]) -> str:
    return (
        f'{LT}function name="{name}">'
        + "".join(f'{LT}param name="{k}">{v}{LT}/param>' for k, v in pairs)
        + f"{LT}/function>"
    )


PIN = [("pin", "17"), ("value", "1")]
K3_READ = kimi3(1, "read_sensor", [("sensor", "string", "temp_in")])
K3_SET = kimi3(2, "set_gpio", [("pin", "number", "17"), ("value", "number", "1")])
K3_END = "<|close|>tools<|sep|><|close|>message<|sep|>"
TAGGED_ROWS: list[tuple[str, str, object]] = [
    (
        "m3 nested",
        m3(
            "run_diagnostics",
            m3_tag("checks", m3_tag("item", "cpu") + m3_tag("item", "net"))
            + m3_tag("options", m3_tag("timeout_s", "2.5")),
        ),
        CHECK,
    ),
    (
        "m3 an object that is empty",
        m3("run_diagnostics", m3_tag("checks", m3_tag("item", "cpu")) + m3_tag("options", "")),
        [{"name": "run_diagnostics", "args": {"checks": ["cpu"], "options": {}}}],
    ),
    ("hunyuan no arguments", f"{LT}tool_calls>{LT}tool_call>get_uptime<tool_sep>\n{LT}/tool_call>{LT}/tool_calls>", UPTIME),
    (
        "hunyuan 4",
        f"{LT}tool_calls:opensource>"
        + keyed("set_gpio", PIN, after=":opensource")
        + keyed("get_uptime", [], after=":opensource")
        + f"{LT}/tool_calls:opensource>",
        SET + UPTIME,
    ),
    ("k2 horizon", f"{LT}ifm|tool_calls>" + keyed("set_gpio", PIN, "ifm|") + f"\n{LT}/ifm|tool_calls>", SET),
    (
        "k2 horizon, types told",
        f"{LT}ifm|tool_calls>" + keyed("set_gpio", PIN, "ifm|", kind=f"{LT}ifm|arg_type>integer{LT}/ifm|arg_type>")
        + f"{LT}/ifm|tool_calls>",
        SET,
    ),
    ("k2 horizon json", f"{LT}ifm|tool_calls>{LT}ifm|tool_call>{NAMED_READ}{LT}/ifm|tool_call>{LT}/ifm|tool_calls>", READ),
    ("solar 2", "I look." + solar("read_sensor", [("sensor", "temp_in")]) + "\n" + solar("set_gpio", PIN), READ + SET),
    ("solar 2 thought", "<|think:start|>x<|think:end|>" + solar("get_uptime", []), UPTIME),
    ("kimi 3", "<|open|>tools<|sep|>" + K3_READ + K3_SET + K3_END, READ + SET),
    (
        "kimi 3 after a thought and a word",
        "I see<|close|>think<|sep|><|open|>response<|sep|>On it.<|close|>response<|sep|><|open|>tools<|sep|>" + K3_SET + K3_END,
        SET,
    ),
    ("kimi 3 answer", "<|open|>response<|sep|>It is 4.<|close|>response<|sep|><|close|>message<|sep|>", "It is 4."),
    (
        "plamo 3",
        "Checking.<|plamo:begin_tool_requests:plamo|>" + plamo("read_sensor", SENSOR) + plamo("get_uptime", "{}")
        + "<|plamo:end_tool_requests:plamo|><|plamo:tag|>",
        READ + UPTIME,
    ),
    ("minicpm 5", params("set_gpio", PIN) + "\n" + params("read_sensor", [("sensor", "<![CDATA[temp_in]]>")]), SET + READ),
    (
        "minicpm 5, a text with tags",
        params("restart_service", [("service", f"<![CDATA[a {LT}/param> b\nc]]>")]),
        [{"name": "restart_service", "args": {"service": f"a {LT}/param> b\nc"}}],
    ),
    (
        "inkling after a thought",
        "<|message_model|><|content_thinking|>hm<|end_message|><|message_model|>read_sensor<|content_invoke_tool_json|>"
        '{"name": "read_sensor", "args": ' + SENSOR + "}<|end_message|>",
        READ,
    ),
    ("inkling answer", "<|message_model|><|content_text|>It is 4.<|end_message|>", "It is 4."),
    ("dots", f"ok{LT}dots_function_call>{NAMED_READ}{LT}/dots_function_call>", READ),
    ("hyperclova", " -> tool/function_call\n[" + NAMED_READ + "]<|im_end|>", READ),
    (
        "hyperclova after a text",
        "I look.<|im_end|>\n<|im_start|>assistant -> tool/function_call\n[" + NAMED_READ + "]<|im_end|>",
        READ,
    ),
    ("a tag of the tool", f"I look.\n\n{LT}set_gpio>\n{LT}pin>17{LT}/pin>\n{LT}value>1{LT}/value>\n{LT}/set_gpio>", SET),
    ("a tag of the tool, JSON in it", f"{LT}read_sensor>\n{SENSOR}\n{LT}/read_sensor>", READ),
    ("gemma 4 without tags", "<|channel>thought\nhm\n<channel|>call:read_sensor{sensor:<|\"|>temp_in<|\"|>}", READ),
    ("gemma 4 with a colon more", "<|tool_call>:call:read_sensor{sensor:<|\"|>temp_in<|\"|>}<tool_call|>", READ),
    ("functionary next after a name", "read_sensor\n" + SENSOR + "\n>>>get_uptime\n{}", READ + UPTIME),
    ("functionary without a line break", ">>>read_sensor\n" + SENSOR + ">>>get_uptime\n{}", READ + UPTIME),
    ("functionary after a word", ">>>all\nI look.>>>read_sensor\n" + SENSOR, READ),
    ("functionary 2, its tokens in the prompt", "read_sensor\n<|content|>" + SENSOR + "<|stop|>", READ),
    (
        "functionary 2, two",
        "read_sensor\n<|content|>" + SENSOR + "\n<|from|>assistant\n<|recipient|>get_uptime\n<|content|>{}<|stop|>",
        READ + UPTIME,
    ),
    ("functionary answer", "all\nIt is 4.", "It is 4."),
    ("qwen agent", "✿FUNCTION✿: read_sensor\n✿ARGS✿: " + SENSOR + "\n✿RESULT✿", READ),
    ("qwen agent answer", "✿RETURN✿: It is 4.", "It is 4."),
    ("cohere text", "hm<|END_THINKING|><|START_TEXT|>It is 4.<|END_TEXT|>", "It is 4."),
    ("granite response", "<think>hm</think><response>It is 4.</response>", "It is 4."),
    ("gemma 4 closed twice", "<|channel>thought\n<channel|>It is 4.<channel|>", "It is 4."),
    (
        "muse informs, then acts",
        " to=user<|message|>I look.<|eom|><|start|>assistant to=read_sensor<|message|>" + SENSOR + "<|eot|>",
        READ,
    ),
    (
        "muse shows a call in its answer",
        f" to=user<|message|>It reads:\n{LT}function_calls>{params('set_gpio', PIN)}{LT}/function_calls><|eot|>",
        f"It reads:\n{LT}function_calls>{params('set_gpio', PIN)}{LT}/function_calls>",
    ),
    ("gpt-oss without tokens", "analysisI look.assistantcommentary to=functions.read_sensor json" + SENSOR, READ),
    ("gpt-oss without tokens, answer", "analysisSimple.assistantfinalIt is 4.", "It is 4."),
    (
        "gpt-oss with its header twice",
        "<|channel|>commentary to=functions.read_sensor<|channel|>commentary <|constrain|>json<|message|>" + SENSOR,
        READ,
    ),
    ("llama, the tag closed late", f"{LT}function=read_sensor{SENSOR}>{LT}/function>", READ),
    ("llama, the tag not closed", f"{LT}function=read_sensor {SENSOR}{LT}/function>", READ),
    (
        "gpt-oss speaks to itself",
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=assistant<|channel|>final<|message|>It is 4.",
        "It is 4.",
    ),
]  # fmt: skip
