"""What to say about a name that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that offers the known name nearest to this one; empty if none is near."""
    near = get_close_matches(name, sorted(known), n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name that is not among the known ones.

    Args:
        kind: What the name was taken for, such as "judge".
        name: The name as it was written.
        known: The names that would have been right.
    """
    choices = sorted(known)
    question = did_you_mean(name, choices)
    return (
        f"unknown {kind} {name!r}; {question}{' ' * bool(question)}available: {', '.join(choices) or 'none'}"
    )
