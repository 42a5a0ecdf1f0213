"""Combine a question and solved examples as lm-eval 0.4.13 does: into a text, or a chat."""

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Message:
    """One message, and what follows it in a text."""

    role: str
    content: str
    delimiter: str = ""

    @property
    def text(self) -> str:
        """As part of a text."""
        return self.content + self.delimiter

    @property
    def turn(self) -> dict[str, str]:
        """As part of a chat."""
        return {"role": self.role, "content": self.content}


def turns_of(
    question: str,
    answer: str | None,
    *,
    prefix: str | None,
    target_delimiter: str,
    delimiter: str,
) -> list[Message]:
    """A question, and its answer or the beginning of one.

    Args:
        question: The question.
        answer: The answer of a solved example; None or empty if there is none.
        prefix: The text that the answer begins with.
        target_delimiter: Between question and answer in a text.
        delimiter: After the answer in a text.
    """
    between = target_delimiter if answer and not prefix else ""
    if prefix and _needs_delimiter(question, prefix):
        between = target_delimiter
    asked = Message("user", question, between)
    if answer:
        return [asked, Message("assistant", _joined(prefix, answer), delimiter)]
    return [asked, Message("assistant", prefix)] if prefix else [asked]


def as_text(messages: Sequence[Message]) -> str:
    """All messages as one text."""
    return "".join(each.text for each in messages)


def as_turns(messages: Sequence[Message], *, multiturn: bool) -> list[dict[str, str]]:
    """The messages of a chat; unless multiturn, solved examples are part of the single user message.

    The beginning of an answer is omitted: it is stored separately, see `Documents`.
    """
    if multiturn:
        return [each.turn for each in messages]
    start = int(messages[0].role == "system")
    asked = [*messages[start:-1], replace(messages[-1], delimiter="")]
    return [*(each.turn for each in messages[:start]), Message("user", as_text(asked)).turn]


def _needs_delimiter(before: str, after: str) -> bool:
    return before != "" and not (before[-1].isspace() or after[0].isspace())


def _joined(prefix: str | None, answer: str) -> str:
    if not prefix:
        return answer
    return f"{prefix} {answer}" if _needs_delimiter(prefix, answer) else prefix + answer
