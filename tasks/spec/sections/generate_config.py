"""Sampling settings, and the number of outputs per example, in a campaign's file."""

import json
from typing import Annotated, Self, get_args

from pydantic import (
    BeforeValidator,
    Field,
    JsonValue,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.protocol import Structure, StructureKind
from winnow.tasks.spec.sections.prompts import Name
from winnow.tasks.spec.spec_model import SpecModel, matching

Penalty = Annotated[float, Field(ge=-2.0, le=2.0)]

Text = Annotated[str, Field(min_length=1)]

KINDS: tuple[StructureKind, ...] = get_args(StructureKind)


def _whole(value: object) -> object:
    """Convert a token id that is text, as keys of a JSON object are, to a number."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


TokenId = Annotated[int, BeforeValidator(_whole), Field(ge=0)]


class StructuredOutput(SpecModel):
    """Required form of the whole output; the engine excludes tokens that violate it."""

    regex: Text | None = None
    """Regular expression that must match the whole output."""
    choice: list[Text] | None = Field(default=None, min_length=1)
    """Texts, one of which must be the output."""
    json_schema: dict[str, JsonValue] | None = None
    """JSON schema; the output is JSON that is valid under it."""
    grammar: Text | None = None
    """Context-free grammar of the output, in vLLM's EBNF."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if sum(getattr(self, kind) is not None for kind in KINDS) != 1:
            raise ValueError(f"give exactly one of {', '.join(KINDS)}")
        return self

    @property
    def structure(self) -> Structure:
        """The required form as engines receive it."""
        [(kind, value)] = [(kind, getattr(self, kind)) for kind in KINDS if getattr(self, kind) is not None]
        return Structure(kind, value if isinstance(value, str) else json.dumps(value))


class GenerateConfig(SpecModel):
    """Sampling settings of a model or a candidate."""

    temperature: float = Field(default=0.0, ge=0.0, le=10.0)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    top_k: int = Field(default=0, ge=0)
    """Number of most probable tokens to draw from; 0 keeps the whole vocabulary."""
    max_tokens: int = Field(default=256, ge=1)
    stop_seqs: list[Text] = []
    min_p: float = Field(default=0.0, ge=0.0, le=1.0)
    """Exclude tokens whose probability is below this share of the highest one; 0 keeps all tokens."""
    presence_penalty: Penalty = 0.0
    """Subtracted once from the logit of each token that the output already contains."""
    frequency_penalty: Penalty = 0.0
    """Subtracted from a token's logit for each time that the output already contains it."""
    repetition_penalty: float = Field(default=1.0, gt=0.0)
    """For tokens that the prompt or the output already contains: divides positive logits and multiplies
    negative ones. 1 has no effect.
    """
    logit_bias: dict[TokenId, Annotated[float, Field(ge=-100.0, le=100.0)]] = {}
    """Number to add to a token's logit, by token id."""
    stop_token_ids: list[TokenId] = []
    """Ids of tokens that end an output and are not part of it."""
    structured_output: StructuredOutput | None = None
    logprobs: bool = False
    """Keep the log-probability of each generated token, for custom judges."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> JsonObject:
        """Omit newer keys with default values.

        So identities that were stored before these keys existed stay equal.
        """
        written: JsonObject = write(self)
        if info.exclude_unset:
            return written
        fields = GenerateConfig.model_fields
        return {
            key: value
            for key, value in written.items()
            if key not in RARE or getattr(self, key) != fields[key].default
        }

    def given(self) -> JsonObject:
        """The settings that the file sets, by key of a `GenerateConfig`."""
        return {key: getattr(self, key) for key in self.model_fields_set & GenerateConfig.model_fields.keys()}


RARE = frozenset(
    {
        "min_p",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
        "logit_bias",
        "stop_token_ids",
        "structured_output",
        "logprobs",
    }
)
"""Keys that are stored only if set."""


class NamedGenerateConfig(GenerateConfig):
    """Named sampling settings that candidates are crossed with.

    Settings that are not given here come from the model's own `generate_config`.
    """

    name: Name


class SamplesSpec(SpecModel):
    """Number of outputs per candidate and example, and how their scores are reduced to one."""

    n: int = Field(ge=2, le=100)
    """Number of outputs, each drawn with its own seed."""
    reduce: Annotated[
        str,
        *matching(
            "(mean|majority|best-of|pass[@^][1-9][0-9]{0,2})",
            "must be mean, majority, best-of, pass@K or pass^K",
        ),
    ] = "mean"
    """mean: mean of the scores. majority: score of the most frequent answer. pass@K: the highest of K scores.
    pass^K: the lowest of K scores. best-of: score of the output that a judge of type best-of prefers.
    """

    @model_validator(mode="after")
    def _has_enough(self) -> Self:
        if (k := self.k) is not None and k > self.n:
            raise ValueError(f"{self.reduce} needs at least {k} outputs, and n is {self.n}; raise n")
        return self

    @property
    def k(self) -> int | None:
        """Number K of outputs for pass@K and pass^K; None for other reducers."""
        return int(self.reduce[5:]) if self.reduce.startswith("pass") else None


def _spelled_out(value: object) -> object:
    """Convert a plain number n to n outputs with their mean; 1 means a single output."""
    if isinstance(value, (str, float, bool)):
        raise ValueError("must be a number of outputs, or a mapping with n and reduce")
    if isinstance(value, int):
        return None if value == 1 else {"n": value}
    return value


Samples = Annotated[
    SamplesSpec | None, BeforeValidator(_spelled_out, json_schema_input_type=SamplesSpec | int | None)
]
