"""Log-likelihood scoring of given texts, for engines with an available tokenizer.

A request gives choices, one of which is drawn, or continuations, each of which is scored to its last token.

**Choices.** A model that must answer with one of a few texts need not generate: its engine returns the next
token's log-probabilities at each position where the texts diverge. Choice i has the tokens t_i1, t_i2, ...; s
is the length of the beginning that all choices share, e_i the length of the shortest beginning that choice i
shares with no other. Its log-probability is

    sum over k = s+1 ... e_i of log P(t_ik | prompt, t_i1 ... t_i(k-1)),

that is, up to and including the first token that distinguishes it, given the shared beginning. A choice of
one token has its plain log-probability. The remaining probability belongs to all other continuations. A
choice is encoded by itself, not together with the prompt: if the prompt's own words put a space before it,
the choice includes that space.

**Continuations.** The log-likelihood of a continuation with the tokens t_1 ... t_n after a prompt x is

    sum over k = 1 ... n of log P(t_k | x, t_1 ... t_(k-1)).

They are scored to their last token, as lm-eval scores those of multiple_choice and loglikelihood tasks, so
one continuation may be the beginning of another. Prompt and continuation are encoded together and split as in
lm-eval: the first tokens, as many as the prompt has alone, belong to the prompt. White space at the prompt's
end is moved to the continuation first, because most tokenizers put a space into the token of the next word.

Greedy decoding gives a continuation if each of its tokens is at least as probable as any other at its
position. That is lm-eval's `is_greedy`, except that lm-eval accepts only the lower of two token ids that are
equally probable to the last digit.

All logarithms are natural, of the model's own probabilities before temperature, top-k and top-p.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from winnow.tasks.engines.chat import Prompt, words_of
from winnow.tasks.engines.errors import one_sentence
from winnow.tasks.engines.next_token import choose_token
from winnow.tasks.engines.probabilities import PLACEHOLDER, why_unusable
from winnow.tasks.engines.prompt_tokens import PromptEncoder
from winnow.tasks.engines.protocol import Answer, Completion, GenerationFailure, ModelRef, Request

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Tokens = tuple[int, ...]


class Tokenizer(Protocol):
    """The part of a Hugging Face tokenizer's interface that is needed here."""

    @property
    def unk_token_id(self) -> int | None:
        """Id of the token for text outside the vocabulary; None if the model has no such token."""
        ...

    def __call__(self, text: str, *, add_special_tokens: bool) -> Mapping[str, Sequence[int]]:
        """Token ids of the text, under the key `input_ids`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """Position at which choices diverge, or before they are all distinguished."""

    prefix: Tokens
    """The tokens between the prompt and this position."""
    options: Tokens
    """The next tokens whose log-probabilities are needed, each once."""


class ChoiceTree:
    """Tree of encoded choices, with the positions at which they diverge.

    Args:
        tokens: Token ids of each of two or more choices; none is the beginning of another.
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
        """Log-probability of each choice.

        `at_forks` has the log-probabilities of the options at each of `forks`, in the same order.
        """
        told = {fork.prefix: answer for fork, answer in zip(self.forks, at_forks, strict=True)}
        return {
            choice: sum(told[prefix][token] for prefix, token in steps)
            for choice, steps in self._steps.items()
        }


class ChoiceEncoder:
    """Encode choices as a `ChoiceTree`, or return why the model cannot choose between them.

    Args:
        tokenizer: The model's tokenizer.
        vocabulary: Number of token ids of the model.
    """

    def __init__(self, tokenizer: Tokenizer, *, vocabulary: int) -> None:
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._known: dict[tuple[str, ...], ChoiceTree | GenerationFailure] = {}

    def __call__(self, choices: tuple[str, ...]) -> ChoiceTree | GenerationFailure:
        """The tree of these choices; cached after the first encoding."""
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
                    return _bad(f"the model's tokens are the same for choices {choice!r} and {other!r}")
        return ChoiceTree(tokens)


