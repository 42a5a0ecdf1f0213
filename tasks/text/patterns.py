"""Users' regular expressions, applied to text that may be hostile."""

from collections import deque

import regex

TIMEOUT_SECONDS = 2.0  # a linear pattern reads a megabyte in a tenth of this
TARGET = "{target}"

LONGEST = 10_000
"""Maximum length of a pattern, because some patterns take quadratic time.

The time is for compiling as well as searching.
"""

LARGEST = 20_000
"""Maximum number of parts of a pattern with repeats expanded to their minimum count.

`regex` expands repeats this way: (ab){3} has 6 parts.
"""

_PART = regex.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{ *(\d*) *(?:, *\d* *)?\}|.", regex.DOTALL)
_CALL = regex.compile(r"\(\?(?:R|[0-9]|&|P>)")


def compiled(pattern: str, ignore_case: bool = False) -> regex.Pattern[str]:
    """Compile a pattern.

    Raises:
        ValueError: The pattern is not a regular expression, or would take gigabytes.
    """
    if problem := _problem(pattern):
        raise ValueError(f"{pattern[:80]!r} {problem}")
    try:
        return regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
    except (regex.error, RecursionError, OverflowError) as error:
        advice = "write a backslash before a character that stands for itself"
        raise ValueError(f"{pattern[:80]!r} is not a regular expression ({error}); {advice}") from error


def _problem(pattern: str) -> str | None:
    """The reason why a pattern must not be compiled; None if it can be."""
    if len(pattern) > LONGEST:
        return f"has {len(pattern):,} characters; give a pattern of at most {LONGEST:,}"
    # A call is neither escaped nor inside a set.
    plain = "".join(each[0] for each in _PART.finditer(pattern) if len(each[0]) == 1)
    if _CALL.search(plain):
        return "calls a group again, which can exhaust the memory; write it without (?R), (?1) and (?&name)"
    if _size(pattern) > LARGEST:
        return f"has more than {LARGEST:,} parts with its repeats expanded; repeat less, or use + and *"
    return None


def _size(pattern: str) -> int:
    """Number of parts of a pattern with repeats expanded to their minimum count."""
    finished, last = [0], [0]
    """By group depth: number of parts before the last one, and of the last one."""
    for part in _PART.finditer(pattern):
        if part[1]:
            last[-1] *= max(1, int(part[1]))
            continue
        finished[-1] += last[-1]
        last[-1] = 1
        if part[0] == "(":
            finished.append(0)
            last.append(0)
        elif part[0] == ")" and len(finished) > 1:
            inside = finished.pop() + last.pop()
            last[-1] = max(1, inside - 1)
    return finished[0] + last[0] + sum(finished[1:]) + sum(last[1:])


_WORD = regex.compile(r"\w")


def last_answer(pattern: regex.Pattern[str], text: str, *, is_cut: bool = False) -> str | None:
    """The answer of the last match, without surrounding spaces; None without match.

    The answer is group 1 of the match, or the whole match if the pattern has no groups or group 1 did not
    match. The last match counts, because a model quotes or considers other answers before its final one. So
    in a text that was cut off (`is_cut`), it counts only if no word follows.

    Raises:
        TimeoutError: All matches together took longer than `TIMEOUT_SECONDS`, or too much memory.
    """
    try:
        last = deque(pattern.finditer(text, timeout=TIMEOUT_SECONDS), maxlen=1)
    except MemoryError as error:
        raise TimeoutError("the pattern takes too much memory") from error
    if not last or (is_cut and _WORD.search(text, last[0].end())):
        return None
    said: str | None = last[0].group(1) if pattern.groups else None
    answer: str = last[0].group() if said is None else said
    return answer.strip()
