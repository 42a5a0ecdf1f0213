"""Words of a text in any script, for ROUGE.

ASCII text is split exactly as by rouge-score: in lower case, every character that is not a letter or digit
separates words. The same rule holds for all scripts with blanks between words; marks belong to their letter.
In scripts without blanks, each character is a word: Chinese and Japanese, Thai, Lao, Khmer and Burmese.
"""

import unicodedata
from collections.abc import Callable, Collection

import regex

_SCRIPTS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u30fc\u3006"
UNSPACED = rf"[{_SCRIPTS}&&[\p{{L}}\p{{N}}]]"
"""A letter or digit of a script without blanks between words."""

_WORD = regex.compile(
    rf"{UNSPACED}\p{{M}}*|(?:(?!{UNSPACED})[\p{{L}}\p{{M}}\p{{N}}])+", regex.VERSION1 | regex.UNICODE
)
_LETTER = regex.compile(UNSPACED, regex.VERSION1)

_ZERO_WIDTH_SPACE = 0x200B

_AS_ASCII = {
    code: unicodedata.normalize("NFKC", chr(code))
    for code in range(0xFF01, 0xFFEF)
    if unicodedata.decomposition(chr(code)).startswith(("<wide>", "<narrow>"))
}
"""Full-width letters and digits, and half-width kana, mapped to their usual forms."""

_INVISIBLE = {
    **dict.fromkeys(
        code
        for start, end in ((0xAD, 0xAE), (0x200C, 0x2010), (0x202A, 0x202F), (0x2060, 0x2070))
        for code in range(start, end)
    ),
    _ZERO_WIDTH_SPACE: " ",
    0xFEFF: None,
}
"""Characters that only affect typesetting; a zero-width space separates words."""


def words(text: str, stem: Callable[[str], str] | None = None) -> list[str]:
    """Words of a text in any script, in lower case.

    `stem` shortens a word of ASCII characters; None leaves words unchanged.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.translate(_AS_ASCII).translate(_INVISIBLE))
    found: list[str] = _WORD.findall(text.lower())
    if stem is None:
        return found
    return [stem(each) if each.isascii() else each for each in found]


def unspaced_letters(text: str) -> int:
    """Number of letters in a text from scripts without blanks between words."""
    return 0 if text.isascii() else len(_LETTER.findall(text))


LEAST_SHARE, HELPFUL_SHARE = 0.25, 0.5
"""Minimum share of the letters of scripts without blanks that become separate words: for a tokenizer to be
usable, and for a setting to be suggested."""

_FEWEST_LETTERS = 4


def leaves(words: Collection[str], text: str, share: float = LEAST_SHARE) -> bool:
    """Whether a tokenizer separates enough letters of scripts without blanks.

    True if more than `share` of these letters are words of their own, or the text has almost no such letters.
    """
    letters = unspaced_letters(text)
    parts = sum(unspaced_letters(each) > 0 for each in words)
    return letters < _FEWEST_LETTERS or parts > share * letters