def _distinct_at(ids: Tokens, all_ids: Iterable[Tokens]) -> int:
    """Length of the shortest prefix of `ids` that no other choice has."""
    return 1 + max(_shared(ids, other) for other in all_ids if other != ids)


def _shared(first: Tokens, second: Tokens) -> int:
    """Length of the common prefix of two token sequences."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((k for k, (a, b) in pairs if a != b), min(len(first), len(second)))


def _bad(detail: str) -> GenerationFailure:
    return GenerationFailure(reason="bad_choices", detail=detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextToken:
    """Question to a model: the probabilities of some tokens at the next position."""

    ids: list[int]
    """Token ids before that position."""
    options: tuple[int, ...]
    """Token ids whose probabilities are requested."""


class OptionLogprobs(NamedTuple):
    """A model's answer to a `NextToken` question."""

    logprobs: Mapping[int, float]
    """Natural log-probability of each option before temperature, top-k and top-p."""
    cached_tokens: int | None = None
    """Number of the question's tokens in the engine's prefix cache; None if not reported."""


TokenLogprobs = OptionLogprobs | GenerationFailure
"""A model's answer to a `NextToken` question, or the reason why it has none."""

AskNext = Callable[[Sequence[NextToken]], Sequence[TokenLogprobs]]
"""Callback that answers questions about the next token; answer i belongs to question i."""


class Chooser:
    """Answer requests that give choices, by log-probabilities of next tokens.

    Args:
        encode: Encodes choices.
        max_model_len: Context window in tokens.
        ask: Answers questions about the next token.
    """

    def __init__(self, encode: ChoiceEncoder, *, max_model_len: int, ask: AskNext) -> None:
        self._encode = encode
        self._max_model_len = max_model_len
        self._ask = ask

    def answer(self, prompts: Sequence[list[int]], requests: Sequence[Request]) -> list[Answer]:
        """Answer requests that give choices; answer i belongs to request i.

        `prompts` has the token ids of each request's prompt.
        """
        if not requests:
            return []
        started = time.perf_counter()
        trees = [self._tree(ids, request) for ids, request in zip(prompts, requests, strict=True)]
        told = iter(self._ask(_questions(prompts, trees)))
        share = (time.perf_counter() - started) / len(requests)
        return [
            _choice_answer(tree, list(islice(told, len(tree.forks))), len(ids), request, share)
            if isinstance(tree, ChoiceTree)
            else tree
            for tree, ids, request in zip(trees, prompts, requests, strict=True)
        ]

    def _tree(self, ids: list[int], request: Request) -> ChoiceTree | GenerationFailure:
        tree = self._encode(request.sampling.choices)
        if isinstance(tree, GenerationFailure):
            return tree
        length = len(ids) + max(len(fork.prefix) for fork in tree.forks)
        if length >= self._max_model_len:
            return GenerationFailure(
                reason="prompt_too_long",
                detail=f"the prompt and the choices have {length} tokens, which leaves no room for one more "
                f"in max_model_len {self._max_model_len}",
            )
        return tree


def _questions(
    prompts: Sequence[list[int]], trees: Sequence[ChoiceTree | GenerationFailure]
) -> list[NextToken]:
    return [
        NextToken(ids=[*ids, *fork.prefix], options=fork.options)
        for ids, tree in zip(prompts, trees, strict=True)
        if isinstance(tree, ChoiceTree)
        for fork in tree.forks
    ]


def _choice_answer(
    tree: ChoiceTree, told: Sequence[TokenLogprobs], input_tokens: int, request: Request, seconds: float
) -> Answer:
    known: list[OptionLogprobs] = []
    for fork, answer in zip(tree.forks, told, strict=True):
        if isinstance(answer, GenerationFailure):
            return answer
        if why := why_unusable(answer.logprobs, fork.options):
            return no_logprobs(f"for the next token the engine returned {why}")
        known.append(answer)
    logprobs = tree.logprobs([each.logprobs for each in known])
    values = np.array(list(logprobs.values()))  # (C,)
    chosen = choose_token(values, request.sampling, np.random.default_rng(request.seed))
    text = list(logprobs)[chosen]
    return Completion(
        text=text,
        finish_reason="stop",
        input_tokens=input_tokens,
        output_tokens=tree.lengths[text],
        seconds=seconds,
        choice_logprobs=logprobs,
        cached_tokens=_cached(known, input_tokens),
    )


