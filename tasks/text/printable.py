"""Escape text for terminals and Markdown, and mask secrets in it."""

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import quote

LONGEST = 2_000
"""Maximum length of a displayed line; a longer line is displayed without its middle."""

HEAD = 1_500
"""Number of characters that are displayed from the beginning of a longer line."""

_MARKUP = re.compile(
    r"[]!#$&*<>@[\\_`|~]|(?<=])\(|:(?=[\w+/-])|(?<=www)\.|^\s*[-+=]|^\s*[0-9]+(?:\)|\.(?=\s|$))",
    re.IGNORECASE,
)
"""Matches all characters with a meaning in Markdown.

Anywhere these are the beginnings of spans, table rows, entities, formulas, mentions, emojis, and links,
bare or in brackets; at the start of a line, also of lists and of lines under a heading.
"""

_LINE_ENDS = re.compile(r"\s*[\n\r\u2028\u2029]\s*")


def printable(text: str) -> str:
    """Text with dots instead of unprintable characters except line ends.

    So the text cannot control a terminal.
    """
    return "".join(c if c.isprintable() or c == "\n" else "\N{MIDDLE DOT}" for c in text)


def one_line(text: str) -> str:
    """Printable text without line ends."""
    return printable(_LINE_ENDS.sub(" ", text).strip())


def escaped(text: str) -> str:
    """Printable text in one line, without active Markdown or HTML."""
    return _MARKUP.sub(_behind_a_backslash, printable(text).replace("\n", " "))


SHORTEST_PART = 4
"""Minimum length of a part of a secret that is masked."""


def masked(text: str, secrets: Mapping[str, str]) -> str:
    """Text with other words in the place of secrets, also as written in a URL, in JSON or in base64.

    The text may have been cut within a secret, so a part of one at either end is masked too.

    Args:
        text: Such as what a server says of an error.
        secrets: The words -> the secret.
    """
    spellings = sorted(
        ((each, words) for words, secret in secrets.items() for each in _spellings(secret)),
        key=lambda each: -len(each[0]),  # one may begin another
    )
    for spelling, words in spellings:
        text = re.sub(re.escape(spelling), words.replace("\\", r"\\"), text, flags=re.IGNORECASE)
    for spelling, words in spellings:
        for n in range(min(len(text), len(spelling)), SHORTEST_PART - 1, -1):
            if text[0] == spelling[-n] and spelling.endswith(text[:n]):
                text = words + text[n:]
                break
        for n in range(min(len(text), len(spelling)), SHORTEST_PART - 1, -1):
            if text[-1] == spelling[n - 1] and spelling.startswith(text[-n:]):
                text = text[:-n] + words
                break
    return text


def _spellings(secret: str) -> set[str]:
    in_bytes, in_json = secret.encode(errors="surrogateescape"), json.dumps(secret)[1:-1]
    return {
        *(secret, quote(in_bytes, safe=""), quote(in_bytes)),
        *(in_json, in_json.replace("/", "\\/"), json.dumps(secret, ensure_ascii=False)[1:-1]),
        b64encode(in_bytes).decode().rstrip("="),
    }


def _behind_a_backslash(found: re.Match[str]) -> str:
    """The match with a backslash before its last character, which is the markup."""
    return f"{found[0][:-1]}\\{found[0][-1]}"


def shortened(text: str) -> str:
    """The text with lines of bounded length.

    A long line keeps its beginning and end, where error messages have the place and the remedy.
    """
    lines = text.split("\n")
    return "\n".join(
        line if len(line) <= LONGEST else f"{line[:HEAD]} … {line[HEAD - LONGEST + 3 :]}" for line in lines
    )
