r"""Read the number that an output gives as its answer.

A number has an optional sign and currency sign, digits, an optional decimal part and an exponent: "1.5e-3",
"1.5×10^3", "2 \times 10^{4}", "10^6". Thousands are separated by a comma, an apostrophe, an underscore, a
blank or, twice or before a decimal comma, by a dot. A comma that separates no thousands is a decimal comma.
Two numbers joined by a slash are one number, and so is "2 1/2". Digits after a letter (H2O, x1), and raised
or lowered digits (cm^2, x_1), are not numbers.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import regex

from winnow.tasks.judges.rules.reading.choice_words import ANSWER, COPULA
from winnow.tasks.judges.rules.reading.final_text import (
    BOX,
    after_taking_back,
    read_own,
    refuses,
    tags_as_lines,
    without_offer,
    without_struck_out,
    without_thoughts,
)
from winnow.tasks.judges.rules.reading.typography import as_typed

MAX_DIGITS = 1_000  # with more digits, exact arithmetic could take seconds
MAX_EXPONENT = 1_000

REACH = 1_100
"""Maximum characters of a sentence that are examined, from its end; more than `MAX_DIGITS`."""

# Every repetition is possessive: no digit is read twice, so the time is linear for any text.
_WHOLE = (
    r"[1-9]\d{0,2}+(?:\.\d{3}(?!\d)){2,}+(?:,\d++)?+(?![.,]?\d)|"
    r"[1-9]\d{0,2}+(?:\.\d{3}(?!\d))++,\d{1,2}+(?!\d)|[1-9]\d{0,2}+(?:,\d{3}(?!\d))++(?:\.\d++)?+(?!,\d)|"
    r"[1-9]\d{0,2}+(?:['’_]\d{3}(?!\d))++(?:\.\d++)?+|[1-9]\d?(?:,\d{2}(?!\d))++,\d{3}(?!\d)(?:\.\d++)?+|"
    r"(?<!\d )[1-9]\d{0,2}+(?: \d{3}(?![\d/]))++(?:[.,]\d++)?+(?!\d| \d)|(?:(?<![(\[{,]|, )(?:0,\d++|"
    r"\d++,(?!\d{3}(?!\d))\d++)(?!,?\d)|(?<=[(\[{])\d++,(?!\d{3}(?!\d))\d++(?![,\d)\]}]))|\d++(?:\.\d++)?+|"
    r"(?<!\p{L})\.\d++"
)
_POWER = r"\s?\^\s?\{?\s?(?P<NAMEpower>[-+]?\d{1,9}+)\s?\}?|\*\*(?P<NAMEpower>[-+]?\d{1,9}+)"
_TEN = (
    r"\s?(?:×|x|X|\*|·|⋅|∙|\\times|\\cdot)\s?10(?:\s?\^\s?\{?\s?|\*\*)(?P<NAMEten>[-+]?\d{1,9}+)\s?\}?|"
    r"[eE](?P<NAMEten>[-+]?\d++)(?![\p{L}\d])"
)


def _unsigned(name: str) -> str:
    return f"(?P<{name}digits>{_WHOLE})(?:{_TEN}|{_POWER})?+".replace("NAME", name)


_CURRENCY = "$€£¥₹₩₽₫฿₺₪₦₴"
# After a word, a digit or a bracket, a minus is a subtraction or a hyphen; before a blank, a bullet.
_SIGN = (
    rf"(?P<sign>(?:(?<![\w)\]}}])[-+](?=[{_CURRENCY}\d.])|(?<=[=:(]|[=:(] |\b(?:is|equals|ist|est|es|"
    rf"é) )[-+] (?=[{_CURRENCY}\d.]))?+)"
)
_START = r"(?<![\p{Latin}\p{Greek}\p{Cyrillic}\d])(?<![\^_])(?<![\^_]\{)(?<!\^[-+])(?<!\^\{[-+])(?<!\d\.)"
_CODE = r"(?<=\b(?:USD|EUR|GBP|INR|CHF|JPY|CNY|RMB|CAD|AUD|Rs|Rs\.|US|R|A|C))"
_NUMBER = regex.compile(
    rf"{_SIGN}(?P<money>(?:[{_CURRENCY}][-+]?+)?+)(?:{_START}|{_CODE}(?<!\b[A-Z]))"
    rf"(?:(?P<whole>\d{{1,6}}+)(?: | and )(?=\d{{1,4}}+/\d{{1,4}}+(?![\d/])))?+"
    rf"{_unsigned('top_')}(?:\s?/\s?(?P<bottom>{_unsigned('bottom_')}))?+"
)
_PLAIN_NUMBER = regex.compile(rf"{_SIGN}(?P<money>(?:[{_CURRENCY}][-+]?+)?+){_START}{_unsigned('top_')}")
_NEGATIVE = regex.compile(
    r"(?<!\d )\b(?:negative|minus|moins|menos|meno)\s+(?=[$€£¥]?\d)|(?<!\d\s?)(?:负|負|マイナス|"
    r"минус\s)\s?(?=\d)",
    regex.IGNORECASE,
)
_FRACTION = regex.compile(
    r"(?:(?<![\d.,^_])(?P<whole>\d{1,9})\s?)?\\[dtc]?frac\s?"
    r"(?:\{\s?(?P<top>[-+]?\d{1,200})\s?\}\s?\{\s?(?P<bottom>\d{1,200})\s?\}|(?P<top>\d)\s?(?P<bottom>\d))"
)
_LATEX = regex.compile(
    r"\\(?:text|mathrm|mathbf|mathit|mathsf|operatorname|mbox|textbf|textit|rm|bf)\s?\{([^{}\n]{0,200}+)\}"
)
_LATEX_SPACE = regex.compile(r"\\[,;:! ]|\\(?:q?quad|left|right|displaystyle)(?![A-Za-z])|\\[()\[\]]|~(?!~)")
_MARKUP = regex.compile(r"`+|\*\*|__|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])|(?<=\d)\*(?=\s)")
_SCALES = {
    2: r"hundred|百",
    3: r"thousand|tausend|mille|mil(?!\p{L})|тысяч\p{L}*|тыс\.?|k(?![\p{L}\d])|千|천|nghìn|ngàn|พัน|हज़ार|हजार",
    4: r"万|萬|만",
    5: r"lakhs?|लाख",
    6: r"million\p{L}*|mio\.?|millones|millón|milh(?:ão|ões)|milion[ei]|миллион\p{L}*|млн\.?|百万|triệu|ล้าน",
    7: r"crores?|करोड़|千万",
    8: r"亿|億|억",
    9: r"billions?|bn(?!\p{L})|milliard\p{L}*|mrd\.?|миллиард\p{L}*|млрд\.?|tỷ|milyar",
    12: r"trillions?|billion(?:en)(?!\p{L})|兆|조|триллион\p{L}*",
}
_SCALE = regex.compile(
    r"\s?(?:" + "|".join(f"(?P<e{zeros}>{names})" for zeros, names in reversed(_SCALES.items())) + r")",
    regex.IGNORECASE,
)

_HAS_DIGIT = regex.compile(r"\d")
_HASHES = regex.compile(r"^(?>[^\n]*?####)[ \t]*+(?P<text>[^\n\d]*+\d[^\n]*+)", regex.MULTILINE)
_LINK = rf"(?:{COPULA}|[:：=]|\b(?:about|approximately|roughly|exactly|around)\b)"
_STATED = regex.compile(
    rf"{ANSWER}(?:(?P<between>[^.!?\n;]{{0,60}}?){_LINK}(?P<text>(?=[^\n]{{0,100}}?\d))|"
    rf"(?P<between>)(?P<text>(?=[^\w\n]{{0,6}}\d)))",
    regex.IGNORECASE,
)
_RESULT = (
    r"(?:\b(?:results?|total|sum|value|difference|product|ergebnis|summe|insgesamt|résultat|total|"
    r"resultado|suma|soma|risultato|somma|resultaat|totaal|wynik|suma|результат|итого|всего|сумма|sonuç|"
    r"toplam|hasil|total|kết quả|tổng)\b|结果|結果|合計|总共|總共|共计|一共|결과|합계|총|ผลลัพธ์|รวม|"
    r"النتيجة|المجموع|परिणाम|कुल)"
)
_RESULTING = regex.compile(
    rf"(?:{_RESULT}(?P<between>[^.!?\n;]{{0,40}}?)(?:{_LINK})|"
    rf"\btotal(?P<between>) of\b)(?P<text>(?=[^\n]{{0,60}}?\d))",
    regex.IGNORECASE,
)
_NEGATION = regex.compile(r"\b(?:not|n['’]t|nicht|pas|no|não|non|не|never)\b|不是|不", regex.IGNORECASE)
_CLAUSE_END = regex.compile(
    r"[!?;\n]|\.(?=\s|\Z)|[。！？；]|,?\s(?:because|since|as|which|where|so|weil|denn|da|parce que|car|"
    r"porque|perché|потому что)\b|\s\(|，因为|，因為|[,，](?=\s?(?:not|nicht|pas|no|and not|rather|but|"
    r"aber)\b)",
    regex.IGNORECASE,
)
_DENIED = regex.compile(r"is\s++not\b\D{0,20}[\d.,/]*\d\D{0,20},\s(?:but|rath).*", regex.IGNORECASE)
_ASIDE = regex.compile(r"\s\((?:[^()\n]{0,300}+)\)(?=[.\s]*+\Z)")
REASON = regex.compile(
    r"^([^\n]*?\d[^\n]*?),?\s(?:because|since|weil|denn|parce que|porque|perché|потому что|因为)\b.*$"
)
_FURTHER = regex.compile(r"^.*\b(?:so|is|are|which|thus|hence|therefore)\b(?=.*\d)")
_CONDITION = regex.compile(
    r"(?:\A\s*+|[;:]\s(?:and\s|but\s)?|\s(?:and|but|so)\s)(?:since|because|as)\b[^;\n]{1,100}?,\s"
    r"(?=[^\n]{0,100}?\d)",
    regex.IGNORECASE,
)
_BOLD = regex.compile(r"(?:\*\*|__)(?P<text>[^*_\n]{1,80}?\d[^*_\n]{0,80}?|\d)(?:\*\*|__)")
_HEAD = regex.compile(
    r"(?:step|schritt|étape|paso|passo|шаг|example|part|case|question|problem|\d{1,2}[.)])\b|.*[:：]\s*+\Z|"
    r"步骤",
    regex.IGNORECASE,
)
_SUM = regex.compile(r"\s*+[$€£]?\d[\d.,]*+(?:\s*+(?:[-+*×·÷]|\\times|\\cdot)\s*+[$€£]?\d[\d.,]*+)++[\s.]*+")
_RESULT_BEFORE = regex.compile(r"(?<![-+*/×·÷=]\s*)(?:\A|(?<=[\s:]))-?[$€£]?\d[\d.,]*+\s*+\Z")
_SENTENCE_END = regex.compile(r"(?<=[!?])\s|(?<=\.)\s(?!\s*\d{1,2}[.)]\s)|[。！？\n]")
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
COMPARED = regex.compile(
    r"\b(?:down from|up from|or (?:about|approximately|roughly)|instead of|rather than|not|\w{2,7}n['’]t|"
    r"out of|compared (?:to|with)|than|versus|vs\.?|"
    r"unlike|formerly|previously|originally|anstatt|statt|nicht|"
    r"au lieu de|et non|en lugar de|y no|вместо|а не|while|whereas|each of|of the|the other|step|figure|"
    r"fig\.|table|chapter|page|section|equation|question|problem|item|no\.|number|line|day|room|level|"
    r"grade|version|apollo|route|highway|flight|bus|covid|"
    rf"{_MONTHS})"
    r"(?:\s(?:the|a|its|his|her|their))?\s*+[$€£¥(]?\Z|\d\s(?:\p{L}++\s)?(?:out )?of(?: the)?\s*+\Z|"
    r"\d\s?(?:±|\+/-)\s*+\Z|(?:而不是|不是|而非)\s*+\Z",
    regex.IGNORECASE,
)
_YEAR_BEFORE = regex.compile(
    r"\b(?:in|since|by|until|till|from|of|year|before|after|during|seit|im jahr|en|desde|em|nel|в)\s*+\Z|"
    rf"\b(?:{_MONTHS})(?:\s\d{{1,2}},?)?\s*+\Z",
    regex.IGNORECASE,
)
_MONTH_AFTER = regex.compile(
    rf"(?:st|nd|rd|th)?\s(?:{_MONTHS}|"
    r"januar|februar|märz|mai|juni|juli|oktober|dezember|janvier|février|mars|avril|juin|juillet|"
    r"août)\b|(?:st|nd|rd|th)\b|月|年",
    regex.IGNORECASE,
)
_LISTED = regex.compile(r"(?:^|\n)[ \t]*+\Z")
_LISTED_AFTER = regex.compile(r"[.)]\s")
_JOINED = regex.compile(
    r"\s?(?:\p{L}{0,12}\s)?(?:or|oder|ou|o|или|或|または|또는)\s?[$€£¥]?\Z", regex.IGNORECASE
)
_RANGE = regex.compile(r"\s?(?:[-–—~〜～]|to|bis|à|a|до|至|到|から)\s?[$€£¥]?\Z", regex.IGNORECASE)
_BETWEEN = regex.compile(r"\b(?:between|zwischen|entre|tra|fra|между)\s*+[$€£¥]?\Z|介于", regex.IGNORECASE)
_AND = regex.compile(r"\s?(?:and|und|et|y|e|и|和)\s?[$€£¥]?\Z", regex.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text, and its value."""

    written: str
    value: Fraction | None
    """Exact value; None if the number is too long for exact arithmetic, or divides by zero."""
    scale: int = 0
    """Power of ten of a following word, such as 6 for million; 0 without such a word."""

    def equals(self, other: "Number", allowed: Fraction) -> bool:
        """Whether two numbers differ by at most `allowed`.

        If only one of them has a word such as million, the word may be a unit: both of its readings are
        tried.
        """
        if self.value is None or other.value is None:
            return False
        if self.scale and other.scale:
            return abs(self._scaled - other._scaled) <= allowed
        return any(abs(mine - theirs) <= allowed for mine in self._readings for theirs in other._readings)

    @property
    def _scaled(self) -> Fraction:
        assert self.value is not None
        return self.value * Fraction(f"1e{self.scale}")

    @property
    def _readings(self) -> tuple[Fraction, ...]:
        assert self.value is not None
        return (self.value, self._scaled) if self.scale else (self.value,)


