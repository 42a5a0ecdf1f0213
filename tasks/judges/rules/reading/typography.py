"""Convert typographic numbers and formulas to characters that a keyboard types.

This is not Unicode's NFKC, which turns 5² into 52 and 10³ into 103.
"""

import unicodedata
from fractions import Fraction

import regex

_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ⁽⁾", "0123456789+-n()", strict=True))
_VULGAR = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
FULL_WIDTH = {chr(code + 0xFEE0): chr(code) for code in range(0x21, 0x7F)}
"""ASCII characters by their full-width forms."""
_CHARACTERS = str.maketrans(
    {
        **FULL_WIDTH,
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff†‡⁎", ""),
        **dict.fromkeys("−﹣", "-"),
        **{
            "￥": "¥",
            "￡": "£",
            "￠": "¢",
            "⁄": "/",
            "∕": "/",
            "٫": ".",
            "٬": ",",
            "․": ".",
            "﹪": "%",
            "٪": "%",
        },
    }
)
_PLAIN_SPACES = str.maketrans(dict.fromkeys(_SPACES, " "))
_DIGIT = regex.compile(r"[^\P{Nd}0-9]")
_THOUSANDS_SPACE = regex.compile(rf"(?<=\d)[{_SPACES}](?=\d{{3}}(?!\d))")
_THOUSANDS_IN_LATEX = regex.compile(r"(?<=\d)(?:\\[,;:! ]|~|\\thinspace\s?+)(?=\d{3}(?!\d))")
_COMMA_IN_LATEX = regex.compile(r"(?<=\d)\{([,.])\}(?=\d)")
_ESCAPED_DOLLAR = regex.compile(r"\\\$")
_ESCAPED_PERCENT = regex.compile(r"\\%")
_DASH_AS_MINUS = regex.compile(r"(?<![\w)\]}.,%]|\d )[‐‑‒–](?=[$€£¥]?\.?\d)|(?<=[=:(]\s?)[‐‑‒–](?=\s?\d)")
_RAISED = regex.compile(rf"[{''.join(_SUPERSCRIPTS)}]+")
_RAISED_IN_HTML = regex.compile(r"<sup>\s*+([-+]?\w{1,9})\s*+</sup>")
_MIXED = regex.compile(rf"(?:(?<![\d.,])(?P<whole>\d{{1,15}})[ ]?)?(?P<vulgar>[{_VULGAR}])")
_MARKS = regex.compile(
    r"\[\^\w{1,12}\]|【[^【】\n]{0,20}†[^【】\n]{0,40}】|\[\d{1,3}\]\(https?://[^)\s]{0,300}\)|"
    r"(?<=[\w.,;:!?)%\"”*€£¥])(?<!\\[A-Za-z]{1,12})(?:(?<!\b[A-Za-z])|(?<=\d))"
    r"\[\d{1,3}(?:\s?[,–-]\s?\d{1,3})*\](?![({])|"
    r"(?<=[\w.)%] )(?<!\b(?:is|are|was|be|equals?|answer|gives|ist|est|es|é|by|to|of|and|or|in|interval|list|"
    r"vector) )\[\d{1,3}\](?=[\s.,;:!?]|\Z)",
    regex.IGNORECASE,
)
_NOTES = regex.compile(r"^[ \t]*+(?:\[\^?\w{1,12}\]:|[⁰¹²³⁴-⁹]+[ \t]).*$", regex.MULTILINE)
_MARKED_NOTES = regex.compile(r"^[ \t]*+\[\d{1,3}\][ \t]++\S.*$", regex.MULTILINE)


def as_typed(text: str) -> str:
    r"""The text with numbers in typed characters.

    Full-width characters, digits of all scripts, typographic minus signs and spaces are converted.
    Superscripts become ^n and vulgar fractions a/b, also after a whole number: 2½ becomes 5/2. The backslash
    and the dollar of an escaped dollar are removed, as are footnote marks and footnotes.
    """
    if text.isascii() and not any(mark in text for mark in ("\\", "[", "{", "<sup>")):
        return text
    without_notes = _NOTES.sub("", text)
    text = _MARKS.sub("", without_notes)
    if text != without_notes:
        text = _MARKED_NOTES.sub("", text)
    text = _DIGIT.sub(lambda found: str(unicodedata.decimal(found.group())), text)
    text = _THOUSANDS_IN_LATEX.sub("", _THOUSANDS_SPACE.sub("", text))
    text = _COMMA_IN_LATEX.sub(r"\1", text.translate(_CHARACTERS).translate(_PLAIN_SPACES))
    text = _ESCAPED_PERCENT.sub("%", _ESCAPED_DOLLAR.sub("", text))
    text = _DASH_AS_MINUS.sub("-", text)
    text = _RAISED_IN_HTML.sub(r"^{\1}", text)
    typed: str = _RAISED.sub(_as_power, _MIXED.sub(_as_fraction, text))
    return typed


def _as_power(found: "regex.Match[str]") -> str:
    exponent = "".join(_SUPERSCRIPTS[each] for each in found.group())
    return f"^{exponent}" if len(exponent) == 1 else f"^{{{exponent}}}"


def _as_fraction(found: "regex.Match[str]") -> str:
    value = Fraction(unicodedata.numeric(found.group("vulgar"))).limit_denominator(10)
    value += int(found.group("whole") or 0)
    return f"{value.numerator}/{value.denominator}"
