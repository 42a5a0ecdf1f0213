r"""Find which of several options an output chooses.

Every mention of an option is examined with its surroundings in the sentence. The last mention that chooses
counts; see `ChoiceReader.read`. All single letters are treated alike: whether a capital is an option depends
on its surroundings, and never on the letter. A label need not be separated from characters of another script:
"答案是B。" names B.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex

from winnow.tasks.judges.rules.reading import choice_words as words
from winnow.tasks.judges.rules.reading.final_text import (
    BOX,
    after_taking_back,
    read_own,
    tags_as_lines,
    without_struck_out,
    without_thoughts,
)
from winnow.tasks.judges.rules.reading.typography import FULL_WIDTH

MOST_MENTIONS = 300
"""Maximum number of mentions of an option that are examined, from the end of the output."""

REACH = 160
"""Maximum characters of a sentence that are examined before a label, and after it."""

_OPEN, _CLOSE = "\ue000", "\ue001"
"""Marks put around a label that brackets or emphasis set off."""

_WIDE = str.maketrans({**FULL_WIDTH, "\u3000": " "})
_HEADING = regex.compile(
    r"^([ \t#*_>]*+(?:the |my |final |correct |best )*(?:answer|choice|option|antwort|réponse|respuesta|"
    r"resposta|risposta|ответ|答案|答え|정답)[ \t*_]*+[:：]?+[ \t*_]*+)(?:\r?\n[ \t>]*+)++(?=\S)",
    regex.IGNORECASE | regex.MULTILINE,
)
_COLON_AT_END = regex.compile(r"[:：][ \t*_]*+(?:\r?\n[ \t>]*+)++(?=[*_(\[\"'\\$]*+\S)")
_COMMAND = regex.compile(
    r"\\(?:text|mathbf|mathrm|mathit|mathsf|mathbb|bm|bf|rm|operatorname|mbox|textbf|textit|textrm|emph|"
    r"underline)"
    r"\s?\{([^{}\n]{0,200}+)\}"
)
_MATHS = regex.compile(r"\\[()]|\\\[|\\\]|\$")
_EMPHASIS = regex.compile(r"[*`\\]++|(?<!\w)_++|_++(?!\w)")
_SENTENCE_END = regex.compile(r"[.!?](?=[\s\"')\]]|$)|[。！？\n;；।]")
_CLAUSE_END = regex.compile(r"[,，—–]|\bbut\b|\bso\b|\bbecause\b|\bsince\b|:(?=.*?\w)")
_HAS_LOWER_CASE = regex.compile(r"\p{Ll}")
_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_SCRIPTS = ("Latin", "Cyrillic", "Greek", "Arabic", "Hebrew", "Devanagari", "Hangul", "Bengali", "Tamil")
_TICKED = regex.compile(r"(?:✅|✓|✔|☑|👉|➡️?|\[x\])\s*+[^\w\n]*+\Z", regex.IGNORECASE)
_TICK = regex.compile(r"[^\w\n]*?(?:✅|✓|✔|☑)")
_TICKED_ROW = regex.compile(r"[^\n✅✓✔☑❌✗✘✖]*+[✅✓✔☑]\W*+\Z")
_CROSSED_ROW = regex.compile(r"[^\n✅✓✔☑❌✗✘✖]*+[❌✗✘✖]\W*+\Z")
_CROSSED = regex.compile(r"(?:❌|✗|✘|✖)\s*+[^\w\n]*+\Z")
_CROSS = regex.compile(r"[^\w\n]*?(?:❌|✗|✘|✖)")
_TWINS = {"А": "A", "В": "B", "С": "C", "Е": "E", "Н": "H", "Α": "A", "Β": "B", "Ε": "E", "Η": "H", "Ι": "I"}
"""Cyrillic and Greek capitals that look like Latin ones, which models use for options in such texts."""
_TWIN = regex.compile(
    rf"(?<![\p{{L}}\p{{Nd}}])[{''.join(_TWINS)}](?=[).\]\"'»:]|\s*+(?:$|\n)|[*_`]|,\s)", regex.MULTILINE
)


@dataclass(frozen=True, slots=True)
class _Mention:
    """A mention of an option in the output."""

    label: str
    start: int
    end: int
    is_apart: bool
    """Whether brackets or emphasis surround the label."""
    is_loud: bool
    """Whether the mention is more than a bare lower-case letter, which could be anything."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Options that are named together, such as "A, B and D"."""

    mentions: Sequence[_Mention]
    before: str
    """Text before the first mention in its sentence."""
    after: str
    """Text after the last mention, up to the end of its line."""

    @property
    def labels(self) -> frozenset[str]:
        return frozenset(each.label for each in self.mentions)


