"""The tokens that tell a fixed set of texts apart, and the probability of each text.

A model that is to answer with one of a few texts need not generate: it is asked for the next token's
log-probabilities wherever the texts part ways. Choice i is the tokens t_i1, t_i2, ...; s is the length of
the beginning that all choices share, e_i the length of the shortest beginning that choice i shares with
no other. Its log-probability is

    sum over k = s+1 ... e_i of log P(t_ik | prompt, t_i1 ... t_i(k-1)),

that is, up to and including the first token that distinguishes it, given the shared beginning. Choices of
one token each have their plain token log-probabilities. What is left to 1 is all other continuations.

A choice is encoded by itself, not together with the prompt: a choice that follows a space in the prompt's
own words is given with that space.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from winnow.tasks.engines.errors import one_sentence
from winnow.tasks.engines.protocol import GenerationFailure

Tokens = tuple[int, ...]


class Tokenizer(Protocol):
    """A tokenizer as far as it is needed here, as those of Hugging Face are."""

    @property
    def unk_token_id(self) -> int | None:
        """Id of the token for text that the model has no token for; None where there is none."""
        ...

    def __call__(self, text: str, *, add_special_tokens: bool) -> Mapping[str, Sequence[int]]:
        """The text's token ids, as `input_ids`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A place at which choices part ways, or go on before they do."""

    prefix: Tokens
    """The tokens between the prompt and this place."""
    options: Tokens
    """The next tokens whose log-probabilities are needed, each once."""


class ChoiceTree:
    """The forks of a set of encoded choices.

    Args:
        tokens: Token ids of each choice, of two or more; none is the beginning of another.
    """

    def __init__(self, tokens: Mapping[str, Tokens]) -> None:
        self.lengths = {choice: len(ids) for choice, ids in tokens.items()}
        first, *others = tokens.values()
        shared = min(_shared(first, other) for other in others)
        self._steps = {
            choice: [(ids[:k], ids[k]) for k in range(shared, _distinct_at(ids, tokens.values()))]
            for choice, ids in tokens.items()
        }
        options: dict[Tokens, dict[int, None]] = {}
        for steps in self._steps.values():
            for prefix, token in steps:
                options.setdefault(prefix, {})[token] = None
        self.forks = tuple(Fork(prefix=prefix, options=tuple(next_)) for prefix, next_ in options.items())

    def logprobs(self, at_forks: Sequence[Mapping[int, float]]) -> dict[str, float]:
        """The log-probability of each choice, from those of the options at each of `forks`, in order."""
        told = {fork.prefix: answer for fork, answer in zip(self.forks, at_forks, strict=True)}
        return {
            choice: sum(told[prefix][token] for prefix, token in steps)
            for choice, steps in self._steps.items()
        }


class ChoiceEncoder:
    """Turns choices into a `ChoiceTree`, or into the reason why the model cannot choose between them.

    Args:
        tokenizer: The model's.
        vocabulary: Number of token ids that the weights know.
    """

    def __init__(self, tokenizer: Tokenizer, *, vocabulary: int) -> None:
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._known: dict[tuple[str, ...], ChoiceTree | GenerationFailure] = {}

    def __call__(self, choices: tuple[str, ...]) -> ChoiceTree | GenerationFailure:
        """The tree of these choices; encoded once, however often it is asked for."""
        if choices not in self._known:
            self._known[choices] = self._encode(choices)
        return self._known[choices]

    def _encode(self, choices: tuple[str, ...]) -> ChoiceTree | GenerationFailure:
        tokens: dict[str, Tokens] = {}
        for choice in choices:
            try:
                ids = tuple(self._tokenizer(choice, add_special_tokens=False)["input_ids"])
            except Exception as error:  # tokenizers run code of the checkpoint's authors
                return _bad(f"the choice {choice!r} cannot be encoded: {one_sentence(error)}")
            if not ids or self._tokenizer.unk_token_id in ids or max(ids) >= self._vocabulary:
                return _bad(f"the model has no tokens for the choice {choice!r}; choose other labels")
            tokens[choice] = ids
        for choice, ids in tokens.items():
            for other, longer in tokens.items():
                if choice != other and longer[: len(ids)] == ids:
                    return _bad(f"the model's tokens do not tell the choices {choice!r} and {other!r} apart")
        return ChoiceTree(tokens)


def _distinct_at(ids: Tokens, all_ids: Iterable[Tokens]) -> int:
    """Length of the shortest beginning of `ids` that none of the others has."""
    return 1 + max(_shared(ids, other) for other in all_ids if other != ids)


def _shared(first: Tokens, second: Tokens) -> int:
    """Length of the beginning that both have."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((k for k, (a, b) in pairs if a != b), min(len(first), len(second)))


def _bad(detail: str) -> GenerationFailure:
    return GenerationFailure(reason="bad_choices", detail=detail)
