"""What a model is asked: a text, or the messages of a chat."""

import json
from collections.abc import Sequence
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


def words_of(prompt: Prompt) -> str:
    """All that a prompt says, without its roles: what its length is counted by."""
    return prompt if isinstance(prompt, str) else "\n".join(each.content for each in prompt)


def as_dicts(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Messages in the form that chat templates and servers take."""
    return [{"role": each.role, "content": each.content} for each in messages]