@dataclass(frozen=True, slots=True)
class _Place:
    """A number and its position in a text."""

    number: Number
    start: int
    end: int


class NumberReader:
    """Read numbers in texts.

    Args:
        fractions: Whether 3/4 is one number; otherwise it is a 3 followed by a 4.
    """

    def __init__(self, *, fractions: bool) -> None:
        self._pattern = _NUMBER if fractions else _PLAIN_NUMBER

    def first(self, output: str) -> Number | None:
        """The first number of an output; None if it has no number."""
        found = list(islice(self._places(_cleaned(output)), 1))
        return found[0].number if found else None

    def last(self, text: str) -> Number | None:
        """The last number of a text, without further rules; None if it has no number."""
        found = deque(self._places(_cleaned(text)), maxlen=1)
        return found[0].number if found else None

    def answer(self, output: str) -> Number | None:
        """The number that an output gives as its answer; None if it gives no number.

        In this order: the last box; the number after ####; the last number that is declared as the answer, or
        as the result; bold type in the last paragraph; a number as the first line; the last sentence with a
        number, without an aside in brackets at its end. A range or a choice between two numbers is not an
        answer.
        """
        return read_own(without_offer(without_struck_out(without_thoughts(output))), self._answer)

    def _answer(self, text: str) -> Number | None:
        typed = as_typed(text)
        if (rest := after_taking_back(typed)) is not None and (found := self._settled(rest)) is not None:
            return found
        return self._settled(typed)

    def _settled(self, typed: str) -> Number | None:
        for pattern in (BOX, _HASHES):
            for match in reversed(deque(pattern.finditer(typed), maxlen=50)):
                if (found := self._clause_number(_plain(match.group("text")))) is not None:
                    return found
        plain = _plain(typed)
        for pattern in (_STATED, _RESULTING):
            for match in reversed(deque(pattern.finditer(plain), maxlen=50)):
                if not _NEGATION.search(match.group("between")):
                    clause = _clause("is " + plain[match.start("text") : match.start("text") + 300].lstrip())
                    if any(True for _ in self._places(clause)):
                        return self._clause_number(clause)
        if refuses(plain):
            return None
        return self._concluded(typed, plain)

    def _concluded(self, typed: str, plain: str) -> Number | None:
        paragraph = typed.rstrip().rpartition("\n\n")[2]
        bold = [
            each.group("text") for each in _BOLD.finditer(paragraph) if not _HEAD.match(each.group("text"))
        ]
        if bold and (found := self._clause_number(_plain(bold[-1]))) is not None:
            return found
        if (begun := self._begun_with(plain)) is not None:
            return begun
        for shown in (_ASIDE.sub("", plain), plain):
            for sentence in reversed(_sentences(shown)):
                concluded = without_condition(sentence)
                without_aside = _ASIDE.sub("", REASON.sub(r"\1", concluded))
                for part in (without_aside, sentence):
                    if places := list(self._places(part)):
                        return self._concluding(part, places)
        return None

    def _begun_with(self, plain: str) -> Number | None:
        """A number that is the whole first line, or before a reason in it, as in "4, because".

        Units and a final mark can follow the number. None if the first line has another form.
        """
        first = plain.lstrip().partition("\n")[0].strip()
        place = next(self._places(first[:200]), None)
        if place is None or place.start > 0:
            return None
        rest = first[place.end :]
        if regex.match(r"(?:\s?[\p{L}%€£¥$°]{1,12}){0,2}[.!]?\Z", rest) or regex.match(
            r",?\s(?:because|since|as)\b", rest
        ):
            return place.number
        return None

    def _clause_number(self, clause: str) -> Number | None:
        """Number of a clause: the result of its last equation, or else its first number.

        None if the clause has no number, or if the number is ambiguous as in `_number_at`.
        """
        if (tail := _last_equation(clause)) is not None and (places := list(self._places(tail))):
            return self._number_at(tail, places, 0)
        places = list(self._places(clause))
        return self._number_at(clause, places, _main_indices(clause, places)[0]) if places else None

    def _concluding(self, sentence: str, places: list[_Place]) -> Number | None:
        """Result of the last sentence with a number: its last number that is not a comparison.

        None if the number is ambiguous as in `_number_at`.
        """
        tail = _FURTHER.sub("", _last_equation(sentence) or "")
        if after := list(self._places(tail)):
            return self._number_at(tail, after, _main_indices(tail, after)[0])
        return self._number_at(sentence, places, _main_indices(sentence, places)[-1])

    def _number_at(self, text: str, places: list[_Place], index: int) -> Number | None:
        """The number at an index; None if it is an end of a range or one of two alternatives."""
        for one, other in ((index - 1, index), (index, index + 1)):
            if one >= 0 and other < len(places) and _is_open(text, places[one], places[other]):
                return None
        return places[index].number

    def _places(self, plain: str) -> Iterator[_Place]:
        for match in self._pattern.finditer(plain):
            end, scale = match.end(), 0
            if scaled := _SCALE.match(plain, match.end()):
                following = plain[scaled.end() : scaled.end() + 1]
                if not (following.isascii() and following.isalnum()):
                    end, scale = scaled.end(), int(str(scaled.lastgroup)[1:])
            yield _Place(Number(match.group().strip(), _value(match), scale), match.start(), end)