class ChoiceReader:
    """Find the option that an output chooses.

    Args:
        options: Labels of the options: letters, or words such as yes and no.
    """

    def __init__(self, options: Sequence[str]) -> None:
        options = [_bare(option) for option in options]
        self._labels = {folded(option): option for option in options}
        self._twins = {twin: letter for twin, letter in _TWINS.items() if twin not in options}
        parts = sorted(options, key=len, reverse=True)
        self._mention = regex.compile("|".join(_bounded(option) for option in parts))
        any_case = "|".join(regex.escape(option) for option in parts)
        self._apart = regex.compile(
            rf"(?<![\p{{Latin}}\p{{Nd}}])(?:[*_`\"“‘「『《〈【\[(<«„]|''?(?!\w*['’]\w)){{1,8}}+"
            rf"(?P<label>(?i:{any_case}))(?:[*_`\"”’」』》〉】\])>»“']){{1,8}}+"
        )
        self._boxed = regex.compile(rf"[\s({_OPEN}]*+(?P<label>(?i:{any_case}))(?=[\s).:,{_CLOSE}]|\Z)")
        listed = rf"(?:^|(?<=[.;!] ))[ \t>*_#|-]*+(?:\d{{1,2}}[.)]\s++)?+(?:option\s++)?+[{_OPEN}(]?+"
        listed += rf"(?P<label>(?i:{any_case}))"
        self._listed = regex.compile(
            rf"{listed}(?:{_CLOSE}|[ \t]*+[).:|\]–—-])", regex.MULTILINE | regex.IGNORECASE
        )

    def read(self, output: str) -> str | None:
        """The folded label of the chosen option; None if the output chooses no single option.

        In this order: the last option that is boxed or stated ("the answer is", "I'd go with", "is correct",
        a separate line or sentence); the option at the beginning of the output; the only option declared to
        hold; the only one called an option; the only one that is named and not rejected. If the output says
        that it cannot answer, the last three are searched only before that statement.
        """
        return read_own(without_struck_out(without_thoughts(output)), self._read)

    def _read(self, text: str) -> str | None:
        text = self._cleaned(text)
        groups = self._groups(text)
        if not groups:
            return None
        listed = {folded(each.group("label")) for each in self._listed.finditer(text)}
        begun = self._begun_with(text, groups[0]) if len(listed) < 2 else None
        choosing = [each for each in reversed(groups) if _chooses(each, is_list=len(listed) > 1)]
        if begun is not None:
            choosing = [each for each in choosing if not words.SUPPOSED.match(each.after)]
        if after_taking_back(text) is None:
            said = [each for each in choosing if not _is_a_word(each)]
            if not said and choosing and (begun is None or len(begun) == 1):
                return _only(frozenset().union(*(each.labels for each in choosing)))
            choosing = said
        if choosing:
            return _only(choosing[0].labels)
        if begun is not None:
            return begun
        declined = words.DECLINED.search(text)
        end = len(text) if declined is None else declined.start()
        named = [each for each in groups if each.mentions[0].start < end and not _is_turned_down(each)]
        for is_said in (_holds, _is_called_option, _is_named):
            if labels := frozenset().union(*(each.labels for each in named if is_said(each))):
                return _only(labels)
        return None

    def _begun_with(self, text: str, first: _Group) -> str | None:
        """The option at the beginning of the output, as in "B. London" or "No, because".

        None if the output does not begin with an option, or if the words after it call it wrong.
        """
        mention = first.mentions[0]
        begins = not regex.search(r"[\w{]", text[: mention.start])
        rest = text[mention.end : mention.end + 40]
        if begins and (
            mention.is_apart
            or regex.match(rf"[{_CLOSE}]?+(?:[ \t]*+\n|\s*+(?:[).:,;!–—|-]|\Z|because\b|since\b|as\b))", rest)
        ):
            return None if words.WRONG.match(first.after) else mention.label
        return None

    def _cleaned(self, text: str) -> str:
        """The text without markup; brackets and emphasis around a label become uniform marks."""
        text = (
            tags_as_lines(text).translate(_WIDE).replace(_OPEN, "").replace(_CLOSE, "").replace("\r\n", "\n")
        )
        if not text.isascii():
            text = _TWIN.sub(lambda found: self._twins.get(found.group(), found.group()), text)
        text = _COMMAND.sub(r"\1", text)
        text = BOX.sub(self._as_boxed, text)
        text = _MATHS.sub(" ", text)
        text = self._apart.sub(rf"{_OPEN}\g<label>{_CLOSE}", text)
        text = _HEADING.sub(r"\1: ", text)
        text = _COLON_AT_END.sub(": ", text)
        plain: str = _EMPHASIS.sub("", text)
        return plain

    def _as_boxed(self, found: "regex.Match[str]") -> str:
        """Rewrite a box as a statement of its content, if the content is an option."""
        inside = found.group("text")
        label = self._boxed.match(self._apart.sub(rf"{_OPEN}\g<label>{_CLOSE}", inside))
        if label is None or folded(label.group("label")) not in self._labels:
            return f" {inside} "
        return f"\nanswer: {_OPEN}{label.group('label')}{_CLOSE}\n"

    def _mentions(self, text: str) -> list[_Mention]:
        found = []
        for match in self._mention.finditer(text):
            label = folded(match.group())
            if label not in self._labels:  # ignoring case, the pattern matches a dotless ı for an I
                continue
            is_apart = (
                text[match.start() - 1 : match.start()] == _OPEN
                and text[match.end() : match.end() + 1] == _CLOSE
            )
            option = self._labels[label]
            is_small = (
                len(option) == 1
                and match.group() != option
                and _HAS_LOWER_CASE.match(match.group()) is not None
            )
            found.append(_Mention(label, match.start(), match.end(), is_apart, is_apart or not is_small))
        return found[-MOST_MENTIONS:]

    def _groups(self, text: str) -> list[_Group]:
        mentions = [each for each in self._mentions(text) if self._is_option(text, each)]
        together: list[list[_Mention]] = [[each] for each in mentions[:1]]
        for one, other in pairwise(mentions):
            if _are_joined(text, together[-1], one, other):
                together[-1].append(other)
            else:
                together.append([other])
        return [_Group(each, _before(text, each[0].start), _after(text, each[-1].end)) for each in together]

    def _is_option(self, text: str, mention: _Mention) -> bool:
        """Whether a single letter is an option here, and not a word or a name."""
        if len(self._labels[mention.label]) > 1 or mention.is_apart:
            return True
        before, rest = _before(text, mention.start), text[mention.end : mention.end + 40]
        if not mention.is_loud:
            is_closed = regex.match(r"\s*+(?:[).,;!\"'}\]:]|\Z|\n|because\b|since\b)", rest)
            is_alone = not before.strip(" \t>#-(") or words.THEREFORE.search(before)
            if (not before.strip() or _OPTION_BEFORE.search(before)) and words.RIGHT.match(rest):
                return True
            is_cut = regex.match(r"\.\s*+\p{Ll}", rest) and text[: mention.start].strip()
            return bool(is_closed and (is_alone or _is_led_to(before)) and not is_cut)
        if words.CONTINUES.match(rest):
            return not _is_name(before) or words.RIGHT.match(rest) is not None
        if before.rstrip().endswith(":") or _PRONOUN.match(rest):
            return False
        return _is_led_to(before)