def _cached(told: Sequence[OptionLogprobs], input_tokens: int) -> int | None:
    """Number of prompt tokens that were cached before the first question.

    The first question caches the whole prompt for the others, so the minimum over the answers counts. None if
    an answer does not report its cached tokens.
    """
    known = [each.cached_tokens for each in told if each.cached_tokens is not None]
    return min(*known, input_tokens) if len(known) == len(told) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """A prompt followed by a continuation, as token ids."""

    ids: list[int]
    """Token ids of prompt and continuation."""
    start: int
    """Position of the continuation's first token; at least 1 and before the end."""


class ContinuationEncoder:
    """Encode a prompt with a continuation, or return why the model cannot read them.

    An empty prompt becomes the tokenizer's begin-of-text token, or its end-of-text token if it has no other.
    A prompt that spells out that token gets no second one. A chat's prompt is put into the chat template.

    The continuation of an empty prompt may be longer than the context window. It is then split into pieces,
    and each of its tokens is scored in one of them; see `windows`.

    Args:
        tokenizer: A Hugging Face tokenizer.
        prompts: The encoder of prompts with this tokenizer.
        chat: Whether that encoder uses the chat template.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", prompts: PromptEncoder, *, chat: bool) -> None:
        first = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
        self._tokenizer = tokenizer
        self._prompts = prompts
        self._first = first if isinstance(first, int) else None
        self._spelled = "" if chat or self._first is None else str(tokenizer.decode([self._first]))

    def __call__(self, prompt: Prompt, continuation: str) -> list[Continued] | GenerationFailure:
        """Token ids of prompt and continuation, at least one each, in pieces that fit the window."""
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
    """Split a text into pieces, such that each token after the first is scored in one.

    Each piece begins with the last token of the piece before. The last of several pieces begins earlier, so
    that it is as long as the others. This is lm-eval's `loglikelihood_rolling` with a window of `longest` - 1
    tokens.

    Args:
        ids: Token ids, two or more.
        longest: Maximum number of tokens of a piece, two or more.
    """
    pieces = [Continued(ids=ids[:longest], start=1)]
    for scored in range(longest, len(ids), longest - 1):  # tokens of the pieces so far
        end = min(scored + longest - 1, len(ids))
        begin = end - longest
        pieces.append(Continued(ids=ids[begin:end], start=scored - begin))
    return pieces


def without_end_spaces(prompt: str, continuation: str) -> tuple[str, str]:
    """Move white space from the end of the prompt to the beginning of the continuation."""
    bare = prompt.rstrip()
    return bare, prompt[len(bare) :] + continuation


class KnownTokens(NamedTuple):
    """Log-probabilities of a continuation's tokens, or of whole continuations."""

    logprobs: Sequence[float]
    """Natural log-probability of each token or continuation."""
    is_greedy: bool
    """Whether no other token is more probable at any position."""
    cached_tokens: int | None = None
    """Number of the prompt's tokens in the engine's prefix cache; None if not reported."""


ContinuationLogprobs = KnownTokens | GenerationFailure
"""An engine's answer about whole continuations, or the reason why it has none."""

AskAllTokens = Callable[[Sequence[Continued]], Sequence[ContinuationLogprobs]]
"""Callback that returns the log-probabilities of each continuation's tokens; answer i belongs to question i.
"""

ROUNDING = 0.01
"""Tolerance for log-probabilities above 0, because some servers round to two digits."""