def _cleaned(text: str) -> str:
    return _plain(as_typed(without_struck_out(without_thoughts(text))))


def _plain(typed: str) -> str:
    """The text without LaTeX and Markdown around numbers."""
    text = _LATEX_SPACE.sub(" ", _LATEX.sub(r"\1", tags_as_lines(typed)))
    text = _MARKUP.sub("", _FRACTION.sub(_as_slash, text))
    plain: str = _NEGATIVE.sub("-", text)
    return plain


def _as_slash(found: "regex.Match[str]") -> str:
    top, bottom, whole = int(found.group("top")), int(found.group("bottom")), int(found.group("whole") or 0)
    return f" {whole * bottom + top}/{bottom}" if whole else f"{top}/{bottom}"


def _clause(text: str) -> str:
    """The beginning of a text, up to the end of its first clause with a number."""
    for end in _CLAUSE_END.finditer(text):
        if _HAS_DIGIT.search(text[: end.start()]) and not _DENIED.fullmatch(text, 0, end.end() + 5):
            return text[: end.start()]
    return text


def without_condition(sentence: str) -> str:
    """Conclusion of a sentence after a leading condition, as in "; since it is positive, x = 7"."""
    found = deque(_CONDITION.finditer(sentence), maxlen=1)
    return sentence[found[0].end() :] if found else sentence


