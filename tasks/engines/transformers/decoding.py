"""State of one batch while `transformers` decodes it.

B is the number of requests, V the size of the vocabulary, S the length of the sequences so far.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import torch
from transformers import LogitsProcessor, PreTrainedTokenizerBase, StoppingCriteria

from winnow.tasks.engines.chat import TAGS, special_tokens
from winnow.tasks.engines.next_token import Row, choose_token, shifted_logits
from winnow.tasks.engines.protocol import GenerationFailure, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRow:
    """Output of a request that has ended."""

    text: str
    """The generated text, cut before a stop string."""
    finish_reason: str
    """"stop" or "length"."""
    length: int
    """Number of generated tokens, including the last one."""
    logprobs: Sequence[float] | None
    """Log-probability of each generated token; None if not requested."""


NOT_A_NUMBER = GenerationFailure(
    reason="bad_logits",
    detail="the model's logits are not numbers (NaN or infinite); its weights or its dtype are broken",
)


class Decoding:
    """Draw the next token of each request, and detect when a request has ended.

    Args:
        tokenizer: Decodes token ids.
        requests: The batch of B requests.
        prompts: Token ids of each prompt, without padding.
        room: Maximum number of new tokens of each request, shape (B,).
        ends: Token ids that end a text.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        requests: Sequence[Request],
        prompts: Sequence[Sequence[int]],
        room: Sequence[int],
        ends: frozenset[int],
    ) -> None:
        self._tokenizer = tokenizer
        self._requests = requests
        self._prompts = [np.unique(prompt) for prompt in prompts]
        self._room = room
        self._ends = ends
        self._generators = [np.random.default_rng(request.seed) for request in requests]
        self._tokens: list[list[int]] = [[] for _ in requests]
        self._logprobs: list[list[float]] = [[] for _ in requests]
        self._finished: list[FinishedRow | GenerationFailure | None] = [None] * len(requests)
        self._hidden: frozenset[int] = frozenset()
        if any(request.sampling.think_tags for request in requests):
            special = special_tokens(tokenizer)
            self._hidden = frozenset(id_ for id_, token in special.items() if token not in TAGS)

    def draw(self, logits: torch.Tensor) -> list[int]:
        """Next token of every request from logits of shape (B, V) on the CPU; 0 for ended requests.

        A request with invalid logits ends with a failure. Minus infinity excludes a token, but NaN, plus
        infinity, or only minus infinity are not a distribution.
        """
        for i, highest in enumerate(logits.amax(dim=-1).tolist()):  # NaN if a logit is NaN
            if self._finished[i] is None and not math.isfinite(highest):
                self._finished[i] = NOT_A_NUMBER
        rows = logits.float().numpy()
        return [0 if done else self._drawn(i, rows[i]) for i, done in enumerate(self._finished)]

    def _drawn(self, i: int, logits: Row) -> int:
        sampling = self._requests[i].sampling
        shifted = shifted_logits(logits, sampling, self._prompts[i], self._tokens[i])
        token = choose_token(shifted, sampling, self._generators[i])
        if sampling.logprobs:
            self._logprobs[i].append(float(logits[token] - np.logaddexp.reduce(logits.astype(np.float64))))
        return token

    def append(self, tokens: Sequence[int]) -> list[bool]:
        """Add the newest token of every request; return whether each has ended, shape (B,)."""
        for i, token in enumerate(tokens):
            if self._finished[i] is None:
                self._tokens[i].append(token)
                self._finished[i] = self._ending(i)
        return [row is not None for row in self._finished]

    def finished_rows(self) -> list[FinishedRow | GenerationFailure]:
        """Output of each ended request, or the reason why it has none, shape (B,)."""
        return [row for row in self._finished if row is not None]

    def _ending(self, i: int) -> FinishedRow | None:
        tokens = self._tokens[i]
        if tokens[-1] in self._ends or tokens[-1] in self._requests[i].sampling.stop_token_ids:
            return self._row(i, self._text(i, tokens[:-1]), "stop")
        if stop := self._requests[i].sampling.stop:
            text = self._text(i, tokens)
            if found := [(at, at + len(s)) for s in stop if (at := text.find(s)) >= 0]:
                start, _ = min(found, key=itemgetter(1))
                return self._row(i, text[:start], "stop")
        if len(tokens) >= self._room[i]:
            return self._row(i, self._text(i, tokens), "length")
        return None

    def _row(self, i: int, text: str, finish_reason: str) -> FinishedRow:
        logprobs = self._logprobs[i] if self._requests[i].sampling.logprobs else None
        length = len(self._tokens[i])
        return FinishedRow(text=text, finish_reason=finish_reason, length=length, logprobs=logprobs)

    def _text(self, i: int, tokens: list[int]) -> str:
        keeps_tags = self._requests[i].sampling.think_tags
        if keeps_tags:
            tokens = [token for token in tokens if token not in self._hidden]
        text = self._tokenizer.decode(
            tokens, skip_special_tokens=not keeps_tags, clean_up_tokenization_spaces=False
        )
        return str(text)


class OwnDraws(LogitsProcessor):
    """Logits processor that leaves only the token drawn by each request's own generator."""

    def __init__(self, decoding: Decoding) -> None:
        self._decoding = decoding

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores of shape (B, V): 0 for the drawn token, minus infinity for all others."""
        drawn = torch.tensor(self._decoding.draw(scores.cpu()), device=scores.device)  # (B,)
        return torch.full_like(scores, -torch.inf).scatter_(1, drawn[:, None], 0.0)


class FinishedRows(StoppingCriteria):
    """Stopping criterion for `generate`: the rows that need no more tokens."""

    def __init__(self, decoding: Decoding) -> None:
        self._decoding = decoding

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor | None, **_: object) -> torch.Tensor:
        """Whether each row has ended, shape (B,), from sequences of shape (B, S)."""
        done = self._decoding.append(input_ids[:, -1].tolist())
        return torch.tensor(done, device=input_ids.device)


class NextTokenLogprobs(LogitsProcessor):
    """Logits processor that records the next token's log-probabilities, for one decoding step.

    The scores are unchanged.
    """

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Record the log-probabilities of scores of shape (B, V)."""
        self.values = scores.float().log_softmax(dim=-1).cpu()  # (B, V)
        return scores
