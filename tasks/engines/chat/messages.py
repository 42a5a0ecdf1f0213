"""What a model is asked, a text or the messages of a chat, and what it thinks before it answers."""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

Role = Literal["system", "user", "assistant"]


class Message(NamedTuple):
    """One message of a chat."""

    role: Role
    content: str
    """As rendered; untrusted, any characters."""


Prompt = str | tuple[Message, ...]
"""Messages are never none; where the assistant has the last word, the model goes on from there."""


def is_continued(prompt: Prompt) -> bool:
    """Whether the model is to go on from what the assistant already says."""
    return not isinstance(prompt, str) and prompt[-1].role == "assistant"


def as_stored(prompt: Prompt) -> str:
    """A prompt as it is kept and shown: a text as it is, messages as JSON with one message a line."""
    if isinstance(prompt, str):
        return prompt
    return "[" + ",\n ".join(json.dumps(each._asdict(), ensure_ascii=False) for each in prompt) + "]"


def from_stored(text: str) -> tuple[Message, ...]:
    """The messages of a prompt as `as_stored` wrote it; a text is the one message of a user."""
    if text.startswith('[{"role": '):
        with suppress(ValueError, TypeError, KeyError):
            messages = tuple(Message(each["role"], each["content"]) for each in json.loads(text))
            if as_stored(messages) == text:
                return messages
    return (Message("user", text),)


def words_of(prompt: Prompt) -> str:
    """All that a prompt says, without its roles: what its length is counted by."""
    return prompt if isinstance(prompt, str) else "\n".join(each.content for each in prompt)


def as_dicts(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Messages in the form that chat templates and servers take."""
    return [{"role": each.role, "content": each.content} for each in messages]


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