def _sentences(plain: str) -> list[str]:
    found = deque((each for each in _SENTENCE_END.splititer(plain) if _HAS_DIGIT.search(each)), maxlen=50)
    return [_end_of(each) for each in found]


def _end_of(sentence: str) -> str:
    """The last `REACH` characters of a sentence, without a truncated number at their start."""
    if len(sentence) <= REACH:
        return sentence
    end = sentence[-REACH:]
    kept = end.lstrip("0123456789.,_'’ ")
    return kept if _HAS_DIGIT.search(kept) else end


def _last_equation(text: str) -> str | None:
    """Result of an equation at the end of a text, on either side: "3 + 4 = 7", "7 = 3 + 4".

    None without an equation.
    """
    for sign in ("=", "≈", "≃", "→"):
        head, found, tail = text.rpartition(sign)
        if found and _HAS_DIGIT.search(tail):
            if _SUM.fullmatch(tail) and (result := _RESULT_BEFORE.search(head)):
                return f": {result.group()}"
            return f": {tail.lstrip()}"
    return None


def _main_indices(text: str, places: Sequence[_Place]) -> Sequence[int]:
    """Indices of the numbers that are not asides; all of them if all are asides."""
    kept = [index for index, each in enumerate(places) if not _is_aside(text, each)]
    return kept or range(len(places))