_PRONOUN = regex.compile(
    r"\s++(?:think|believe|am|would|will|can|cannot|can['’]t|could|don['’]t|do|did|have|had|need|know|see|"
    r"say|said|choose|chose|pick|guess|may|might|must|should|was|find|found|got|get|want|assume|conclude|"
    r"computed?|considere?d?|prefer|went|made|used?|just|also|really|still|\w++ed)\b"
)
_NAME = regex.compile(
    r"\b(?:vitamins?|hepatitis|type|plan|group|class|grade|point|points|line|figure|fig\.|table|section|"
    r"part|appendix|chapter|exhibit|team|player|person|company|city|country|town|factory|car|train|box|bag|"
    r"set|matrix|angle|side|segment|triangle|vertex|event|events|vector|node|gate|cell|cells|influenza|"
    r"protein|factor|category|war|in|between points|°|\d)\s*+\Z",
    regex.IGNORECASE,
)


def _is_led_to(before: str) -> bool:
    return bool(words.STATED.search(before) or words.CHOOSING.search(before))


def _is_name(before: str) -> bool:
    """Whether the letter belongs to a name, as in "vitamin C", "in C" or "25 °C"."""
    return _NAME.search(before) is not None


def folded(label: str) -> str:
    """A label in lower case, without surrounding punctuation."""
    return _bare(label).casefold()


