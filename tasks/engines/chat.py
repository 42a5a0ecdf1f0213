"""Chats: prompts as text or messages, separation of reasoning, chat templates.

Templates come from a checkpoint's folder. Rendering shows whether a template accepts given messages.
"""

import json
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NamedTuple

from winnow.storage.json_types import JsonObject, JsonView
from winnow.storage.plain_files import open_plain, read_text
from winnow.tasks.engines.errors import one_sentence
from winnow.tasks.engines.images import Image

Role = Literal["system", "user", "assistant"]


class Message(NamedTuple):
    """One message of a chat."""

    role: Role
    content: str
    """Rendered text of the message; untrusted, may hold any characters."""


Prompt = str | tuple[Message, ...]
"""A text, or at least one message; if the last message is the assistant's, the model continues it."""


def is_continued(prompt: Prompt) -> bool:
    """Whether the model should continue the assistant's last message."""
    return not isinstance(prompt, str) and prompt[-1].role == "assistant"


def messages_of(prompt: Prompt) -> tuple[Message, ...]:
    """Messages of a prompt; a text becomes a single user message."""
    return (Message("user", prompt),) if isinstance(prompt, str) else prompt


def last_user(messages: Sequence[Message]) -> int:
    """Place of the last user message, or else of the last message: it is the one with the images."""
    places = [place for place, each in enumerate(messages) if each.role == "user"]
    return places[-1] if places else len(messages) - 1


def as_stored(prompt: Prompt, images: Sequence[Image] = ()) -> str:
    """Prompt as stored and displayed: text unchanged, messages as JSON, one per line.

    A prompt with images is written as messages; the one with the images has their digests.
    """
    if isinstance(prompt, str) and not images:
        return prompt
    messages = messages_of(prompt)
    written: list[JsonObject] = [each._asdict() for each in messages]
    if images:
        written[last_user(messages)]["images"] = [each.as_json() for each in images]
    return "[" + ",\n ".join(json.dumps(each, ensure_ascii=False) for each in written) + "]"


def from_stored(text: str) -> tuple[Message, ...]:
    """Messages of a prompt that `as_stored` wrote; a text becomes one user message.

    Images are named at the beginning of the text that they were shown with.
    """
    if text.startswith('[{"role": '):
        with suppress(ValueError, TypeError, KeyError):
            written = json.loads(text)
            messages = tuple(Message(each["role"], each["content"]) for each in written)
            images = [Image.from_json(each, {}) for one in written for each in one.get("images", ())]
            if as_stored(messages, images) == text:
                return with_text(messages, "".join(f"[image {each.url or each.sha256}]\n" for each in images))
    return (Message("user", text),)


def with_text(messages: Sequence[Message], text: str) -> tuple[Message, ...]:
    """Messages with a text before that of the last user message."""
    place = last_user(messages)
    first, one, rest = messages[:place], messages[place], messages[place + 1 :]
    return (*first, Message(one.role, text + one.content), *rest)


def words_of(prompt: Prompt) -> str:
    """All text of a prompt without roles, for measuring its length."""
    return prompt if isinstance(prompt, str) else "\n".join(each.content for each in prompt)


