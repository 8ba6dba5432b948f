"""The marks of the dialects that models leak into text, as tables. A new dialect is one entry here.

Holds patterns only: `bodies` reads what stands inside markup, `scan` walks a reply from mark to mark. Special tokens
are written by name: `tool_call` matches `<|tool_call|>`, `<｜tool▁call｜>` and any mixture of bars.
"""

import re

from msgspec import Struct


class Wrapper(Struct, frozen=True):
    """Markup around calls. `close` is None where a dialect has no closing tag; `many`: more calls may follow inside."""

    open: str
    close: str | None = None
    many: bool = False


_BAR = r"[|｜]"
# Before a tag's name: a vendor's namespace (seed:, minimax:, ifm|, ...), or the marker of DeepSeek or MiniMax M3.
_NS = rf"(?:[a-z_]{{1,16}}[:|]|{_BAR} ?DSML ?{_BAR} ?)?"
_M3 = r"(?:\]<\]minimax\[>\[)?"
_EDITION = r"(?::[a-z_]{1,16})?"  # after a tag's name (Hunyuan 4)
_PREFIX = r"(?:longcat_|ifm\|)?"


def _token(name: str) -> str:
    """A special token by its normalised name."""
    return rf"<{_BAR}" + name.replace("_", r"[_▁\s]") + rf"{_BAR}>"


SPEAKS = r"-> tool/function_call\n"

WRAPPERS = (
    # Hermes, Qwen, Granite 4, GLM 4.5, Ernie, Exaone; Jamba, Hunyuan, MiniMax M1, Apriel; Nemotron; Seed; DSML; LongCat
    Wrapper(rf"{_M3}<{_NS}tool_?call{_EDITION}>", rf"{_M3}</{_NS}tool_?call{_EDITION}>"),
    Wrapper(
        rf"<{_NS}(?:tool_?calls|function_?calls){_EDITION}>", rf"</{_NS}(?:tool_?calls|function_?calls){_EDITION}>",
        many=True,
    ),
    Wrapper(r"<(?:dots_)?function_call>", r"</(?:dots_)?function_call>"),
    Wrapper(r"<longcat_tool_call>", r"</longcat_tool_call>"),
    Wrapper(r"<tools?>", r"</tools?>", many=True),
    Wrapper(r"<tool_use>", r"</tool_use>"),
    # Mistral, Phi-4, Granite 3, Llama 3, Cohere, InternLM, LFM2, Apertus, Llama 4, GigaChat
    Wrapper(r"\[TOOL_CALLS\]", None, many=True),
    Wrapper(r"functools(?=\s*\[)"),
    Wrapper(_token("tool_call"), rf"{_token('/tool_call')}|</tool_call>|{_token('tool_call_end')}", many=True),
    Wrapper(_token("tool_calls"), _token("/tool_calls"), many=True),
    Wrapper(_token("python_tag"), None, many=True),
    Wrapper(_token("python_start"), _token("python_end")),
    Wrapper(_token("start_action"), _token("end_action"), many=True),
    Wrapper(rf"{_token('action_start')}\s*(?:{_token('plugin')}|{_token('interpreter')})", _token("action_end")),
    Wrapper(_token("tool_call_start"), _token("tool_call_end"), many=True),
    Wrapper(_token("tools_prefix"), _token("tools_suffix"), many=True),
    Wrapper(_token("function_call"), None),
    Wrapper(rf"function call(?={_BAR}|<{_BAR}role_sep)(?:<{_BAR}role_sep{_BAR}>)?", None),
    # DeepSeek V3 and V3.1, Kimi K2, Step 3: one call each, sections around them
    Wrapper(_token("tool_call_begin"), _token("tool_call_end")),
    # Solar Open 2, PLaMo 3, HyperCLOVA X (a message of its own, with the tool as its speaker), MiniMax M2, LM Studio
    Wrapper(r"<\|tool_call:start\|>", r"<\|tool_call:end\|>"),
    Wrapper(r"<\|plamo:begin_tool_requests:plamo\|>", r"<\|plamo:end_tool_requests:plamo\|>", many=True),
    Wrapper(r"<\|plamo:begin_tool_request:plamo\|>", r"<\|plamo:end_tool_request:plamo\|>"),
    Wrapper(rf"(?:<\|im_end\|>\s*)?(?:<\|im_start\|>)?(?:assistant)? ?{SPEAKS}", None),
    Wrapper(r"(?:<\|message_model\|>[\w.-]{0,80})?<\|content_invoke_tool_json\|>", r"<\|end_message\|>"),  # Inkling
    Wrapper(r"\[TOOL_CALL\]", r"\[/TOOL_CALL\]", many=True),
    Wrapper(r"\[TOOL_REQUEST\]", r"\[END_TOOL_REQUEST\]"),
    # functionary: the recipient's name, then the object
    Wrapper(r"(?<!>)>>>(?=[\w.-]+\s*\n\s*\{)", None),
    Wrapper(_token("recipient") + r"(?!\s*all\b)", None),
    # FunctionGemma, Gemma 4
    Wrapper(r"<start_function_call>", r"<end_function_call>"),
    Wrapper(r"<\|tool_call>", r"<tool_call\|>"),
)  # fmt: skip

