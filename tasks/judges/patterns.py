"""A user's regular expressions, run on text that may be hostile."""

from collections import deque

import regex

TIMEOUT_SECONDS = 2.0  # a linear pattern reads a megabyte in a tenth of this
TARGET = "{target}"


def compiled(pattern: str, ignore_case: bool = False) -> regex.Pattern[str]:
    """The compiled pattern.

    Raises:
        ValueError: If the pattern is not a regular expression.
    """
    try:
        return regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
    except regex.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression ({error})") from error


def last_answer(pattern: regex.Pattern[str], text: str) -> str | None:
    """What the last match says, surrounding white space removed, or None if there is no match.

    Group 1 is what it says; a pattern without groups, or whose group 1 took no part in the match, says
    the whole match. The last match counts because whatever a model quotes or tries comes before what it
    settles on.

    Raises:
        TimeoutError: If all matches together took longer than `TIMEOUT_SECONDS`.
    """
    last = deque(pattern.finditer(text, timeout=TIMEOUT_SECONDS), maxlen=1)
    if not last:
        return None
    said: str | None = last[0].group(1) if pattern.groups else None
    answer: str = last[0].group() if said is None else said
    return answer.strip()
