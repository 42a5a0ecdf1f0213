r"""Find the mathematical expression that an output gives as its answer, in LaTeX or plain.

Equality is not decided here: each expression is returned as LaTeX for a library to compare.
"""

from collections import deque
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import islice
from math import prod

import regex

from winnow.tasks.judges.rules.reading.choice_words import ANSWER, COPULA
from winnow.tasks.judges.rules.reading.final_text import (
    after_taking_back,
    read_own,
    refuses,
    tags_as_lines,
    without_offer,
    without_struck_out,
    without_thoughts,
)
from winnow.tasks.judges.rules.reading.numbers import COMPARED, NumberReader, without_condition
from winnow.tasks.judges.rules.reading.typography import as_typed

REACH = 600
"""Maximum characters of a sentence that are examined, from its end."""

_BOX = regex.compile(
    r"\\f?box(?:ed)?\s?(?:\{(?P<text>(?:[^{}]++|\{(?:[^{}]++|\{(?:[^{}]++|\{(?:[^{}]++|"
    r"\{[^{}]*+\})*+\})*+\})*+\})*+)\}"
    r"|(?P<text>[A-Za-z0-9])|\{(?P<text>[^$\n]{1,300}+))"
)
_FORMULA = regex.compile(
    r"\$\$(?P<text>[^$]{1,400}+)\$\$|\$(?P<text>[^$\n]{1,400}+)\$|\\\((?P<text>.{1,400}?)\\\)|"
    r"\\\[(?P<text>.{1,400}?)\\\]",
    regex.DOTALL,
)
_MONEY = regex.compile(
    r"\$(?=\d[\d.,]*+\s?[-+=×*/]\s?\$\d)|"
    r"\$(?=\d[\d.,]*+(?:\s(?!\\)\p{L}{2}|[.,;:!?)]*+(?:\s|\Z)|\*\*))(?![^$\n]{1,40}[=+^\\][^$\n]{0,40}\$)"
)
_STATED = regex.compile(
    rf"{ANSWER}[^.!?\n;$\\\d]{{0,60}}?(?:{COPULA}|[:：=])[*_\s:：]*+(?=\S)|"
    rf"{ANSWER}[*_ \t#:：]*+\n++[ \t*_]*+(?=\S)",
    regex.IGNORECASE,
)
_NOT = regex.compile(r"\b(?:not|rather than|instead of)\s*+[$(\\\[]*+\Z", regex.IGNORECASE)
_NOT_AFTER = regex.compile(
    r"[$)\\\]\s*]*+\b(?:is|was|are|would be)(?:\s++not\b|n['’]t\b|\s++(?:wrong|incorrect|false)\b)",
    regex.IGNORECASE,
)
_NEGATION = regex.compile(r"\b(?:not|nicht|pas|no es|não|non è|не)\b|n['’]t\b|不是", regex.IGNORECASE)
_END = regex.compile(r"\n|[!?](?=\s|\Z)|(?<!\d)\.(?=\s|\Z)|(?<=\d)\.(?=\s|\Z)|[。！？]")
_CUT = regex.compile(
    r",?\s(?:because|since|weil|denn|parce que|porque|perché|потому что|as (?:the|we|it|there|there's))\b|"
    r",?\s\((?=[^()]*\p{L}{3})|，因为|[,，;]\s?(?:(?:and )?not|nicht|et non|pas|y no|rather|but|while|"
    r"whereas|而不是|不是|а не)\b",
    regex.IGNORECASE,
)
_COPULA_WORD = regex.compile(
    r"\b(?:is|are|was|equals?|becomes?|gives?|get|yields?|simplifies to|comes? to|be|has|have|with|to|ist|"
    r"sind|beträgt|est|sont|es|son|é|são|è|sono|равно|равен|равна|jest|adalah|là|of|by|or)\b|(?<!\d)[:：]|[:：](?!\d)|是|为|"
    r"為|は|が|เท่ากับ|คือ|है|هو|هي|은|는",
    regex.IGNORECASE,
)
_FUNCTION = r"(?:arc)?(?:sin|cos|tan|cot|sec|csc)h?|sqrt|log|ln|exp|pi|infinity|inf|max|min"
_RUN = regex.compile(
    r"(?:(?:\\[A-Za-z]++|\\[{}|%]|"
    rf"(?<![\p{{L}}\\'’])(?:{_FUNCTION}|[a-zA-Z](?![a-zA-Z]))(?!\p{{L}}{{2}})|(?<=\d)[a-zA-Z](?![a-zA-Z])|"
    r"(?<=\d):(?=\d)|[\d+*/^=<>≤≥≠±×·÷√π∞°%!(),.{}\[\]|_'∪∩∈αβγθλφω-])[ ]?)++"
)
_WORDS_ALONE = regex.compile(r"[\s.,!'()|\[\]-]*(?:[aAI][\s.,!'()|\[\]-]*)?\Z")
_HAS_VALUE = regex.compile(r"[\p{L}\d∞π√]")
_RAISED = regex.compile(r"[\^_]")
_PLAIN_NUMBER = regex.compile(r"[-+]?[\d.,' ]*\d[.,]?\Z")
_SYMBOLS = {
    **{
        "π": r"\pi ",
        "∞": r"\infty ",
        "×": r"\times ",
        "·": r"\cdot ",
        "÷": r"\div ",
        "≤": r"\le ",
        "≥": r"\ge ",
        "≠": r"\ne ",
    },
    **{
        "±": r"\pm ",
        "∪": r"\cup ",
        "∩": r"\cap ",
        "∈": r"\in ",
        "°": r"^\circ ",
        "α": r"\alpha ",
        "β": r"\beta ",
        "γ": r"\gamma ",
    },
    **{
        "θ": r"\theta ",
        "λ": r"\lambda ",
        "φ": r"\phi ",
        "ω": r"\omega ",
        "∅": r"\emptyset ",
        "ℝ": r"\mathbb{R}",
        "∖": r"\setminus ",
    },
}
_NAMES = {"pi": r"\pi ", "infinity": r"\infty "}
_WORD = regex.compile(r"(?<![A-Za-z\\{])(?:pi|infinity)(?![A-Za-z}])")
_SYMBOL = regex.compile("|".join(_SYMBOLS))
_ROOT = regex.compile(
    r"√\s?(?:\((?P<text>[^()]{1,100})\)|\{(?P<text>[^{}]{1,100})\}|(?P<text>\d+(?:\.\d+)?|[A-Za-z]))"
)
_THOUSANDS = regex.compile(r"(?<![\d.,])[1-9]\d{0,2}+(?:,\d{3}(?!\d))++(?![,\d])")
_EXPONENT = regex.compile(r"(?<![\w.])(\d++(?:\.\d++)?)[eE]([-+]\d{1,3})(?![\w.])")
_MIXED = regex.compile(r"(?<![\w.,/^] ?)(\d{1,6}) (\d{1,4})/(\d{1,4})(?![\w/^]|\.\d)")
_SUMMED = regex.compile(
    r"(?P<result>\d{1,3}(?:,\d{3}){0,5}+|\d{1,15}(?:\.\d{1,9})?)\s\("
    r"(?P<sum>\d{1,9}(?:\.\d{1,9})?(?:\s?[-+×*·]\s?\d{1,9}(?:\.\d{1,9})?){1,20})\)"
)
_PLUS = regex.compile(r"\s?(?:\+|(?P<minus>-))\s?")
_TIMES = regex.compile(r"\s?[×*·]\s?")
_CURRENCY = regex.compile(r"(?<!\w)[€£¥₹]\s?(?=\d)")
_PERCENT = regex.compile(r"(?<!\\)%")
_PERCENT_AFTER = regex.compile(r"\s?(?:%|percent\b|Prozent\b|por ciento|pour cent|процент)")
_UNIT = regex.compile(
    r"(?<=[\d})])[\s~]*(?:\\[,;: ])*\s*(?:\\(?:text|mathrm|mbox|textrm|rm)\s?\{[^{}]*\}|(?:square |cubic )?"
    r"(?:[cmkd]?m|km|inch(?:es)?|in|ft|feet|yd|mi|miles?|units?|[mk]?g|[mc]?l|s|sec(?:onds)?|min(?:utes)?|"
    r"h(?:ours?)?|days?|degrees?|dollars?|cents?|euros?|€|£))(?:\^\{?\d\}?)?\s*\Z"
)
_LETTER = regex.compile(
    r"\s*\\(?:textbf|text|mathrm|mathbf|textrm)\s?\{\s?\(?[A-J]\)?[.:]?\s?\}[\s~\\,:]*(?=\S)|\s*\([A-J]\)\s+(?=\S)"
)
_AND = regex.compile(
    r"\s*(?:,\s*)?(?:\\text\s?\{\s*)?\b(?:and|or|und|oder|et|ou|y|o|и|или)\b(?:\s*\})?\s*|\s*[和与或、]\s*",
    regex.IGNORECASE,
)
_MARKS = regex.compile(r"[*_`$\"]|\\(?:text|textbf|mathrm)\s?(?=\{)|[{}]")
_REASONED = regex.compile(
    r"(?:[,;]\s(?:not|and not|rather|which|so|meaning|that is)\b|,?\s(?:because|since)\b|\s\().*",
    regex.IGNORECASE | regex.DOTALL,
)
_READER = NumberReader(fractions=True)


