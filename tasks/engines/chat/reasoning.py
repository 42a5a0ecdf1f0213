"""What a model thinks before it answers, told apart from its answer."""

from typing import Literal, NamedTuple

START, END = "<think>", "</think>"


class Reasoning(NamedTuple):
    """How the reasoning of a model is told apart from its answers."""

    parser: Literal["think-tags", "server"]
    """"think-tags": it stands between `START` and `END`; "server": the server tells it beside the text."""
    strip: bool
    """Whether an answer is without it."""
    begins_inside: bool
    """Whether a text begins within it, because the chat template or the prompt has opened it already."""


def separated(text: str, told: str | None, how: Reasoning | None) -> tuple[str, str | None]:
    """An answer, and the reasoning before it; None where there is none or nobody asked for it.

    The first `END` is where reasoning ends. Where it never does, as in a text that was cut off, all is
    reasoning and the answer is empty.

    Args:
        text: As generated.
        told: The reasoning that a server told beside it.
        how: None takes texts as they are.
    """
    if how is None:
        return text, None
    if how.parser == "server":
        return text, told
    begun = text.lstrip()
    is_inside = how.begins_inside or begun.startswith(START)
    reasoning, end, answer = begun.removeprefix(START).partition(END)
    if not (is_inside or end):
        return text, None
    return answer.lstrip() if how.strip else text, reasoning.strip()