# Sections around several calls: noise, but a cut reply whose section is open may have lost a call.
_SECTION_END = rf"{_token('tool_calls_end')}|{_token('tool_calls_section_end')}|<\|close\|>tools<\|sep\|>"
SECTION_OPEN = re.compile(
    rf"{_token('tool_calls_begin')}|{_token('tool_calls_section_begin')}|<\|open\|>tools<\|sep\|>", re.IGNORECASE
)
SECTION_INSIDE = re.compile(rf"\s*(?:{_token('tool_call_begin')}|<\|open\|>call\b|{_SECTION_END})", re.IGNORECASE)
SECTION_CLOSE = re.compile(_SECTION_END, re.IGNORECASE)

# Single calls in XML: the name is in the opening tag.
XML_CALL = re.compile(
    r"<function=\s*[\"']?(?P<a>[^<>\"'\s{}]+)[\"']?\s*>"
    r"|<function=(?P<e>[\w.-]{1,80})[,:(\s]*(?=\{)"
    r"|<function\s+name\s*=\s*[\"']?(?P<b>[^<>\"']+?)[\"']?\s*>"
    rf"|{_M3}<{_NS}invoke\s+name\s*=\s*[\"']?(?P<c>[^<>\"']+?)[\"']?\s*>"
    r"|<\|open\|>call\s+tool\s*=\s*[\"']?(?P<d>[^<>\"']+)[\"']?[^<>]{0,40}<\|sep\|>",
    re.IGNORECASE,
)
XML_CALL_CLOSE = re.compile(rf"{_M3}</{_NS}(?:function|invoke)>|<\|close\|>call<\|sep\|>", re.IGNORECASE)
PARAMETER = re.compile(
    r"<parameter=\s*[\"']?(?P<a>[^<>\"']+?)[\"']?\s*>"
    rf"|<{_NS}param(?:eter)?\s+name\s*=\s*[\"']?(?P<b>[^<>\"']+?)[\"']?"
    r"(?:\s+string\s*=\s*[\"'](?P<literal>true|false)[\"'])?\s*>"
    r"|\]<\]minimax\[>\[<(?P<element>[\w.-]+)>"
    r"|<\|open\|>argument\s+key\s*=\s*[\"'](?P<d>[^<>\"']+)[\"'][^<>]{0,40}<\|sep\|>",
    re.IGNORECASE,
)
PARAMETER_CLOSE = re.compile(rf"</{_NS}param(?:eter)?(?:=[^<>]*)?>|<\|close\|>argument<\|sep\|>", re.IGNORECASE)
ELEMENT = re.compile(r"\]<\]minimax\[>\[<(?P<end>/)?(?P<key>[\w.-]+)>", re.IGNORECASE)
# Where a parameter's text may end: its closing tag; or, that left out, the next tag of the call at the start of a line.
PARAMETER_EDGE = re.compile(
    rf"(?P<close>{PARAMETER_CLOSE.pattern})"
    r"|(?<=\n)[ \t]*(?=<parameter=)|(?<=\n)[ \t]*(?=</function>\s*(?:</tool_call>|<function=|\Z))",
    re.IGNORECASE,
)
KEY_OPEN = re.compile(rf"<{_PREFIX}arg_key{_EDITION}>|<\|tool_arg:start\|>", re.IGNORECASE)
KEY_VALUE = re.compile(
    rf"\s*(?:<{_PREFIX}arg_key{_EDITION}>(?P<a>[^<]*)</{_PREFIX}arg_key{_EDITION}>\s*"
    rf"(?:<{_PREFIX}arg_type>[^<]*</{_PREFIX}arg_type>\s*)?<{_PREFIX}arg_value{_EDITION}>"
    r"|<\|tool_arg:start\|>(?P<b>[^<]*)<\|tool_arg:value\|>)",
    re.IGNORECASE,
)
VALUE_CLOSE = re.compile(rf"</{_PREFIX}arg_value{_EDITION}>|<\|tool_arg:end\|>", re.IGNORECASE)
# A call in tags of its own: <name>x</name> <arguments>{...}</arguments>
TAGGED_NAME = re.compile(
    r"<(?P<tag>name|tool_name|function_name)>(?P<a>[^<>]+)</(?P=tag)>\s*<(?:arguments|parameters|args|input)>"
    r"|<\|plamo:begin_tool_name:plamo\|>(?P<b>[^<>]+)<\|plamo:end_tool_name:plamo\|>\s*"
    r"<\|plamo:begin_tool_arguments:plamo\|>(?:<\|plamo:constrain\|>json<\|plamo:msg\|>)?",
    re.IGNORECASE,
)
TAGGED_CLOSE = re.compile(
    r"\s*(?:</(?:arguments|parameters|args|input)>|<\|plamo:end_tool_arguments:plamo\|>)", re.IGNORECASE
)
# Before the call itself: DeepSeek's and Step's kind of tool.
KIND = re.compile(rf"function\s*{_token('tool_sep')}(?=\s*<)", re.IGNORECASE)

