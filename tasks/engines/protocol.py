"""Protocol of engines: models, requests and answers as plain values.

Importing this module loads no model library.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import permutations
from math import isfinite
from typing import Literal, NamedTuple, Protocol, Self, TypeAlias, get_args, runtime_checkable

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.engines.chat import Message, Prompt, Reasoning
from winnow.tasks.engines.images import Image

JsonScalar = str | int | float | bool | None
JsonTree: TypeAlias = "JsonScalar | Sequence[JsonTree] | Mapping[str, JsonTree]"

SEED_LIMIT = 2**63  # seeds are signed 64-bit integers in both torch and vLLM
GREEDY_BELOW = 1e-5  # temperatures: dividing logits by less overflows float32; vLLM has the same threshold
TOKEN_LIMIT = 2**26  # above any context window; the sum of 32 canaries' counts fits a 32-bit column


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRef:
    """Everything needed to load a model."""

    name: str
    """Name of the model in messages and log files."""
    provider: str
    """Key into `tasks.engines.known_providers.PROVIDERS`, such as "vllm" or "transformers"."""
    model: str
    """Folder of a saved checkpoint, its id on the Hugging Face hub, or a server's name for the model."""
    revision: str | None = None
    """Commit, tag or branch on the hub; None means the default branch."""
    model_args: Mapping[str, JsonTree] = field(default_factory=dict)
    """Engine arguments, such as `dtype` and `max_model_len`; lists and mappings are allowed."""
    chat: bool = False
    """Whether a prompt is sent as messages through a chat template; a text becomes one user message."""
    chat_template: str | None = None
    """The chat template itself, in jinja2; None means the checkpoint's own."""
    chat_template_args: Mapping[str, JsonScalar] = field(default_factory=dict)
    """Extra variables of the chat template, such as `enable_thinking`."""
    model_base_url: str | None = None
    """URL of the server that runs the model, without a password; None means the provider's own URL."""
    api_key: str | None = None
    """Name of the environment variable that holds the server's key; None if the server needs none."""
    served_identity: str | None = None
    """Identity of the served model, as given by the user, independent of its address; None means that the
    server's URL identifies it."""
    lora: str | None = None
    """Folder of a LoRA adapter applied to the model; the model's engine serves all its adapters."""
    reasoning: Reasoning | None = None
    """Rule that separates reasoning from answers; None leaves outputs unchanged. Engines ignore it."""
    entry: str | None = None
    """For an agent: name of its entry in the campaign's file, before `params` were expanded."""
    params: Mapping[str, JsonScalar] | None = None
    """For an agent: the values of `params` in this combination; None for models."""
    setup: Mapping[str, JsonTree] = field(default_factory=dict)
    """For an agent: all keys of its entry; see `tasks.engines.agents`. Not stored with a candidate."""
    shows_images: bool = False
    """Whether requests can have images, which not every class of models of `transformers` reads."""


StructureKind = Literal["regex", "choice", "json_schema", "grammar"]