def answer(output: str, *, several: bool) -> list[str]:
    """Expression that an output gives as its answer, as LaTeX, in each possible reading.

    In this order: the last box, an expression declared as the answer, the last sentence with an expression.
    Empty if the output gives no answer.

    Args:
        output: The model's output.
        several: Whether several values are wanted, possibly in several boxes or formulas.
    """
    return read_own(_own_words(output), lambda text: _answer(text, several))


def _own_words(output: str) -> str:
    return without_offer(tags_as_lines(without_struck_out(without_thoughts(output))))


def _answer(text: str, several: bool) -> list[str]:
    typed = _MONEY.sub("", as_typed(text))
    found = deque(_BOX.finditer(typed), maxlen=20)
    kept = [
        each
        for each in found
        if not _NOT.search(typed[max(0, each.start() - 20) : each.start()])
        and not _NOT_AFTER.match(typed, each.end())
    ]
    boxes = [each.group("text") for each in kept or found]
    if boxes:
        ways = _ways(boxes[-1])
        if several and len(boxes) > 1:
            ways += [_latex(",".join(boxes[-n:])) for n in range(2, min(len(boxes), 6) + 1)]
        return ways
    if (rest := after_taking_back(typed)) is not None and (ways := _settled(rest, several)):
        return ways
    return _settled(typed, several)