def _is_aside(text: str, place: _Place) -> bool:
    """Whether a number is a date, part of a name, a list number, or only a comparison."""
    before, after = text[max(0, place.start - 40) : place.start], text[place.end : place.end + 20]
    if COMPARED.search(before) or _MONTH_AFTER.match(after):
        return True
    if regex.fullmatch(r"1[5-9]\d\d|20\d\d", place.number.written) and _YEAR_BEFORE.search(before):
        return True
    return bool(_LISTED.search(before) and _LISTED_AFTER.match(after))


def _is_open(text: str, one: _Place, other: _Place) -> bool:
    """Whether two numbers are the ends of a range, or alternatives."""
    between = text[one.end : other.start]
    if (
        len(between) > 24
        or one.number.value is None
        or other.number.value is None
        or one.number.value == other.number.value
    ):
        return False
    if _JOINED.match(between):
        return True
    is_change = regex.search(
        r"\b(?:from|von|de|от|с)\s*+[$€£¥]?\Z", text[max(0, one.start - 8) : one.start], regex.IGNORECASE
    )
    if "=" not in text and not is_change and _RANGE.match(between) and one.number.value < other.number.value:
        return True
    return bool(_BETWEEN.search(text[max(0, one.start - 20) : one.start]) and _AND.match(between))


