"""What a model is asked: a text, or the messages of a chat."""

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