def _settled(typed: str, several: bool) -> list[str]:
    plain = typed.replace("**", "").replace("__", "").replace("`", "")
    for match in reversed(deque(_STATED.finditer(plain), maxlen=20)):
        if not _NEGATION.search(match.group()):
            clause = _sentence_at(plain, match.end())
            if found := _clause_result(clause, several=several, is_last=False):
                return found
    if refuses(plain):
        return []
    pieces = deque((each for each in _sentences(plain)), maxlen=40)
    for sentence in reversed(pieces):
        if found := _clause_result(sentence[-REACH:], several=several, is_last=True):
            return found
    return []


def _sentence_at(plain: str, start: int) -> str:
    """The sentence that continues at a position, including a displayed formula."""
    shown = plain[start : start + REACH]
    formula = _FORMULA.match(shown)
    first = _END.search(shown, formula.end() if formula else 0)
    return shown[: first.start()] if first else shown


def _sentences(plain: str) -> list[str]:
    """Split a text into sentences; characters inside a formula end no sentence."""
    found, start = [], 0
    spans = [each.span() for each in _FORMULA.finditer(plain)]
    inside = iter(spans)
    span = next(inside, None)
    for end in _END.finditer(plain):
        while span is not None and span[1] <= end.start():
            span = next(inside, None)
        if span is not None and span[0] < end.start() < span[1]:
            continue
        found.append(plain[start : end.start()])
        start = end.end()
    return [*found, plain[start:]]


def _clause_result(clause: str, *, several: bool, is_last: bool) -> list[str]:
    """Result of a clause: its first expression, or with `is_last` its last one."""
    whole = clause
    if is_last:
        clause = without_condition(clause)
    cut = _CUT.search(clause)
    if cut and regex.search(r"\d|\$|\\", clause[: cut.start()]):
        clause = clause[: cut.start()]
    formulas = [each for each in _FORMULA.finditer(clause) if each.group("text").strip()]
    kept = [
        each for each in formulas if not COMPARED.search(clause[max(0, each.start() - 40) : each.start()])
    ] or formulas
    if kept:
        chosen = kept[-1] if is_last else kept[0]
        found = _ways(chosen.group("text") + _percent_after(clause, chosen.end()))
        if several and len(kept) > 1:
            found.append(_latex(",".join(each.group("text") for each in kept)))
        return found
    found = _plain_expression(clause, several=several, is_last=is_last)
    if found:
        return found
    number = _READER.answer(whole)
    if number is None or number.value is None:
        return []
    end = whole.rfind(number.written) + len(number.written)
    return [_as_decimal(number.value) + _percent_after(whole, end)]


def _as_decimal(value: Fraction) -> str:
    """A number in decimal digits if it has finitely many, else as a fraction."""
    with localcontext() as context:
        context.prec = 60
        decimal = Decimal(value.numerator) / Decimal(value.denominator)
    return f"{decimal:f}" if Fraction(decimal) == value else f"{value.numerator}/{value.denominator}"