class Likelihoods:
    """Answer requests that give continuations, by their log-likelihoods.

    Args:
        encode: Encodes a prompt with a continuation.
        ask_next: Answers questions about the next token. If each continuation of a prompt is one token, one
            question covers all.
        ask_all: Returns the log-probabilities of the tokens of each continuation.
    """

    def __init__(self, encode: ContinuationEncoder, *, ask_next: AskNext, ask_all: AskAllTokens) -> None:
        self._encode = encode
        self._ask_next = ask_next
        self._ask_all = ask_all

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer requests that give continuations; answer i belongs to request i."""
        if not requests:
            return []
        started = time.perf_counter()
        encoded = [self._encoded(request) for request in requests]
        known = {i: each for i, each in enumerate(encoded) if isinstance(each, list)}
        # A question about the next token does not reveal which token is the most probable one.
        short = {i: each for i, each in known.items() if _are_next_tokens(each) and not requests[i].is_greedy}
        long = {i: each for i, each in known.items() if i not in short}
        told = dict(zip(short, self._of_next_tokens(list(short.values())), strict=True))
        told |= dict(zip(long, self._of_all_tokens(list(long.values())), strict=True))
        share = (time.perf_counter() - started) / len(requests)
        return [
            each
            if isinstance(each, GenerationFailure)
            else likelihood_answer(request, told[i], _tokens_read(each, shared=i in short), share)
            for i, (request, each) in enumerate(zip(requests, encoded, strict=True))
        ]

    def _encoded(self, request: Request) -> list[list[Continued]] | GenerationFailure:
        found: list[list[Continued]] = []
        for continuation in request.continuations:
            each = self._encode(request.asked, continuation)
            if isinstance(each, GenerationFailure):
                return each
            found.append(each)
        return found

    def _of_next_tokens(self, groups: Sequence[list[list[Continued]]]) -> Iterator[ContinuationLogprobs]:
        questions = [
            NextToken(
                ids=group[0][0].ids[:-1], options=tuple(dict.fromkeys(each.ids[-1] for [each] in group))
            )
            for group in groups
        ]
        for group, question, told in zip(groups, questions, self._ask_next(questions), strict=True):
            if isinstance(told, GenerationFailure):
                yield told
            elif why := why_unusable(told.logprobs, question.options):
                yield no_logprobs(f"for the next token the engine returned {why}")
            else:
                logprobs = [told.logprobs[each.ids[-1]] for [each] in group]
                yield KnownTokens(logprobs, is_greedy=False, cached_tokens=told.cached_tokens)

    def _of_all_tokens(self, groups: Sequence[list[list[Continued]]]) -> Iterator[ContinuationLogprobs]:
        told = iter(self._ask_all([each for group in groups for pieces in group for each in pieces]))
        for group in groups:
            yield _sums([[next(told) for _ in pieces] for pieces in group])


def likelihood_answer(
    request: Request, told: ContinuationLogprobs, input_tokens: int, seconds: float
) -> Answer:
    """Answer to a request, from the log-likelihoods of its continuations."""
    if isinstance(told, GenerationFailure):
        return told
    text = request.continuations[int(np.argmax(told.logprobs))]
    return Completion(
        text=text if told.is_greedy or not request.is_greedy else "",
        finish_reason="stop",
        input_tokens=input_tokens,
        output_tokens=0,
        seconds=seconds,
        choice_logprobs=dict(zip(request.continuations, told.logprobs, strict=True)),
        is_greedy=told.is_greedy if request.is_greedy else None,
        cached_tokens=told.cached_tokens,
    )


def no_logprobs(detail: str) -> GenerationFailure:
    """Failure of a request for which the engine returned no usable log-probabilities."""
    return GenerationFailure(reason="no_logprobs", detail=detail)


def likelihood(logprobs: Sequence[float]) -> float | None:
    """Sum of the tokens' log-probabilities; None if any of them is unusable, such as NaN."""
    if all(PLACEHOLDER < each <= ROUNDING for each in logprobs):  # NaN is in no interval
        return math.fsum(logprobs)
    return None


