"""A prompt and what may follow it as token ids, split where lm-eval's `loglikelihood` requests split them.

The two are encoded together, since a tokenizer may join the end of one with the beginning of the other; as
many tokens as the prompt has alone belong to the prompt, the rest to the continuation. White space at the
prompt's end goes to the continuation first: most tokenizers put a space into the token of the word after it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from winnow.tasks.engines.chat import Prompt, words_of
from winnow.tasks.engines.errors import one_sentence
from winnow.tasks.engines.prompt_tokens import PromptEncoder
from winnow.tasks.engines.protocol import GenerationFailure

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """A prompt and a continuation of it."""

    ids: list[int]
    """Tokens of both."""
    start: int
    """Position of the continuation's first token, at least 1 and before the end."""


class ContinuationEncoder:
    """Turns a prompt and a continuation into tokens, or into the reason why the model cannot read them.

    A prompt without a text is the token that begins a text, or else the one that ends it. A prompt that
    begins with that token spelled out is given no second one. A chat's prompt stands in the chat template.

    What follows a prompt without a text may be longer than the context window: it is then told in several
    pieces, of which each is weighed once and after as much of the text before it as fits in.

    Args:
        tokenizer: A Hugging Face tokenizer.
        prompts: Its encoder of prompts.
        chat: Whether that one uses the chat template.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", prompts: PromptEncoder, *, chat: bool) -> None:
        first = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
        self._tokenizer = tokenizer
        self._prompts = prompts
        self._first = first if isinstance(first, int) else None
        self._spelled = "" if chat or self._first is None else str(tokenizer.decode([self._first]))

    def __call__(self, prompt: Prompt, continuation: str) -> list[Continued] | GenerationFailure:
        """Both as tokens, at least one of each, in pieces of fewer than the context window holds."""
        try:
            f"{words_of(prompt)}{continuation}".encode()
            text, continuation = without_end_spaces(self._prompts.text_of(prompt), continuation)
            before = self._ids_of(text) if text else []
            both = self._ids_of(text + continuation) if text else self._plain(continuation)
        except Exception as error:  # templates and tokenizers run code of the checkpoint's authors
            return GenerationFailure(reason="bad_prompt", detail=one_sentence(error))
        if not before and (self._first is None or not both):
            return GenerationFailure(reason="empty_prompt", detail="the prompt has no tokens")
        if not before and both[0] != self._first:
            both = [self._first or 0, *both]
        start = max(1, len(before))
        if len(both) <= start:
            return GenerationFailure(
                reason="bad_choices", detail=f"the model has no tokens for {continuation!r} after this prompt"
            )
        pieces = [Continued(ids=both, start=start)] if before else windows(both, self._prompts.longest)
        unfit = (self._prompts.why_unfit(each.ids) for each in pieces)
        return next(filter(None, unfit), None) or pieces

    def _ids_of(self, text: str) -> list[int]:
        is_begun = self._spelled and text.startswith(self._spelled)
        return self._plain(text) if is_begun else self._prompts.ids_of(text)

    def _plain(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])


def windows(ids: list[int], longest: int) -> list[Continued]:
    """Pieces of a text that begins after the first token, such that each of its tokens is weighed in one.

    Each piece begins with the last token of the one before, but for the last of several, which is as long as
    the others. That is how lm-eval's `loglikelihood_rolling` has it with a window of `longest` - 1 tokens.

    Args:
        ids: Tokens, two or more.
        longest: The most tokens of a piece, two or more.
    """
    pieces = [Continued(ids=ids[:longest], start=1)]
    for weighed in range(longest, len(ids), longest - 1):  # tokens of the pieces so far
        end = min(weighed + longest - 1, len(ids))
        begin = end - longest
        pieces.append(Continued(ids=ids[begin:end], start=weighed - begin))
    return pieces


def without_end_spaces(prompt: str, continuation: str) -> tuple[str, str]:
    """The two with the white space that ends the prompt at the beginning of the continuation."""
    bare = prompt.rstrip()
    return bare, prompt[len(bare) :] + continuation