# Between a name and its arguments object.
SEPARATOR = re.compile(
    rf"\s*(?:{_token('tool_sep')}|<tool_sep>|{_token('content')}|{_token('tool_call_argument_begin')}|\[CALL_ID\][^\[\]{{}}]{{0,64}}\[ARGS\]|\[ARGS\])?"
    r"\s*(?:`{3,}(?:json)?\s*)?(?=[{｛])",
    re.IGNORECASE,
)
NAME_FIRST = re.compile(
    rf"(?:function\s*{_token('tool_sep')})?(?::?call:)?(?P<name>[^\s<>{{}}\[\]()\"'`|｜｛]{{1,80}})(?:\s*<tool_sep>)?",
    re.IGNORECASE,
)

THINK = re.compile(
    r"<(?P<end>/)?(?:[a-z_]{1,16}:|longcat_)?(?:think|thinking|thoughts?|reasoning|scratch_?pad)>"
    r"|\[(?P<end2>/)?THINK\]|◁(?P<end3>/)?think▷"
    rf"|<{_BAR}(?:start_thinking|begin[_▁]of[_▁]thought|think){_BAR}>|(?P<end4><{_BAR}(?:end_thinking|end[_▁]of[_▁]thought|/think){_BAR}>)"
    r"|(?P<end7>\[BEGIN FINAL RESPONSE\])|<unused94>(?:thought)?|(?P<end5><unused95>)"
    r"|<\|(?:open\|>think<\|sep|think:start|plamo:begin_think:plamo)\|>"
    r"|(?P<end8><\|(?:close\|>think<\|sep|think:end|plamo:end_think:plamo)\|>)"
    r"|(?:<\|message_model\|>)?<\|content_thinking\|>|(?P<end9><\|end_message\|>(?=<\|message_model\|>))"
    r"|<\|channel>thought|(?P<end6><channel\|>)",
    re.IGNORECASE,
)