def _percent_after(clause: str, end: int) -> str:
    return r"\%" if _PERCENT_AFTER.match(clause, end) else ""


def _plain_expression(clause: str, *, several: bool, is_last: bool) -> list[str]:
    """An expression without dollar signs, such as "x^2 + 2x + 1"; empty for a plain number."""
    tail = clause
    links = [each.end() for each in _COPULA_WORD.finditer(clause) if _HAS_VALUE.search(clause, each.end())]
    if is_last and links and not several:
        tail = clause[links[-1] :]
    if several:
        tail = _AND.sub(", ", clause)
    runs = []
    for match in islice(_RUN.finditer(tail), 40):
        run = _without_brackets(match.group().strip(" .,;:!").removesuffix("\\"))
        is_formula = _HAS_VALUE.search(run) and not _RAISED.match(run) and not _WORDS_ALONE.match(run)
        if is_formula or (run and run == clause.strip(" .$")):
            runs.append(run)
    if not runs:
        return []
    run = _without_sum(runs[-1] if is_last else runs[0])
    if _PLAIN_NUMBER.fullmatch(run) and not (several and "," in run):
        return []
    return _ways(run)


def _without_sum(run: str) -> str:
    """A result without the sum in brackets after it, as 10 in "10 (5 + 5)"."""
    found = _SUMMED.fullmatch(run)
    if found is None:
        return run
    total = sum(
        prod(Fraction(factor) for factor in _TIMES.split(term))
        for term in _PLUS.sub(r"+\g<minus>", found.group("sum")).split("+")
    )
    result: str = found.group("result")
    return result if total == Fraction(result.replace(",", "")) else run


def _without_brackets(run: str) -> str:
    """An expression without an unmatched bracket, which belongs to the sentence around it."""
    surplus = run.count("(") - run.count(")")
    if surplus == 1 and run.startswith("(") and "," not in run:
        return run[1:].strip()
    return run[:-1].strip() if surplus == -1 and run.endswith(")") and "," not in run else run


def _ways(expression: str) -> list[str]:
    """Readings of an expression: unchanged, without an option's letter in front, and without a unit."""
    found = [_latex(expression)]
    for pattern in (_LETTER, _UNIT):
        shorter = pattern.sub("", expression, count=1)
        if shorter != expression and regex.search(r"\d", shorter):
            found.append(_latex(shorter))
    return found


def _latex(expression: str) -> str:
    """An expression as LaTeX, without dollar signs."""
    text = expression.replace("$", " ").replace("**", "^").replace(r"\varnothing", r"\emptyset")
    text = text.strip().rstrip(".,;")
    text = _MIXED.sub(r"\1\\frac{\2}{\3}", text)
    text = _EXPONENT.sub(r"\1\\times 10^{\2}", _CURRENCY.sub("", text))
    text = _ROOT.sub(r"\\sqrt{\g<text>}", text)
    text = _SYMBOL.sub(lambda found: _SYMBOLS[found.group()], text)
    text = _THOUSANDS.sub(lambda found: found.group().replace(",", ""), text)
    latex: str = _PERCENT.sub(r"\\%", _WORD.sub(lambda found: _NAMES[found.group()], text))
    return latex.strip()


_TARGET_WORD = regex.compile(
    r"\s*+\$?\s*+\\(?:text|textbf|mathrm|mbox|textrm)\s?\{\s*+"
    r"(?P<word>\p{L}{2,40}(?:[ -]\p{L}{2,40}){0,3})\s*+\}\s*+\$?\s*+"
)


def word_of(text: str) -> str | None:
    r"""Word of a target, such as "even" for \text{even}; None if the target is an expression."""
    found = _TARGET_WORD.fullmatch(text)
    return found.group("word") if found else None


def concludes(output: str, word: str) -> bool:
    """Whether the last sentence of an output without a box is the word, or says that something is."""
    text = as_typed(_own_words(output))
    if _BOX.search(text):
        return False
    plain = _MARKS.sub("", text)
    sentence = next((each for each in reversed(_sentences(plain)) if each.strip()), "")[-REACH:]
    said = _REASONED.sub("", sentence.strip())
    found = regex.fullmatch(
        rf"(?P<before>.*?(?:\b(?:is|are|was|be)\b|:)\s*+(?:(?:an?|the|therefore|thus|also|always)\s++)*+)?"
        rf"{regex.escape(word)}",
        said,
        regex.IGNORECASE | regex.DOTALL,
    )
    return found is not None and not _NEGATION.search(found.group("before") or "")


def target(text: str) -> str:
    """A target expression as LaTeX."""
    return _latex(_MONEY.sub("", as_typed(text)))