def _sums(told: Sequence[Sequence[ContinuationLogprobs]]) -> ContinuationLogprobs:
    """Log-likelihood of each continuation, from the log-probabilities of its pieces."""
    sums: list[float] = []
    is_greedy = True
    for pieces in told:
        logprobs: list[float] = []
        for each in pieces:
            if isinstance(each, GenerationFailure):
                return each
            logprobs += each.logprobs
            is_greedy = is_greedy and each.is_greedy
        if (found := likelihood(logprobs)) is None:
            return no_logprobs(f"for a continuation the engine returned the log-probabilities {logprobs[:8]}")
        sums.append(found)
    return KnownTokens(sums, is_greedy)


def _are_next_tokens(group: Sequence[Sequence[Continued]]) -> bool:
    first = group[0][0].ids[:-1]
    return all(
        len(pieces) == 1 and pieces[0].start == len(first) and pieces[0].ids[:-1] == first for pieces in group
    )


def _tokens_read(group: Sequence[Sequence[Continued]], *, shared: bool) -> int:
    """Number of input tokens; the prompt counts once if one question covers all continuations."""
    if shared:
        return len(group[0][0].ids) + len(group) - 1
    return sum(len(each.ids) for pieces in group for each in pieces)


class Scorer:
    """Answer an engine's requests: choices, continuations, and texts through a callback.

    Args:
        tokenizer: A Hugging Face tokenizer.
        model: Defines whether prompts are put into its chat template.
        vocabulary: Number of token ids of the model.
        max_model_len: Context window in tokens.
        ask_next: See `Likelihoods`.
        ask_all: See `Likelihoods`.

    Raises:
        EngineLoadFailed: If the model is a chat model and its tokenizer has no chat template.
    """

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        model: ModelRef,
        *,
        vocabulary: int,
        max_model_len: int,
        ask_next: AskNext,
        ask_all: AskAllTokens,
    ) -> None:
        self.encode = PromptEncoder(tokenizer, model, vocabulary=vocabulary, max_model_len=max_model_len)
        encode_choices = ChoiceEncoder(tokenizer, vocabulary=vocabulary)
        self._chooser = Chooser(encode_choices, max_model_len=max_model_len, ask=ask_next)
        encode_both = ContinuationEncoder(tokenizer, self.encode, chat=model.chat)
        self._likelihoods = Likelihoods(encode_both, ask_next=ask_next, ask_all=ask_all)

    def answer(
        self,
        requests: Sequence[Request],
        *,
        write: Callable[[Sequence[list[int]], Sequence[Request]], Sequence[Answer]],
        why_unable: Callable[[Request], GenerationFailure | None] = lambda request: None,
    ) -> list[Answer]:
        """Answer every request; answer i belongs to request i.

        Requests of one kind are processed in order.

        Args:
            requests: Requests of any kind.
            write: Answers requests for generation, with encoded prompts.
            why_unable: Returns why the engine cannot answer a request without continuations, or None.
        """
        answers: dict[int, Answer] = {}
        writing: dict[int, list[int]] = {}
        choosing: dict[int, list[int]] = {}
        continuing = [i for i, request in enumerate(requests) if request.continuations]
        for i, request in enumerate(requests):
            if request.continuations:
                continue
            ids = why_unable(request) or self.encode(request.asked, one_bos=request.sampling.one_bos)
            if isinstance(ids, GenerationFailure):
                answers[i] = ids
            else:
                (choosing if request.sampling.choices else writing)[i] = ids
        written = write(list(writing.values()), [requests[i] for i in writing])
        answers.update(zip(writing, written, strict=True))
        chosen = self._chooser.answer(list(choosing.values()), [requests[i] for i in choosing])
        answers.update(zip(choosing, chosen, strict=True))
        scored = self._likelihoods.answer([requests[i] for i in continuing])
        answers.update(zip(continuing, scored, strict=True))
        return [answers[i] for i in range(len(requests))]