def _bare(label: str) -> str:
    return label.strip(" \t\n()[]{}.:*")


def _bounded(option: str) -> str:
    """Pattern for an option that is not part of a longer word of its script."""
    escaped = regex.escape(option)
    if len(option) > 1:
        escaped = f"(?i:{escaped})"
        return rf"{_not_after(option[0])}{escaped}{_not_before(option[-1])}"
    both = (
        escaped
        if option.upper() == option.lower()
        else f"[{regex.escape(option.upper())}{regex.escape(option.lower())}]"
    )
    if len(option.upper()) > 1 or len(option.lower()) > 1:
        both = f"(?i:{escaped})"
    tied = r"(?<![\p{Latin}\p{Nd}][-'’.])(?<![°&\\#@])(?<!\d[.,:])"
    follows = (
        r"(?!['’](?!(?:s\s|[dt][ıiuü]r))\p{Latin})(?!-[\p{Latin}\p{Nd}])(?!\s?[=^+]|\s?\*\s?\w)"
        r"(?!\.[\p{Latin}\p{Nd}])(?!,\d)(?!\p{M})(?!\()"
    )
    return rf"{_not_after(option)}{tied}{both}{_not_before(option)}{follows}"


def _not_after(character: str) -> str:
    found = _script(character)
    return f"(?<![{found}\\p{{Nd}}_])" if found else ""


def _not_before(character: str) -> str:
    found = _script(character)
    if found == r"\p{Hangul}":
        return ""  # particles are written without a blank
    return f"(?![{found}\\p{{Nd}}_])" if found else ""


def _script(character: str) -> str:
    """Character class of letters that form words with this one; empty if its script has no blanks."""
    if _UNSPACED.match(character):
        return ""
    for name in _SCRIPTS:
        if regex.match(rf"\p{{{name}}}", character):
            return rf"\p{{{name}}}"
    return r"\p{Latin}" if regex.match(r"\w", character) else ""


def _before(text: str, start: int) -> str:
    """The sentence up to a position, without the opening mark of a label."""
    piece = text[max(0, start - REACH) : start].rstrip(_OPEN)
    last = 0
    for found in _SENTENCE_END.finditer(piece):
        last = found.end()
    return piece[last:].replace(_OPEN, "(").replace(_CLOSE, ")")


def _after(text: str, end: int) -> str:
    piece = text[end : end + REACH].lstrip(_CLOSE)
    return piece.partition("\n")[0].replace(_OPEN, "(").replace(_CLOSE, ")")


def _clause(before: str) -> str:
    """The last clause of a sentence."""
    last = 0
    for found in _CLAUSE_END.finditer(before):
        if before[found.end() :].strip(" (\"'"):
            last = found.end()
    return before[last:]


def _are_joined(text: str, group: Sequence[_Mention], one: _Mention, other: _Mention) -> bool:
    if other.start - one.end > 24 or any(each.label == other.label for each in group):
        return False
    between = text[one.end : other.start].strip(_OPEN + _CLOSE)
    joined = words.CONJUNCTION.match(between)
    if joined is None:
        return False
    if joined.group("conjunction"):
        return "\n" not in between
    if not joined.group("comma"):
        return bool(len(group) > 1 or between == "") and "\n" not in between
    rest = text[other.end : other.end + 30].lstrip(_CLOSE)
    return bool(regex.match(r"\s*+(?:[,.;)\n]|\Z|and\b|or\b|&|und\b|et\b|y\b|и\b)", rest))


def _chooses(group: _Group, *, is_list: bool) -> bool:
    """Whether the output chooses the group here."""
    before, after = group.before, group.after
    if _is_turned_down(group) or regex.match(r"\s*+\?", after):
        return False
    if _TICKED.search(before) or _TICK.match(after) or (_is_item(group) and _TICKED_ROW.match(after)):
        return True
    if words.WRONG.match(after) or regex.match(r"\s++that\b", after):  # "all but A are wrong"
        return words.WRONG.match(after) is not None
    clause = _clause(before)
    if not words.DOUBTFUL.search(clause):
        if _is_stated(group) and not words.NEGATED.search(_clause(before)):
            return not (is_list and _is_item(group))
        is_led_to = words.CHOOSING.search(before) or (
            group.mentions[0].is_apart and words.STATED_BY_TEXT.search(before)
        )
        if is_led_to and not words.NEGATED.search(clause):
            return True
        if words.INSTEAD.search(before) and words.NEGATED.search(before):
            return True
        is_conceded = words.CONCEDED.search(clause) is not None
        if words.RIGHT.match(after) and not words.UNDERCUT.match(after) and not is_conceded:
            return True
    if _is_item(group):
        verdict = words.VERDICT_OF_ITEM.match(after)
        if verdict is not None and verdict.group("right") and not words.UNDERCUT.match(after):
            return True
    return _is_alone(group)


