"""Versioned rules for generating outputs; a campaign keeps its first version.

A later release can draw tokens or read prompts differently, which gives other outputs. So a campaign stores
the version of the rules at its start, and a new rule is part of the key of each output that it can change.

* Version 0, of campaigns that store no version: tokens are drawn from their cumulated probabilities, in the
  order of the vocabulary, and a tokenizer puts its first token before every prompt without a chat template.
* Version 1: tokens are drawn by Gumbel noise on their logits; a prompt that spells out the first token gets
  no second one; and outputs read by the parser think-tags keep its tags if the tokenizer treats them as
  special.

All rules concern engines on this machine, because servers draw and read in their own way.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from winnow.storage.json_types import JsonView
from winnow.tasks.engines.chat import Prompt
from winnow.tasks.engines.known_providers import OWN_TOKENS
from winnow.tasks.engines.protocol import GREEDY_BELOW, ModelRef, Sampling

NEWEST = 1
"""Version for new campaigns."""

KEY = "text_rules"
"""Identity key that stores the version."""

OWN_DRAWS = frozenset({"transformers"})
"""Providers for which Winnow draws the tokens itself."""

BEGINNINGS = ("<", "[", "{", "|", "\uff1c", "\uff5c")
"""Possible beginnings of a spelled-out first token, such as <s>, <|begin_of_text|> or [CLS]. The rule is part
of a key, which is computed before any tokenizer is loaded."""


def rules_of(identity: JsonView) -> int:
    """Version of a stored campaign's rules; 0 if it stores none."""
    return int(identity.get(KEY, 0))


def as_stored(rules: int, models: Iterable[ModelRef]) -> dict[str, int]:
    """Identity entry with the version of the rules; empty if they change no output."""
    return {KEY: rules} if rules and any(each.provider in OWN_TOKENS for each in models) else {}


def apply_rules(sampling: Sampling, model: ModelRef, prompt: Prompt, *, rules: int) -> Sampling:
    """Sampling settings for one output, with the rules that can change it."""
    if rules < 1 or model.provider not in OWN_TOKENS:
        return sampling
    draws = model.provider in OWN_DRAWS and not sampling.choices and sampling.temperature >= GREEDY_BELOW
    begins = not model.chat and isinstance(prompt, str) and prompt.startswith(BEGINNINGS)
    thinks = model.reasoning is not None and model.reasoning.parser == "think-tags" and not sampling.choices
    if not (draws or begins or thinks):
        return sampling
    return _with(_Itself(sampling), draws, begins, thinks)


class _Itself:
    """Settings compared by object identity, because 1 and 1.0 are equal but differ in keys."""

    __slots__ = ("sampling",)

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.sampling is other.sampling

    def __hash__(self) -> int:
        return id(self.sampling)


@lru_cache(maxsize=1024)  # engines group requests by the object with their settings
def _with(own: _Itself, draws: bool, begins: bool, thinks: bool) -> Sampling:
    return replace(own.sampling, gumbel=draws, one_bos=begins, think_tags=thinks)
