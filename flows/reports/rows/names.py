"""Long names in little room: without their middles, and so that two that differ do not come to look alike."""

from collections.abc import Sequence

from rich.cells import cell_len


def shortened(text: str, most: int) -> str:
    """The text, without its middle where it takes more columns of the terminal."""
    kept = most
    short = text
    while cell_len(short) > most:  # some characters are two columns wide
        kept -= 1
        short = f"{text[: (kept + 1) // 2]}…{text[len(text) - kept // 2 :]}"
    return short


def beginning(text: str, most: int) -> str:
    """The text, without its end where it takes more columns of the terminal."""
    kept = most
    short = text
    while cell_len(short) > most:
        kept -= 1
        short = f"{text[:kept]}…"
    return short


def shortened_apart(names: Sequence[str], most: int) -> list[str]:
    """The names without their middles where they are too long; see `told_apart`."""
    return [shortened(name, most) for name in told_apart(names, most)]


def told_apart(names: Sequence[str], most: int) -> Sequence[str]:
    """The names; where two would be shortened to the same, without the beginning and end that all share."""
    different = set(names)
    if len({shortened(name, most) for name in different}) == len(different):
        return names
    return without_shared(names)


def without_shared(names: Sequence[str]) -> list[str]:
    """Names that are not all the same, without the beginning and the end that all share."""
    start = _shared(names)
    end = _shared([name[start:][::-1] for name in names])
    before, after = "…" * (start > 0), "…" * (end > 0)
    return [f"{before}{name[start : len(name) - end]}{after}" for name in names]


def _shared(names: Sequence[str]) -> int:
    """The number of characters with which all names begin alike."""
    first, last = min(names), max(names)
    return next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
