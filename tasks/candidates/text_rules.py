"""How texts are made beyond what a file says: a campaign keeps the rules that it began with.

A later release may draw tokens or read prompts in another way. That gives other texts, so a campaign stores
the version of the rules with which it began, and what is new stands in the key of a text that it can change.

Version 0, of campaigns that store none: tokens are drawn along their cumulated probabilities, in the order of
the vocabulary, and a tokenizer puts its first token before every prompt without a chat template. Version 1:
tokens are drawn by Gumbel noise on their logits, no second first token is put before a prompt that spells it
out, and texts that the parser think-tags reads keep its tags where the tokenizer calls them special.
All are about engines on this machine: servers draw and read as they do.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from winnow.storage.json_types import JsonView
from winnow.tasks.engines.chat import Prompt
from winnow.tasks.engines.known_providers import OWN_TOKENS
from winnow.tasks.engines.protocol import GREEDY_BELOW, ModelRef, Sampling

NEWEST = 1
"""Version with which new campaigns start."""

KEY = "text_rules"
"""Key of an identity that holds the version."""

OWN_DRAWS = frozenset({"transformers"})
"""Providers whose tokens Winnow draws itself."""

BEGINNINGS = ("<", "[", "{", "|", "\uff1c", "\uff5c")
"""What a spelled first token may begin with, such as <s>, <|begin_of_text|> or [CLS]: a key says whether a
prompt is given one, and is made before any tokenizer is loaded."""


def rules_of(identity: JsonView) -> int:
    """Version of the text rules of a stored campaign."""
    return int(identity.get(KEY, 0))


def as_stored(rules: int, models: Iterable[ModelRef]) -> dict[str, int]:
    """Entry of an identity that gives the text rules; empty if they change no text."""
    return {KEY: rules} if rules and any(each.provider in OWN_TOKENS for each in models) else {}


def settled(sampling: Sampling, model: ModelRef, prompt: Prompt, *, rules: int) -> Sampling:
    """Sampling settings for one text, with the text rules that can change it.

    Args:
        sampling: The settings of the file.
        model: The model that is asked to write or to choose.
        prompt: What it is asked.
        rules: The version of the campaign's rules.
    """
    if rules < 1 or model.provider not in OWN_TOKENS:
        return sampling
    draws = model.provider in OWN_DRAWS and not sampling.choices and sampling.temperature >= GREEDY_BELOW
    begins = not model.chat and isinstance(prompt, str) and prompt.startswith(BEGINNINGS)
    thinks = model.reasoning is not None and model.reasoning.parser == "think-tags" and not sampling.choices
    if not (draws or begins or thinks):
        return sampling
    return _with(_Itself(sampling), draws, begins, thinks)


class _Itself:
    """Settings compared by object identity: 1 and 1.0 are equal, but differ in keys."""

    __slots__ = ("sampling",)

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.sampling is other.sampling

    def __hash__(self) -> int:
        return id(self.sampling)


@lru_cache(maxsize=1024)  # engines group requests by the object that holds their settings
def _with(own: _Itself, draws: bool, begins: bool, thinks: bool) -> Sampling:
    return replace(own.sampling, gumbel=draws, one_bos=begins, think_tags=thinks)
