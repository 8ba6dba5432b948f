"""What a finishing text says about itself: that more is to be done, that somebody is asked, that it breaks off. Pure.

Holds words and sentences, no rules about runs. Every question is answered no where the words leave any doubt: to send
a good answer back costs a step, and its sender the answer.
"""

import re
from collections.abc import Sequence

_LAST = 600  # characters from the end that are looked at: what comes next is said last
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\n+")
_OPEN_END = re.compile(r"(?:[,;:(\[{，；：、（]|(?<!-)[-–—])$|\b(?:the|an|and|or|because|than|whose)$")
_MAYBE = re.compile(
    r"\b(?:if|when|whenever|once|unless|until|after|before|as soon as|would|could|might|not|never|no longer|"
    r"already|later|every|again|tomorrow)\b|n't\b|n’t\b|[若不无已没]|如果|当.*时|之后|明天"
)
_LEAD = r"(?:(?:ok|okay|sure|now|next|first|then|great|alright|so|and|yes)\b[,.!:]?\s+)*"
_WILL = r"(?:i|we)(?:['’]ll|\s+will|\s+shall|['’]m\s+going\s+to|\s+am\s+going\s+to|\s+are\s+going\s+to)"
_NEED = r"(?:i|we)\s+(?:must|should|need\s+to|have\s+to|want\s+to)"
_LET = r"let\s+(?:me|us)|let['’]s"
_SOON = r"(?:\s+(?:now|first|next|then|also|just|quickly|please|go\s+ahead\s+and))*\s+"
_DEEDS = (
    r"(?:call|use|run|invoke|execute|read|check|query|fetch|get|retrieve|measure|look|turn|set|switch|open|close|start|"
    r"stop|restart|activate|proceed|try|ring)"
)
_PROMISE = re.compile(rf"{_LEAD}(?:{_WILL}|{_LET}){_SOON}{_DEEDS}\b")
_PROMISE_ZH = re.compile(
    r"(?:好的?|现在|接下来|首先|下面|然后)?[，,]?\s*(?:我将|我会|我要|我来|我去|让我|我现在|我这就|我先)"
    r"(?:先|再|现在|马上|立即|去|来|为您|为你|帮您|帮你|使用)*"
    r"(?:读取|查看|检查|调用|打开|关闭|设置|查询|启动|停止|获取|重启|测量)"
)
_CALLS = r"(?:call|use|run|invoke|execute)(?:\s+(?:the|a|tool|function|device))*\s+[`'\"“]?"
_OF_IT = r"\b(?![`'\"”]?(?:['’]s\b|\s+(?:result|value|output|reading|data|answer)))"
_CALLS_ZH = r"(?:调用|使用|运行|执行)(?:工具|函数)?\s*[`'\"“]?"
_INTENT_ZH = r"(?:我将|我会|我要|我需要|需要|接下来|下一步|现在|让我|应该)"
_BEGS = re.compile(
    r"please\s+(?:provide|specify|tell|confirm|clarify|give|choose|say)\b|i\s+need\s+(?:you|more|to\s+know)\b|"
    r"请(?:提供|告诉|确认|说明|指定|选择)"
)


def announced(thought: str, tools: Sequence[str]) -> str | None:
    """Name the tool whose call the last sentence of a thought announces; None if it announces none."""
    said = _sentences(thought.lower())
    if not said or _MAYBE.search(said[-1]):
        return None
    for tool in tools:
        name = re.escape(tool).replace("_", "[_ ]")
        english = rf"(?:{_WILL}|{_NEED}|{_LET}|next\s+step\s+is\s+to){_SOON}{_CALLS}{name}{_OF_IT}"
        if re.search(rf"{english}|{_INTENT_ZH}[^。，,]{{0,12}}{_CALLS_ZH}{name}(?![a-z0-9_])", said[-1]):
            return tool
    return None


def promises(answer: str) -> bool:
    """Whether an answer ends by saying what will be done next, as if somebody were still at it."""
    said = _sentences(answer.lower())
    if not said or _MAYBE.search(said[-1]):
        return False
    return bool(_PROMISE.match(said[-1]) or _PROMISE_ZH.match(said[-1]))


def only_asks(answer: str) -> bool:
    """Whether an answer states nothing: each of its sentences asks the reader something or begs for input."""
    said = _sentences(answer.lower())
    asks = [sentence.endswith(("?", "？")) or bool(_BEGS.match(sentence)) for sentence in said]
    return len(answer) <= _LAST and bool(asks) and all(asks)


def breaks_off(answer: str) -> bool:
    """Whether an answer stops where no sentence, list, number or quotation ends."""
    text = answer.rstrip()
    return bool(_OPEN_END.search(text[-40:])) or text.count("```") % 2 == 1


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in _SENTENCE.split(text[-_LAST:]) if part.strip()]
