"""Long names in little space: shortened in the middle, and so that different names stay different."""

from collections.abc import Sequence

from rich.cells import cell_len


def shortened(text: str, most: int) -> str:
    """The text, shortened in the middle if it is wider than `most` terminal columns."""
    kept = most
    short = text
    while cell_len(short) > most:  # some characters are two columns wide
        kept -= 1
        short = f"{text[: (kept + 1) // 2]}…{text[len(text) - kept // 2 :]}"
    return short


def beginning(text: str, most: int) -> str:
    """The text, shortened at its end if it is wider than `most` terminal columns."""
    kept = most
    short = text
    while cell_len(short) > most:
        kept -= 1
        short = f"{text[:kept]}…"
    return short


def shortened_apart(names: Sequence[str], most: int) -> list[str]:
    """The names, shortened in the middle if too long; see `told_apart`."""
    return [shortened(name, most) for name in told_apart(names, most)]


def told_apart(names: Sequence[str], most: int) -> Sequence[str]:
    """The names, without their common beginning and end if two would be shortened to the same text."""
    different = set(names)
    if len({shortened(name, most) for name in different}) == len(different):
        return names
    return without_shared(names)


def without_shared(names: Sequence[str]) -> list[str]:
    """Different names without their common beginning and end."""
    start = _shared(names)
    end = _shared([name[start:][::-1] for name in names])
    before, after = "…" * (start > 0), "…" * (end > 0)
    return [f"{before}{name[start : len(name) - end]}{after}" for name in names]


def _shared(names: Sequence[str]) -> int:
    """The length of the common beginning of all names."""
    first, last = min(names), max(names)
    return next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