class Structure(NamedTuple):
    """Required form of a whole output; the engine excludes each token that would violate it."""

    kind: StructureKind
    value: str
    """The pattern or the grammar; the choices (a list) or the schema as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Sampling settings.

    The engine adds the bias to each token's logit, applies the penalties for repetition, frequency and
    presence, and divides by the temperature. Then `min_p`, `top_k` and `top_p` exclude tokens, in this order,
    as in vLLM.
    """

    temperature: float = 0.0
    """Temperature; 0 means greedy decoding."""
    top_p: float = 1.0
    """Draw from the smallest set of tokens whose probability reaches this, in (0, 1]."""
    top_k: int = 0
    """Draw from this many most probable tokens; 0 means all."""
    max_tokens: int = 256
    """Upper limit of new tokens; a model's context window may end a text sooner."""
    stop: tuple[str, ...] = ()
    """Stop strings: the output ends before the first one that is complete; on a tie, the first in this order.
    """
    choices: tuple[str, ...] = ()
    """Texts of which the output is exactly one; empty allows any text. `temperature`, `min_p`, `top_k` and
    `top_p` apply to the probabilities of the choices instead of those of tokens; other fields are ignored."""
    min_p: float = 0.0
    """Exclude tokens less probable than this share of the most probable one, in [0, 1]; 0 keeps all."""
    presence_penalty: float = 0.0
    """Number subtracted from the logit of each token that occurs in the text, in [-2, 2]."""
    frequency_penalty: float = 0.0
    """Number subtracted from a token's logit for each of its occurrences in the text, in [-2, 2]."""
    repetition_penalty: float = 1.0
    """Number that divides positive logits and multiplies negative logits of tokens that occur in the prompt
    or the text; above 0."""
    logit_bias: tuple[tuple[int, float], ...] = ()
    """Token ids, each once, with the number added to the token's logit, in [-100, 100]."""
    stop_token_ids: tuple[int, ...] = ()
    """Ids of tokens that end the text, in addition to the model's own; the text does not include them."""
    structure: Structure | None = None
    """Form that the output must have; None means any text."""
    logprobs: bool = False
    """Whether to return the log-probability of each generated token."""
    gumbel: bool = False
    """Whether to draw the token with the largest sum of logit and Gumbel noise, so that rounding hardly ever
    changes it; otherwise tokens are drawn from the cumulated probabilities. Only for engines whose tokens
    Winnow draws."""
    one_bos: bool = False
    """Whether to omit the tokenizer's first token if the prompt already spells it out."""
    think_tags: bool = False
    """Whether a text keeps the tags around a model's reasoning if they are special tokens."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature must be a finite number of at least 0, got {self.temperature}")
        if not 0.0 < self.top_p <= 1.0:
            raise ValueError(f"top_p must be above 0 and at most 1, got {self.top_p}")
        if self.top_k < 0:
            raise ValueError(f"top_k must be 0 (off) or more, got {self.top_k}")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens}")
        if isinstance(self.stop, str) or not all(self.stop):
            raise ValueError(f"stop must be a tuple of strings that are not empty, got {self.stop!r}")
        self._check_choices()
        self._check_rare()

    def as_json(self) -> JsonObject:
        """The settings as JSON values; fields from `min_p` on are included only if they are set."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: _as_lists(value)
            for name, value in values.items()
            if name in ALWAYS or value != getattr(PLAIN, name)
        }

    @classmethod
    def from_json(cls, values: JsonView) -> Self:
        """Read the result of `as_json`; raises `TypeError` or `ValueError` for anything else."""
        given = dict(values)
        for name in ("stop", "choices", "stop_token_ids"):
            given[name] = tuple(given.get(name, ()))
        given["logit_bias"] = tuple((token, bias) for token, bias in given.get("logit_bias", ()))
        if given.get("structure") is not None:
            given["structure"] = Structure(*given["structure"])
        return cls(**given)

    def _check_rare(self) -> None:
        if not 0.0 <= self.min_p <= 1.0:
            raise ValueError(f"min_p must be in [0, 1], got {self.min_p}")
        for name in ("presence_penalty", "frequency_penalty"):
            if not -2.0 <= getattr(self, name) <= 2.0:
                raise ValueError(f"{name} must be in [-2, 2], got {getattr(self, name)}")
        if not 0.0 < self.repetition_penalty < float("inf"):
            raise ValueError(f"repetition_penalty must be above 0, got {self.repetition_penalty}")
        if not all(token >= 0 and -100.0 <= bias <= 100.0 for token, bias in self.logit_bias):
            raise ValueError(
                f"logit_bias must be pairs of a token id and a number in [-100, 100], got {self.logit_bias}"
            )
        if not all(token >= 0 for token in self.stop_token_ids):
            raise ValueError(f"stop_token_ids must be 0 or more, got {self.stop_token_ids}")
        if self.structure is not None and (
            self.choices or self.structure.kind not in get_args(StructureKind)
        ):
            raise ValueError(f"structure must be of a known kind and without choices, got {self.structure!r}")

    def _check_choices(self) -> None:
        choices = self.choices
        if isinstance(choices, str) or not all(choices) or len(set(choices)) < len(choices):
            raise ValueError(f"choices must be a tuple of different, non-empty strings, got {choices!r}")
        if len(choices) == 1:
            raise ValueError(f"choices must be at least two texts, got {choices!r}")
        if starts := [pair for pair in permutations(choices, 2) if pair[1].startswith(pair[0])]:
            raise ValueError(f"choices must be such that none is the beginning of another, got {starts[0]!r}")


ALWAYS = frozenset({"temperature", "top_p", "top_k", "max_tokens", "stop", "choices"})
"""Fields of a `Sampling` that are always stored; the others are stored only if they differ from `PLAIN`."""

PLAIN = Sampling()


