"""Text from outside without what a model could take for more than text: control tokens, roles, forms of our protocols.

Chat templates put a message's text between tokens such as `<|im_start|>`, and servers read the same tokens inside the
text as well: a log line could end its own message and begin one of the system. Here such marks, and characters that
nobody sees, are taken out of what a model reads; the journal keeps the bytes as they came. Pure; what has none of them
stays the very same object.
"""

import re

INSTEAD = "(markup)"

# What no reader sees: controls (not tab and line ends), zero widths and joiners, directions, tags, variation selectors.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
_BAR = r"[|｜]"
_WORDS = (
    r"s|bos|eos|pad|unk|mask|turn|channel|system|user|assistant|human|developer|ipython|instructions?|inst|sys|"
    r"(?:start|end)_of_(?:turn|image|role|text)|end_code|eot|(?:start|end)_function_(?:call|declaration|response)|"
    r"(?:[a-z_]{1,16}[:|])?(?:dots_|longcat_)?(?:tools?|tool_?(?:calls?|use|responses?|results?|outputs?|sep)|"
    r"function_?(?:calls?|results?|responses?)?|functions|invoke|param(?:eter)?s?|arguments|args|arg_(?:key|value|type)|"
    r"observations?|think(?:ing)?|thoughts?|reasoning|scratch_?pad)"
    r"(?::[a-z_]{1,16})?|unused\d{1,3}|end_of_utterance|reserved_special_token_\d{1,3}|"
    r"begin[ _]of[ _](?:text|sentence)|turn\|"
)
_MARKS = re.compile(
    # Any token with bars, also one that nobody knows yet; then those of Kimi and Qwen-Agent.
    rf"<{_BAR}[^<>|｜\n]{{0,80}}{_BAR}>|<{_BAR}|{_BAR}>|◁|▷|✿"
    rf"|<<?/?\s{{0,3}}(?:{_WORDS})(?:[\s=][^<>]{{0,80}})?>>?"
    r"|<(?:function|parameter)="
    r"|\[\|"
    r"|\[\s{0,3}/?\s{0,3}(?:INST|SYS|(?:BEGIN |END )?FINAL RESPONSE|(?:AVAILABLE_)?TOOLS?(?:_[A-Z]{1,10})?|END_TOOL_REQUEST|"
    r"CALL_ID|ARGS|THINK|EOS|BOS|SYSTEM_PROMPT|MODEL_SETTINGS|IMG|PREFIX|SUFFIX|MIDDLE)\s{0,3}\]"
    r"|\]<\]minimax\[>\["
    r"|(?<![`~])(?:`{3,}|~{3,})[ \t]{0,3}(?:tool_[a-z]{1,16}|function_[a-z]{1,16})\b"
    r"|(?<![>])>>>(?=[\w.-]+\s*\n)|functools(?=\s*\[)",
    re.IGNORECASE,
)
# At the start of a line: the labels of protocol react, and whoever may be said to speak.
_LABEL = re.compile(
    r"^(?P<before>[ \t>]*(?:#{1,6}[ \t]*)?[*_`]{0,3}(?:"
    r"observations?|thoughts?|action(?:[ _](?:inputs?|name|arguments|args|parameters))?|tool[ _](?:name|input|result|call)|"
    r"final[ _]answer|answer|question|system(?:[ _](?:prompt|message))?|user|human|assistant|developer|model|ai|tool|"
    r"function|instructions?|response|观察|观测|观察结果|思考|想法|行动|动作|操作|(?:行动|动作|操作)(?:输入|参数)|最终答案|最终回答|"
    r"最终回复|答案|回答|问题|系统|用户|助手"
    r")(?:[ \t]*\#?\d{1,3})?[*_`]{0,3}[ \t]*)[:：]",
    re.IGNORECASE | re.MULTILINE,
)


def without_markup(value: object) -> object:
    """A JSON value whose texts and keys are text alone; the same object where there is nothing to take out."""
    match value:
        case str():
            return plain(value)
        case list():
            items = [without_markup(item) for item in value]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        case dict():
            inner = {plain(key): without_markup(item) for key, item in value.items()}
            return value if all(inner.get(key) is item for key, item in value.items()) else inner
        case _:
            return value


def plain(text: str) -> str:
    """One text as text alone. Labels keep their word and lose what makes them one."""
    clean = _LABEL.sub(r"\g<before> -", _marks_out(_UNSEEN.sub("", text)))
    return text if clean == text else clean


def _marks_out(text: str) -> str:
    # What is taken out may leave a mark of what stood around it. Each turn makes at least one sign less, so it ends.
    while (clean := _MARKS.sub(INSTEAD, text)) != text:
        text = clean
    return text