# What a tool would have said.
RESULT_OPEN = re.compile(
    r"<(?:tool_responses?|tool_results?|function_results?|function_responses?|tool_outputs?|observation|start_function_response)>"
    r"|\[TOOL_RESULTS\]|<\|tool_response>"
    rf"|<{_BAR}(?:tool[_▁]?responses?|tool[_▁]?results?|start_tool_result|observation|tool[_▁]outputs?[_▁]begin|tool){_BAR}>"
    rf"|(?:`{{3,}}|~{{3,}})tool_outputs?\b"
    rf"|<{_BAR}im_start{_BAR}>\s*tool\b|<{_BAR}start_header_id{_BAR}>\s*(?:ipython|tool)\b"
    rf"|<{_BAR}start{_BAR}>functions\.",
    re.IGNORECASE,
)
RESULT_CLOSE = re.compile(
    r"</(?:tool_responses?|tool_results?|function_results?|function_responses?|tool_outputs?|observation)>"
    rf"|<end_function_response>|\[/TOOL_RESULTS\]|<{_BAR}(?:end_tool_result|tool[_▁]outputs[_▁]end){_BAR}>",
    re.IGNORECASE,
)

# The first of these ends the reply.
TURN_END = re.compile(
    rf"<{_BAR}(?:eot_id|eom_id|end_?of_?text|end[_▁]of[_▁](?:sentence|turn|text)|eot|eos|eod|stop|return|end_of_turn_token|"
    rf"end|endofturn|role_end|call|eom|user|start_header_id|start_of_role|end_response|end_text|end_of_role){_BAR}>"
    rf"|<{_BAR}im_(?:end|start){_BAR}>(?!\s*(?:<\|im_start\|>)?assistant {SPEAKS})|<\|plamo:tag\|>|<end_code>"
    r"|<\|end_message\|>(?!<\|message_model\|>)"
    r"|<\|close\|>(?:message<\|sep\|>|response<\|sep\|>(?!\s*<\|open\|>tools<\|sep\|>))"
    r"|</s>|<eos>|<end_of_turn>|<start_of_turn>|<turn\|>|<\|turn>|<\|user\|>"
    r"|\[INST\]|\[/?EOS\]|\[END FINAL RESPONSE\]|\[\|endofturn\|\]",
    re.IGNORECASE,
)
# Where a reply may begin with the tokens of its own turn.
LEAD = re.compile(
    rf"(?:\s|\ufeff|\u200b|<{_BAR}im_start{_BAR}>(?!\s*(?:user|system|tool|human)\b)(?:assistant)?|<{_BAR}start_header_id{_BAR}>assistant<{_BAR}end_header_id{_BAR}>"
    rf"|<{_BAR}(?:begin[_▁]of[_▁](?:sentence|text)|startoftext|assistant|start_response|start_of_turn_token|chatbot_token){_BAR}>"
    rf"|<{_BAR}start_of_role{_BAR}>assistant<{_BAR}end_of_role{_BAR}>|<start_of_turn>(?:model)?|<\|turn>model|<bos>|<s>|<<function>>"
    rf"|<{_BAR}start_text{_BAR}>|(?:<\|message_model\|>)?<\|content_text\|>|<\|open\|>response<\|sep\|>"
    rf"|(?:>>>)?(?-i:all)\n(?:<{_BAR}content{_BAR}>|(?=\S))|(?:<{_BAR}from{_BAR}>assistant\s*)?<{_BAR}recipient{_BAR}>\s*all\s*<{_BAR}content{_BAR}>)+",
    re.IGNORECASE,
)