def _is_a_word(group: _Group) -> bool:
    """Whether an option may be an ordinary word, as "true" in "False. That it is true is a myth."."""
    return len(group.mentions[0].label) > 1 and not (
        any(each.is_apart for each in group.mentions)
        or _is_alone(group)
        or _is_item(group)
        or _is_stated(group)
        or words.CONCLUDING.match(group.before)
    )


def _is_stated(group: _Group) -> bool:
    """Whether the words before an option mark it as the answer, or the question's statement as true."""
    is_claimed = len(group.mentions[0].label) > 1 and words.CLAIMED.search(group.before)
    return bool(is_claimed or words.STATED.search(group.before))


def _is_item(group: _Group) -> bool:
    """Whether the group is a label at the beginning of a list item or a table row."""
    if len(group.mentions) > 1:
        return False
    begins = regex.fullmatch(
        r"[\s>#|(-]*+(?:\d{1,2}[.)]\s*+)?(?:option|choice|statement)?\s*+\(?", group.before, regex.IGNORECASE
    )
    return bool(begins and (group.mentions[0].is_apart or regex.match(r"\s*+[).:|\]–—-]", group.after)))


def _is_alone(group: _Group) -> bool:
    """Whether the group is the whole sentence, except for words such as "so"."""
    if not words.THEREFORE.search(group.before) or not (
        group.before.strip() == ""
        or words.THEREFORE.fullmatch(group.before)
        or regex.search(r"[,:]", group.before)
    ):
        return False
    whole = words.THEREFORE.fullmatch(group.before.strip()) or not group.before.strip(" \t>#-(|")
    rest = group.after
    ended = regex.match(r"[\s)\]\"'”’}>|]*+(?:[.!,;][\s)\"'|}]*+)?+\Z", rest)
    if whole:
        if ended:
            return True
        sentence = regex.match(r"[)\]\"'”’]?+[.!](?=\s)(?!\s*+\p{Lu}\.)|,(?=\s)", rest)
        return bool(sentence and group.before.strip())
    clause = regex.match(r"[)\]\"'”’]?+(?:[.!;,]|\s*+\Z)", rest)
    return bool(clause)


def _is_turned_down(group: _Group) -> bool:
    """Whether the output rejects the group as the answer."""
    if _CROSSED.search(group.before) or _CROSS.match(group.after):
        return True
    if _is_item(group) and _CROSSED_ROW.match(group.after):
        return True
    is_called_wrong = words.CALLED_WRONG.match(group.after) is not None
    if is_called_wrong and _is_led_to(group.before):  # the option's own text can look like this
        is_called_wrong = words.MAKING.search(group.before) is not None
    if is_called_wrong or words.WRONG.match(group.after):
        return words.EXCEPTED.search(group.before) is None
    return words.NEGATED_LABEL.search(group.before) is not None


def _holds(group: _Group) -> bool:
    verdict = words.VERDICT_OF_ITEM.match(group.after) if _is_item(group) else None
    is_said = words.HOLDS.match(group.after) or (verdict is not None and verdict.group("holds"))
    return bool(is_said) and not words.UNDERCUT.match(group.after)


_OPTION_BEFORE = regex.compile(
    r"(?:\b(?:options?|choices?|statements?|answers?|letter)\s*+\(?|\()\Z|(?:选项|選項|選択肢|보기)\s*+\Z",
    regex.IGNORECASE,
)


def _is_called_option(group: _Group) -> bool:
    is_called = (
        any(each.is_apart for each in group.mentions) or _OPTION_BEFORE.search(group.before) is not None
    )
    return is_called and len(group.labels) == 1


def _is_named(group: _Group) -> bool:
    return True


def _only(labels: frozenset[str]) -> str | None:
    return next(iter(labels)) if len(labels) == 1 else None