def as_dicts(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Messages in the format of chat templates and servers."""
    return [{"role": each.role, "content": each.content} for each in messages]


START, END = "<think>", "</think>"


TAGS = (START, END)


def special_tokens(tokenizer: object) -> dict[int, str]:
    """Special tokens of a transformers tokenizer, by id; empty if the tokenizer does not list them."""
    added: Mapping[int, object] = getattr(tokenizer, "added_tokens_decoder", {})
    return {id_: str(token) for id_, token in added.items() if getattr(token, "special", False)}


MOST_READ = 1 << 20
"""Maximum bytes read of `tokenizer.json`, whose added tokens come before a much larger vocabulary."""


def hides_thoughts(folder: Path) -> bool:
    """Whether a folder's tokenizer treats a think tag as special, so that decoding drops it."""
    try:
        with open_plain(folder / "tokenizer.json") as file:
            text = file.read(MOST_READ).decode("utf-8", "replace")
        start = text.index('"added_tokens"')
        added, _ = json.JSONDecoder().raw_decode(text, text.index("[", start))
        return any(each["content"] in TAGS and each["special"] for each in added)
    except (OSError, ValueError, KeyError, TypeError):
        return False


class Reasoning(NamedTuple):
    """Rule that separates a model's reasoning from its answers."""

    parser: Literal["think-tags", "server"]
    """Where the reasoning is: "think-tags", between `START` and `END`; "server", in a separate field of the
    reply."""
    strip: bool
    """Whether the reasoning is removed from answers."""
    begins_inside: bool
    """Whether texts begin inside the reasoning, because the chat template or the prompt has already opened
    it."""


def separated(text: str, told: str | None, how: Reasoning | None) -> tuple[str, str | None]:
    """Split a text into its answer and its reasoning; None as reasoning if it has none.

    With "think-tags", the reasoning ends at the first `END`. If it begins but never ends, as in a text that
    was cut off, everything is reasoning. If `how.strip` is false, the returned answer is the whole text.

    Args:
        text: The generated text.
        told: Reasoning that a server returned separately.
        how: The rule; if None, the whole text is the answer.
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


MOST_STEPS = 1_000_000
"""Maximum steps of a chat template for one prompt in a trial."""

MOST_SECONDS = 30.0
"""Maximum seconds for a trial; a legitimate template stays far below, even on a busy machine."""

TEMPLATES_CODE = "<template>"
"""File name of the code that jinja2 generates from a template."""

TEMPLATE = "chat_template.jinja"
CONFIG = "tokenizer_config.json"
OF_PROCESSOR = "chat_template.json"  # of older models that read images
SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token")


def own_template(folder: Path) -> str | None:
    """Default chat template of a folder's tokenizer; None if it has no default template."""
    named = folder / TEMPLATE
    if named.is_file():
        return named.read_text("utf-8", errors="replace")
    told = _json_object(folder / CONFIG).get("chat_template")
    if told is None:
        told = _json_object(folder / OF_PROCESSOR).get("chat_template")
    if isinstance(told, list):
        named_default = (each for each in told if isinstance(each, dict) and each.get("name") == "default")
        told = next(named_default, {}).get("template")
    return told if isinstance(told, str) else None


def why_refused(
    template: str,
    folder: Path,
    messages: tuple[Message, ...],
    args: JsonView,
    *,
    in_parts: bool = False,
) -> str | None:
    """Reason why a chat template rejects messages, as a clause; None if it accepts them.

    Args:
        template: Jinja2 source, as in checkpoints.
        folder: Folder of the checkpoint, whose special tokens a template may name.
        messages: At least one message.
        args: Additional variables of the template.
        in_parts: Whether contents are lists of parts, as for models that read images.
    """
    from transformers.utils.chat_template_utils import render_jinja_template

    is_open = is_continued(messages)
    settings = {"add_generation_prompt": not is_open, "continue_final_message": is_open, **args}
    chat: list[JsonObject] = [*as_dicts(messages)]
    if in_parts:
        chat = [{**each, "content": [{"type": "text", "text": each["content"]}]} for each in chat]
    try:
        with _bounded():
            render_jinja_template([chat], chat_template=template, **{**_tokens(folder), **settings})
    except Exception as error:  # templates run code of the checkpoint's authors
        if "continue_final_message" in str(error):
            return "it does not keep the assistant's last message unchanged, so a model cannot continue it"
        return one_sentence(error, limit=200)
    return None


@contextmanager
def _bounded() -> Generator[None, None, None]:
    """Stop a template after `MOST_STEPS` or `MOST_SECONDS`; raises `RuntimeError`.

    Steps are lines of the code that jinja2 generates; their number does not depend on the machine's load.
    """
    before, steps, deadline = sys.gettrace(), 0, time.monotonic() + MOST_SECONDS

    def watch(frame: FrameType, event: str, _: object) -> Callable[[FrameType, str, Any], Any] | None:
        nonlocal steps
        if frame.f_code.co_filename != TEMPLATES_CODE:
            return None
        steps += event == "line"
        if steps > MOST_STEPS:
            raise RuntimeError(f"it takes more than {MOST_STEPS:,} steps")
        if time.monotonic() > deadline:
            raise RuntimeError(f"it takes more than {MOST_SECONDS:g} s")
        return watch

    sys.settrace(watch)
    try:
        yield
    finally:
        sys.settrace(before)


def _tokens(folder: Path) -> dict[str, str]:
    told = _json_object(folder / CONFIG)
    found = {name: told.get(name) for name in SPECIAL_TOKENS}
    texts = {name: each.get("content") if isinstance(each, dict) else each for name, each in found.items()}
    return {name: each for name, each in texts.items() if isinstance(each, str)}


def _json_object(path: Path) -> JsonObject:
    try:
        told = json.loads(read_text(path))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}