# gpt-oss. A message is a header, <|message|>, a body, and a token that ends it.
_HEADER = r"(?P<header>[^<>\n{}\"]{0,120}?)(?:<\|constrain\|>[^<>\n{}\"]{0,40}?)?<\|message\|>"
_BEFORE = r"\s*(?:assistant)?(?P<before>[^<>\n{}\"]{0,80}?)"
HARMONY = re.compile(
    rf"(?:<\|start\|>{_BEFORE}|(?=<\|channel\|>))"
    rf"(?:<\|channel\|>(?P<first>[^<>\n]{{0,80}}?\bto=[^<>\s]+)\s*(?=<\|channel\|>))?(?:<\|channel\|>)?{_HEADER}",
    re.IGNORECASE,
)
HARMONY_FIRST = re.compile(
    r"\s*(?:assistant)?(?P<before>\s*(?:to=[^\s<>]+)?\s*)(?:<\|channel\|>)?(?P<header>\s*(?:analysis|commentary|final)?\s*"
    r"(?:to=[^\s<>]+)?\s*(?:json|code)?\s*)(?:<\|constrain\|>[^<>\n{}\"]{0,40}?)?<\|message\|>",
    re.IGNORECASE,
)
HARMONY_TO = re.compile(r"\bto=(?!assistant\b)(\S+)")
# The same where a server has dropped the tokens: reasoning first, and the header of a call glued to the words before.
HARMONY_BARE = re.compile(r"(?:assistant)?analysis.*?assistant(?:final|(?=commentary))", re.DOTALL)
HARMONY_CALL = re.compile(
    r"(?:assistant)?(?:commentary|analysis)?\s*to=(?P<name>functions\.[\w.-]+)\s*(?:json|code)?\s*\Z"
)
HARMONY_END = re.compile(r"<\|(?:end|call|return|eom|eot|start|channel)\|>")

# Closing tags and tokens of markup that stand alone: noise.
STRAY = re.compile(
    rf"{_M3}</{_NS}(?:tool_?calls?|function_?calls?|function|invoke|parameter|tools?|tool_use|longcat_tool_call)>|(?:<{_BAR}from{_BAR}>assistant\s*)?<{_BAR}recipient{_BAR}>\s*all\s*<{_BAR}content{_BAR}>"
    rf"|<{_BAR}from{_BAR}>assistant"
    rf"|<{_BAR}/?(?:tool[_▁][a-z_▁]+|tools_suffix|end_action|end_response|action_end|plugin|python_end|constrain){_BAR}>"
    r"|<end_function_call>|<tool_call\|>|\[/TOOL_CALLS?\]|\[END_TOOL_REQUEST\]|<channel\|>|<\|close\|>(?:response|message)<\|sep\|>"
    r"|</dots_function_call>|<\|plamo:end_tool_\w+:plamo\|>|<\|tool_call:end\|>",
    re.IGNORECASE,
)

LABELS = re.compile(
    r"(?:^|(?<=</think>)|(?<=</thinking>)|(?<=\|>))[ \t]*(?:#{1,6}[ \t]*)?[*_]{0,3}(?:"
    r"(?P<input>✿ARGS✿|action[ _](?:inputs?|arguments|args|parameters)|tool[ _]input|(?:行动|动作|操作)(?:输入|参数))"
    r"|(?P<action>✿FUNCTION✿|action(?:[ _]name)?|tool[ _]name|行动|动作|操作)"
    r"|(?P<thought>thoughts?|思考|想法)"
    r"|(?P<result>✿RESULT✿|observations?|观察|观测|观察结果)"
    r"|(?P<final>✿RETURN✿|final[ _]answer|最终答案|最终回答|最终回复)"
    r"|(?P<answer>answer|答案|回答)"
    r"|(?P<question>question|问题)"
    r")(?:[ \t]*\#?\d{1,3})?[*_]{0,3}(?:[ \t]*[:：]|(?<=✿))[*_]{0,3}[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
SAME_LINE_RESULT = re.compile(r"[ \t]*[*_]{0,3}(?:observations?|观察|观测|观察结果)[*_]{0,3}[ \t]*[:：]", re.IGNORECASE)
SAME_LINE_INPUT = re.compile(
    r"[ \t,;，；]+[*_]{0,3}(?:action[ _]inputs?|(?:行动|动作|操作)输入)[*_]{0,3}[ \t]*[:：][*_]{0,3}[ \t]*",
    re.IGNORECASE,
)

WRAPPER_OPEN = re.compile("|".join(f"(?P<w{at}>{wrapper.open})" for at, wrapper in enumerate(WRAPPERS)), re.IGNORECASE)
WRAPPER_CLOSE = tuple(re.compile(wrapper.close or r"(?!)", re.IGNORECASE) for wrapper in WRAPPERS)
# Inside a wrapper: any closing tag ends what stands before it.
ANY_CLOSE = re.compile(
    "|".join([*(wrapper.close for wrapper in WRAPPERS if wrapper.close), STRAY.pattern]), re.IGNORECASE
)
