"""Tokenization of prompts, the same for every engine with an available tokenizer."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.chat import (
    Message,
    Prompt,
    as_dicts,
    is_continued,
    last_user,
    messages_of,
    words_of,
)
from winnow.tasks.engines.errors import EngineLoadFailed, one_sentence
from winnow.tasks.engines.images import marking_no_image
from winnow.tasks.engines.protocol import GenerationFailure, ModelRef

if TYPE_CHECKING:  # the tokenizer is passed in, so this file does not load its library
    from transformers import PreTrainedTokenizerBase


class PromptEncoder:
    """Convert prompts to token ids, or to the reason why a prompt cannot be sent.

    In chat mode, special tokens spelled out in a message are broken up by a space: text from elsewhere (a
    data set, another model's answer) cannot close its turn and imitate another role. Without a chat template
    they keep their meaning, because such a prompt can write out its own turns.

    Args:
        tokenizer: A Hugging Face tokenizer.
        model: Defines whether to use the chat template.
        vocabulary: Number of token ids of the model.
        max_model_len: Context window in tokens.

    Raises:
        EngineLoadFailed: If the model should chat and its tokenizer has no chat template.
    """

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        model: ModelRef,
        *,
        vocabulary: int,
        max_model_len: int,
    ) -> None:
        own = model.chat_template or getattr(tokenizer, "chat_template", None)
        if model.chat and not own and not model.shows_images:  # else its processor may have one
            raise EngineLoadFailed(
                model.name,
                f"chat is on but the tokenizer of {model.model} has no chat template; "
                "set chat: false, name a chat_template or choose a checkpoint trained to chat",
            )
        self._tokenizer = tokenizer
        self._chat = model.chat
        # A chat template already writes what a tokenizer would put before a text.
        self._how = {"add_special_tokens": False} if model.chat else {}
        self._template_args: JsonObject = dict(model.chat_template_args)
        if model.chat_template is not None:
            self._template_args["chat_template"] = model.chat_template
        self._vocabulary = vocabulary
        self._max_model_len = max_model_len
        self._special = _special_tokens(tokenizer) if model.chat else []

    def __call__(self, prompt: Prompt, *, one_bos: bool = False) -> list[int] | GenerationFailure:
        """Token ids of the prompt, at least one and fewer than the context window holds.

        Args:
            prompt: A text or messages.
            one_bos: Whether a prompt that spells out the tokenizer's first token gets no second one.
        """
        return self.of_many([prompt], [one_bos])[0]

    def of_many(
        self, prompts: Sequence[Prompt], one_bos: Sequence[bool]
    ) -> list[list[int] | GenerationFailure]:
        """Token ids of each prompt, as for one: for many at once a tokenizer takes a third of the time."""
        texts: dict[int, str] = {}
        found: dict[int, list[int] | GenerationFailure] = {}
        for place, prompt in enumerate(prompts):
            try:
                words_of(prompt).encode()
                texts[place] = self.text_of(prompt)
            except Exception as error:  # templates run code of the checkpoint's authors
                found[place] = GenerationFailure(reason="bad_prompt", detail=one_sentence(error))
        found |= dict(zip(texts, self._encoded(list(texts.values())), strict=True))
        for place, text in texts.items():
            if one_bos[place] and _may_begin_twice(found[place]):
                found[place] = self._encoded_alone(text, one_bos=True)
        return [found[place] for place in range(len(prompts))]

    def _encoded(self, texts: list[str]) -> list[list[int] | GenerationFailure]:
        if len(texts) > 1:
            # The prompt at fault is found by encoding each one.
            with suppress(Exception):
                found = self._tokenizer(texts, **self._how)["input_ids"]
                return [self._fitting(list(ids)) for _, ids in zip(texts, found, strict=True)]
        return [self._encoded_alone(each) for each in texts]

    def _encoded_alone(self, text: str, *, one_bos: bool = False) -> list[int] | GenerationFailure:
        try:
            ids = self.ids_of(text)
            return self._fitting(self._begun_once(text, ids) if one_bos else ids)
        except Exception as error:  # tokenizers, too, run code of the checkpoint's authors
            return GenerationFailure(reason="bad_prompt", detail=one_sentence(error))

    def _begun_once(self, text: str, ids: list[int]) -> list[int]:
        """Remove the first token id if the tokenizer put it before a text that already begins with it."""
        if self._chat or ids[:1] != ids[1:2]:
            return ids
        plain = list(self._tokenizer(text, add_special_tokens=False)["input_ids"])
        return ids[1:] if ids[1 : len(plain) + 1] == plain else ids

    def _fitting(self, ids: list[int]) -> list[int] | GenerationFailure:
        if not ids:
            return GenerationFailure(reason="empty_prompt", detail="the prompt has no tokens")
        return self.why_unfit(ids) or ids

    @property
    def longest(self) -> int:
        """Maximum number of tokens that can be sent."""
        return self._max_model_len - 1

    def why_unfit(self, ids: Sequence[int]) -> GenerationFailure | None:
        """Reason why the model cannot receive these ids, at least one; None if it can."""
        if len(ids) >= self._max_model_len:
            return GenerationFailure(
                reason="prompt_too_long",
                detail=f"the prompt has {len(ids)} tokens, which leaves no room for an answer in "
                f"max_model_len {self._max_model_len}",
            )
        if max(ids) >= self._vocabulary:  # engines do not check ids and would read beyond the weights
            return GenerationFailure(
                reason="bad_prompt",
                detail=f"the tokenizer produced token {max(ids)}, but the model has only {self._vocabulary}",
            )
        return None

    def ids_of(self, text: str) -> list[int]:
        """Token ids of a text from `text_of`, with or without a continuation."""
        return list(self._tokenizer(text, **self._how)["input_ids"])

    def text_of(self, prompt: Prompt) -> str:
        """The prompt as read by the model: a chat in the chat template, a text unchanged."""
        if not self._chat:
            if not isinstance(prompt, str):
                raise ValueError("messages need a chat model; set chat: true")
            return prompt
        messages = messages_of(prompt)
        return str(
            self._tokenizer.apply_chat_template(
                as_dicts([Message(each.role, self._broken_up(each.content)) for each in messages]),
                tokenize=False,
                **self.template_args(prompt),
            )
        )

    def template_args(self, prompt: Prompt) -> JsonObject:
        """Arguments of the chat template for a prompt."""
        is_open = is_continued(prompt)
        return {
            "add_generation_prompt": not is_open,
            "continue_final_message": is_open,
            **self._template_args,
        }

    def parts_of(self, prompt: Prompt, images: Sequence[JsonObject]) -> list[JsonObject]:
        """Messages of a chat as lists of parts, for a chat template that shows images.

        Args:
            prompt: A text or messages; raises `UnicodeError` if it is not valid Unicode.
            images: The parts of the images, which come before the text of the last user message.
        """
        words_of(prompt).encode()
        messages = messages_of(prompt)
        return [
            {
                "role": each.role,
                "content": [
                    *(images if place == last_user(messages) else ()),
                    {"type": "text", "text": marking_no_image(self._broken_up(each.content))},
                ],
            }
            for place, each in enumerate(messages)
        ]

    def _broken_up(self, text: str) -> str:
        for token in self._special:
            text = text.replace(token, f"{token[0]} {token[1:]}")
        return text


def _may_begin_twice(ids: list[int] | GenerationFailure) -> bool:
    """Whether one token fewer may fit: the first two are equal, or there are more than the window holds."""
    return isinstance(ids, GenerationFailure) or ids[:1] == ids[1:2]


def _special_tokens(tokenizer: "PreTrainedTokenizerBase") -> list[str]:
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()
    return sorted({*tokenizer.all_special_tokens, *(str(token) for token in added if token.special)})
