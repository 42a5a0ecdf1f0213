"""The part of an output that can answer: without reasoning, struck-out text and later examples.

Judges that search for an answer within an output use these functions. The stored output is unchanged.
"""

from collections import deque
from collections.abc import Callable
from typing import TypeVar

import regex

Found = TypeVar("Found")

_THOUGHT = r"(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad)"
_THOUGHTS_END = regex.compile(rf"</{_THOUGHT}>", regex.IGNORECASE)
_THOUGHTS_BEGIN = regex.compile(rf"\s*+<{_THOUGHT}>", regex.IGNORECASE)
_STRUCK_OUT = regex.compile(r"~~[^~\n]{1,400}+~~|<(del|s|strike)>[^<]{1,400}+</\1>", regex.IGNORECASE)
_NEXT_EXAMPLE = regex.compile(
    r"\n[ \t#*>]*+(?:(?:(?:next|new|another)[ \t]+)?(?:question|problem|exercise|example)|q|input|user|"
    r"human|frage|aufgabe|pregunta|problema|quest[ãa]o|domanda|exercice|вопрос|задача|问题|題目|题目|問題|"
    r"問|문제|질문)"
    r"[ \t]*+(?:(?:\d{1,4}[ \t]*+)?[*]{0,2}+[:：][*]{0,2}+(?=[ \t]*+\S|\n)|"
    r"\d{1,4}[.)]?[*]{0,2}+[ \t]*+(?=\n))",
    regex.IGNORECASE,
)


def without_thoughts(output: str) -> str:
    """The output after its last closing reasoning tag; empty if it begins reasoning without end."""
    if last := deque(_THOUGHTS_END.finditer(output), maxlen=1):
        return output[last[0].end() :]
    return "" if _THOUGHTS_BEGIN.match(output) else output


def without_struck_out(text: str) -> str:
    """The text without parts struck out in Markdown or HTML."""
    kept: str = _STRUCK_OUT.sub(" ", text)
    return kept


def read_own(text: str, read: Callable[[str], Found]) -> Found:
    """Read the text before a further question that the model poses itself, or else the whole text."""
    found = _NEXT_EXAMPLE.search(text)
    own = "" if found is None else text[: found.start()]
    return (read(own) if own.strip() else None) or read(text)


BOX = regex.compile(r"\\f?box(?:ed)?\s?\{(?P<text>(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*+\})*+)\}")
"""A LaTeX box, whose content may have nested braces."""


_OFFER = regex.compile(
    r"(?:\n|[.!?*]\s)[ \t*_>]*+(?:is there anything else|would you like|do you want|let me know|feel free|"
    r"can i help|shall i|if you(?:['’]d| would)? (?:like|want|need|have) (?:me to|more|another|further|any|"
    r"help|to see)|i['’](?:d be|m) happy to|i can(?: also)? (?:show|explain|give|provide|walk)\b"
    r"(?=[^.!?\n]{0,80}\b(?:more|another|other|further|different|if you|steps)\b)|"
    r"(?:i )?hope (?:this|that) helps)\b",
    regex.IGNORECASE,
)
_ANSWERS = regex.compile(r"####|\\f?box|\banswer:|\banswer is\b", regex.IGNORECASE)
_LONGEST_OFFER = 400


def without_offer(text: str) -> str:
    """The text without an offer of help at its end, such as "Would you like to see other methods?"."""
    found = _OFFER.search(text, max(0, len(text) - _LONGEST_OFFER))
    if found is None or _ANSWERS.search(text, found.end()) or not text[: found.start()].strip():
        return text
    return text[: found.start() + 1]


_TAG = regex.compile(r"<(?P<end>/?)(?P<name>\w{1,20}+)[^<>\n]{0,80}+>")


def tags_as_lines(text: str) -> str:
    """The text with the content of tags such as <answer> on separate lines, and without other tags."""
    plain: str = _TAG.sub(_as_line, text)
    return plain


def _as_line(found: "regex.Match[str]") -> str:
    name = found.group("name").lower()
    if name == "sup":  # an exponent, which `typography` handles
        return str(found.group())
    if "answer" not in name and name not in ("choice", "option", "result", "output"):
        return found.group() if len(name) == 1 else " "
    return "\n" if found.group("end") else "\nanswer: "


_TAKEN_BACK = regex.compile(
    r"\b(?:wait|actually|correction|corrected|oops|scratch that|on second thought|on reflection|"
    r"i was wrong|i made an? "
    r"(?:mistake|error)|that(?:['’]s| is| was) (?:wrong|not right|incorrect)|let me (?:re|correct|fix|"
    r"double)\w*|i meant|hmm+|sorry, |moment mal|halt,|stopp|falsch|attendez|je me suis trompé|espera|"
    r"me equivoqué|espere|подождите|стоп|ошибка)\b|等等|不对|不對|更正|いや|間違え|잠깐|다시",
    regex.IGNORECASE,
)
_REFUSAL = regex.compile(
    r"(?:\b(?:not|no)|n['’]t) (?:have |provide |contain |give )?enough (?:information|data|details|"
    r"context)|\b(?:"
    r"insufficient (?:information|data)|(?:not able|unable) to (?:solve|answer|determine|compute|calculate|"
    r"help|provide|say|give|tell|find|do|see)|(?:can(?:no|['’])t|cannot|could(?:n['’]t|"
    r" not)) (?:be )?(?:solved?|answer(?:ed)?|determined?|computed?|calculated?|help|assist|provide|say|"
    r"give|tell|found|find|known?|see|do (?:this|that|it))|(?:do not|don['’]t|does not|doesn['’]t) know|"
    r"no idea|not sure how|impossible to (?:say|tell|determine|know|answer)|(?:is|are) missing|"
    r"without (?:knowing|seeing|the|more)|need (?:more|to know|the)|not (?:given|specified|stated|known)|"
    r"(?:kann|lässt sich|können) .{0,40}nicht|weiß (?:ich )?nicht|ne (?:peux|peut|sais) pas|impossible de|"
    r"no (?:puedo|se puede|sé|hay suficiente)|não (?:posso|sei|é possível|há)|non (?:posso|so|è possibile)|"
    r"не (?:могу|знаю|хватает)|невозможно|недостаточно)\b|无法|無法|不知道|信息不足|不够|わかりません|"
    r"分かりません|できません|알 수 없|모르겠|لا أعرف|لا يمكن|पता नहीं|ไม่ทราบ|không thể|không biết",
    regex.IGNORECASE,
)


def after_taking_back(text: str) -> str | None:
    """The text after the last retraction; None if the text retracts nothing."""
    last = deque(_TAKEN_BACK.finditer(text), maxlen=1)
    return text[last[0].end() :] if last else None


def refuses(text: str) -> bool:
    """Whether a text says that it cannot answer."""
    return _REFUSAL.search(text) is not None