def _value(match: "regex.Match[str]") -> Fraction | None:
    parts = match.groupdict()
    top = _unsigned_value(parts, "top_")
    bottom = _unsigned_value(parts, "bottom_") if parts.get("bottom") else Fraction(1)
    if top is None or not bottom:
        return None
    value = int(parts.get("whole") or 0) + top / bottom
    return -value if "-" in parts["sign"] + (parts.get("money") or "") else value


def _unsigned_value(parts: dict[str, str | None], name: str) -> Fraction | None:
    """Exact value of an unsigned number; None if it has too many digits or too large an exponent."""
    digits = _in_english(parts[f"{name}digits"] or "")
    ten, power = parts.get(f"{name}ten") or "0", parts.get(f"{name}power") or "1"
    if (
        len(digits) > MAX_DIGITS
        or len(ten) > MAX_DIGITS
        or abs(int(ten)) > MAX_EXPONENT
        or abs(int(power)) > MAX_EXPONENT
    ):
        return None
    value = Fraction(digits if digits[0] != "." else f"0{digits}") * Fraction(10) ** int(ten)
    if (value == 0 and int(power) < 0) or len(digits) * abs(int(power)) > 10 * MAX_DIGITS:
        return None
    raised: Fraction = value ** int(power)
    return raised


_BY_DOTS = regex.compile(r"\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}(?:\.\d{3})+,\d{1,2}")
_BY_COMMAS = regex.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|[1-9]\d?(?:,\d{2})+,\d{3}(?:\.\d+)?")
_OTHER_SEPARATORS = str.maketrans(dict.fromkeys("_'’ "))


def _in_english(digits: str) -> str:
    """Digits without thousands separators, and with a decimal point."""
    plain = digits.translate(_OTHER_SEPARATORS)
    if _BY_DOTS.fullmatch(plain):
        return plain.replace(".", "").replace(",", ".")
    return plain.replace(",", "") if _BY_COMMAS.fullmatch(plain) else plain.replace(",", ".")