def _as_lists(value: object) -> object:
    return [_as_lists(each) for each in value] if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Request for one text, or for the log-likelihoods of given continuations."""

    prompt: str
    """The rendered prompt; untrusted, may hold any characters. For a chat, its messages as written by
    `as_stored`."""
    sampling: Sampling
    """Sampling settings."""
    seed: int
    """Seed of the request's randomness, in [0, 2**63), independent of other requests of the batch."""
    adapter: str | None = None
    """Folder of the LoRA adapter to use; None means the model without adapter."""
    continuations: tuple[str, ...] = ()
    """Texts whose log-likelihoods after the prompt are requested instead of an output. Nothing is drawn, so
    `sampling` and `seed` have no effect. Empty: the request is for an output."""
    is_greedy: bool = False
    """Whether to report as well whether greedy decoding would give the continuation; needs exactly one
    continuation."""
    messages: tuple[Message, ...] = ()
    """Messages to send instead of `prompt`; empty if `prompt` itself is sent."""
    images: tuple[Image, ...] = ()
    """Images shown before the text of the last user message; with images there are `messages`."""

    @property
    def asked(self) -> Prompt:
        """The prompt to send: `messages`, or `prompt` if there are no messages."""
        return self.messages or self.prompt

    def __post_init__(self) -> None:
        if not 0 <= self.seed < SEED_LIMIT:
            raise ValueError(f"seed must be in [0, 2**63), got {self.seed}")
        texts = self.continuations
        if isinstance(texts, str) or not all(texts) or len(set(texts)) < len(texts):
            raise ValueError(f"continuations must be a tuple of different, non-empty strings, got {texts!r}")
        if texts and self.sampling.choices:
            raise ValueError("a request has continuations or choices, not both")
        if self.is_greedy and len(texts) != 1:
            raise ValueError(f"is_greedy needs exactly one continuation, got {len(texts)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """Output of a request: a generated text, or scored choices or continuations."""

    text: str
    """Generated text without prompt and special tokens, cut before a stop string. Untrusted. With
    continuations: the most probable one, the first in a tie. If `is_greedy` was requested: the continuation
    if greedy decoding gives it, else empty."""
    finish_reason: str
    """"stop" (end of text or a stop string) or "length" (max_tokens or the context window)."""
    input_tokens: int
    """Number of tokens of the prompt as read by the model, and of the continuations, if any."""
    output_tokens: int
    """Number of generated tokens, including those of the stop string and the end of text; 0 for
    continuations."""
    seconds: float
    """Share of the engine's wall time, counted from when the request is sent or the model starts on it. At
    each moment the time is divided equally among the requests in progress, so that the sum over requests is
    the engine's time."""
    latency: float | None = None
    """Wall seconds from when the request was sent, or the model started on it, to its answer; other requests
    may run at the same time. For engines that generate whole batches: the time of the batch. None for choices
    and continuations, which may take several calls."""
    choice_logprobs: Mapping[str, float] | None = None
    """Log-probability of each choice or continuation, as defined in `tasks.engines.scoring`; None if neither
    was given."""
    reasoning: str | None = None
    """The model's reasoning, if a server returns it separately from the text. Untrusted."""
    token_logprobs: Sequence[float] | None = None
    """Natural log-probability of each generated token, including the end of the text, before biases,
    penalties and the temperature are applied; None if not requested or not returned by the engine."""
    is_greedy: bool | None = None
    """Whether no other token was more probable at any position of the continuation; None if not requested."""
    cached_tokens: int | None = None
    """Number of prompt tokens found in the engine's prefix cache and not computed again; None if the engine
    does not report this number or has no cache."""
    served_as: str | None = None
    """The server's name for the model that wrote the text, which may differ from the requested one; None if
    the server names no model. Untrusted."""
    reported: Mapping[str, float] | None = None
    """For an agent: the metrics and the `cost` that it reported for the run. Untrusted."""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ValueError(f"text must be a string, got {self.text!r}")
        if self.finish_reason not in ("stop", "length"):
            raise ValueError(f"finish_reason must be 'stop' or 'length', got {self.finish_reason!r}")
        for name, count in (("input_tokens", self.input_tokens), ("output_tokens", self.output_tokens)):
            if type(count) is not int or not 0 <= count < TOKEN_LIMIT:
                raise ValueError(f"{name} must be a whole number in [0, 2**26), got {count!r}")
        if (cached := self.cached_tokens) is not None and not (
            type(cached) is int and 0 <= cached <= self.input_tokens
        ):
            raise ValueError(f"cached_tokens must be a whole number, at most input_tokens, got {cached!r}")
        for name, value in (("seconds", self.seconds), ("latency", self.latency)):
            if value is not None and not (isfinite(value) and value >= 0.0):
                raise ValueError(f"{name} must be 0 or more, got {value!r}")
        for choice, logprob in (self.choice_logprobs or {}).items():
            if not isfinite(logprob):
                raise ValueError(f"the log-probability of {choice!r} must be finite, got {logprob!r}")
        for name, number in (self.reported or {}).items():
            if not isfinite(number):
                raise ValueError(f"the reported {name!r} must be finite, got {number!r}")
        for logprob in self.token_logprobs or ():
            if not isfinite(logprob):
                raise ValueError(f"the log-probability of a token must be finite, got {logprob!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationFailure:
    """Reason why a request has no output. Other requests of its batch are not affected."""

    reason: str
    """Machine-readable reason, in one word.

    * prompt: "not_rendered" (its template fails), "empty_prompt", "prompt_too_long", "no_room" (for the
      requested tokens), "bad_prompt" (cannot be encoded)
    * choices: "bad_choices"
    * engine: "refused", "no_logprobs" (or unusable ones)
    * model: "load_failed", "engine_failed", "bad_logits" (not numbers)
    * no output may be generated: "no_stored_text"
    """
    detail: str
    """One sentence for the user."""
    spent: Completion | None = None
    """Output that was generated and charged but is not used, for example because a filter ended it."""

    def __post_init__(self) -> None:
        if not (isinstance(self.reason, str) and self.reason and isinstance(self.detail, str)):
            raise ValueError(
                f"a failure needs a reason and a detail as text, got {self.reason!r}, {self.detail!r}"
            )


Answer = Completion | GenerationFailure


class BatchUnfinished(Exception):
    """An engine ended during a batch; holds the answers received before.

    Only engines whose answers are expensive raise it. The engine's `identity` can still be read.

    Args:
        answered: Answers by the position of their request in the batch; at least one.
        cause: The exception that the engine would have raised otherwise.
    """

    def __init__(self, answered: Mapping[int, Answer], cause: Exception) -> None:
        super().__init__(answered, cause)
        self.answered = answered
        self.cause = cause


class Engine(Protocol):
    """Interface of an engine: one model, loaded or still loading.

    The constructor may return before the model is loaded. One thread at a time uses an engine, unless it
    implements `JoinsBatches`. After an `EngineError` only `close` may be called.
    """

    @property
    def identity(self) -> str:
        """Software, version, device and precision, such as "vllm 0.32.0 cpu float32".

        Waits until the model is loaded; raises `EngineError`.
        """

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer every request; answer i belongs to request i.

        Raises:
            EngineLoadFailed: If the model cannot be loaded at all.
            EngineDied: If the engine ended during the batch.
            EngineTimeout: If loading or the batch took too long.
            BatchUnfinished: Instead of any of these, if some requests were answered before.
        """

    def close(self) -> None:
        """Free all memory before returning. Can be called repeatedly, and after an error."""


Came = Callable[[int, Answer], None]
"""Callback for each answer as soon as it is available.
It receives the request's position in its batch, and the answer."""


@runtime_checkable
class AnswersAsTheyCome(Protocol):
    """Interface of an engine that reports answers before their batch is complete, to be stored."""

    def generate_each(self, requests: Sequence[Request], came: Came) -> list[Answer]:
        """Answer like `Engine.generate`, and pass each complete answer to `came`.

        `came` is called for one answer at a time, from any thread.
        """


@runtime_checkable
class LoadsAside(Protocol):
    """Interface of an engine that loads in the background and measures the time."""

    @property
    def load_seconds(self) -> float:
        """Wall seconds until the engine was ready; valid only after `identity` has returned."""


@runtime_checkable
class JoinsBatches(Protocol):
    """Interface of an engine that several threads can call at once.

    New requests join those in progress. If the engine ends, it ends for all threads. One thread calls
    `close`, possibly while others wait for answers; their calls then raise `EngineDied`.
    """

    @property
    def joins(self) -> bool:
        """Whether requests can join; valid only after `identity` has returned."""


@runtime_checkable
class Sleeper(Protocol):
    """Interface of an engine that can free device memory and keep its weights in main memory."""

    @property
    def can_sleep(self) -> bool:
        """Whether the engine can sleep on its device; valid only after `identity` has returned."""

    def sleep(self) -> None:
        """Free the device's memory before returning; raises `EngineError`."""

    def wake(self) -> None:
        """Restore the state before `sleep`; raises `EngineError`."""
