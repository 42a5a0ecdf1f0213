"""The chat template in a checkpoint's folder, and whether a template takes given messages.

Nothing of the checkpoint but these files is read, and no model library but the one that renders them.
"""

import json
from pathlib import Path

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.engines.chat.messages import Message, as_dicts, is_continued
from winnow.tasks.engines.errors import one_sentence

TEMPLATE = "chat_template.jinja"
CONFIG = "tokenizer_config.json"
SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token")


def own_template(folder: Path) -> str | None:
    """The chat template that the tokenizer in a folder has; None where it has none, or none by default."""
    named = folder / TEMPLATE
    if named.is_file():
        return named.read_text("utf-8", errors="replace")
    told = _config(folder).get("chat_template")
    if isinstance(told, list):
        named_default = (each for each in told if isinstance(each, dict) and each.get("name") == "default")
        told = next(named_default, {}).get("template")
    return told if isinstance(told, str) else None


def why_refused(template: str, folder: Path, messages: tuple[Message, ...], args: JsonView) -> str | None:
    """Why a chat template does not take messages, as the end of a sentence; None where it does.

    Args:
        template: jinja2, as checkpoints have it.
        folder: Of the checkpoint, whose special tokens a template may name.
        messages: At least one.
        args: Variables of the template beside.
    """
    from transformers.utils.chat_template_utils import render_jinja_template

    is_open = is_continued(messages)
    settings = {"add_generation_prompt": not is_open, "continue_final_message": is_open, **args}
    try:
        render_jinja_template([as_dicts(messages)], chat_template=template, **{**_tokens(folder), **settings})
    except Exception as error:  # templates run code of the checkpoint's authors
        if "continue_final_message" in str(error):
            return (
                "it does not show the assistant's last message as it is, so that a model cannot go on from it"
            )
        return one_sentence(error, limit=200)
    return None


def _tokens(folder: Path) -> dict[str, str]:
    told = _config(folder)
    found = {name: told.get(name) for name in SPECIAL_TOKENS}
    texts = {name: each.get("content") if isinstance(each, dict) else each for name, each in found.items()}
    return {name: each for name, each in texts.items() if isinstance(each, str)}


def _config(folder: Path) -> JsonObject:
    try:
        told = json.loads((folder / CONFIG).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}
