"""The choices named by an answer and a target, as Inspect's `multiple_choice` reads them."""

import regex

from winnow.tasks.text.patterns import TIMEOUT_SECONDS

_LETTERS = r"([A-Za-z\d][A-Za-z\d ,]*?)"
_IN_DOLLARS = regex.compile(rf"\$\s*{_LETTERS}\s*\$")
_IN_STARS = regex.compile(rf"\*\*\s*{_LETTERS}\s*\*\*")
_IN_BRACKETS = regex.compile(r"(?i)(^|[:,])(\s*)\(([A-Za-z\d])\)(?=\s*(?:,|\.|\n|\Z))")
_STRICT = regex.compile(r"(?im)^ANSWER\s*:\s*([A-Za-z\d ,]+)\s*(?:$|\n|\.)")
_LENIENT = regex.compile(r"(?i)ANSWER\s*:\s*([A-Za-z\d ,]+)(?:[^\w]|\n|$|\.)")


def chosen(output: str, n_choices: int, *, several: bool) -> list[int]:
    """The positions of the choices that an output selects, in order; empty if it selects none.

    Args:
        output: Output of a model whose prompt requests "ANSWER: LETTER" at the end.
        n_choices: Number of choices.
        several: Whether more than one may be right.

    Raises:
        TimeoutError: If reading it takes too long.
    """
    text = _IN_DOLLARS.sub(r"\1", output, timeout=TIMEOUT_SECONDS)
    text = _IN_STARS.sub(r"\1", text, timeout=TIMEOUT_SECONDS)
    text = _IN_BRACKETS.sub(r"\1\2\3", text, timeout=TIMEOUT_SECONDS)
    found = _STRICT.findall(text, timeout=TIMEOUT_SECONDS) or _LENIENT.findall(text, timeout=TIMEOUT_SECONDS)
    if not found:
        return []
    said = found[-1].strip().rstrip(".").upper()
    letters = [_letter(position) for position in range(n_choices)]
    named = _several(said, letters) if several else _one(said, letters)
    return sorted(letters.index(each) for each in named)


def _several(said: str, letters: list[str]) -> set[str]:
    said = said.replace(" AND ", ",").replace(" ", "")
    for named in ({each for each in said.split(",") if each}, set(said)):
        if named <= set(letters):
            return named
    return set()


def _one(said: str, letters: list[str]) -> set[str]:
    named = [each for each in said.split(",") if each]
    return set(named) & set(letters) if len(named) == 1 else set()


def right_choices(targets: tuple[str, ...], n_choices: int) -> list[int]:
    """The positions named by targets such as "B", "AC" or "27", in order.

    Raises:
        ValueError: If one is not a choice.
    """
    words = [word for target in targets for word in target.replace(",", " ").split()]
    named = [each for word in words for each in ([word] if word.isnumeric() else word)]
    positions = sorted(map(_position, named))
    if positions and positions[-1] >= n_choices:
        raise ValueError(f"there are {n_choices} choices, and a target names another one")
    return positions


def _letter(position: int) -> str:
    return chr(ord("A") + position) if position < 26 else str(position - 25)


def _position(name: str) -> int:
    if len(name) == len(name.upper()) == 1 and name.isalpha():
        return ord(name.upper()) - ord("A")
    if not name.isnumeric() or (value := int(name)) == 0:
        raise ValueError(f"{name!r} is neither a letter nor a number of a choice")
    return 25 + value
