"""Sampling settings, and several outputs per example, in a campaign's file."""

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
    """A token's id, which is text as the key of a JSON object."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


TokenId = Annotated[int, BeforeValidator(_whole), Field(ge=0)]


class StructuredOutput(SpecModel):
    """The form of a whole output; the engine offers the model no token that would violate it."""

    regex: Text | None = None
    """An output that matches this pattern from its first character to its last."""
    choice: list[Text] | None = Field(default=None, min_length=1)
    """One of these texts."""
    json_schema: dict[str, JsonValue] | None = None
    """JSON that is valid under this schema."""
    grammar: Text | None = None
    """An output of this context-free grammar, in vLLM's EBNF."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if sum(getattr(self, kind) is not None for kind in KINDS) != 1:
            raise ValueError(f"give exactly one of {', '.join(KINDS)}")
        return self

    @property
    def structure(self) -> Structure:
        """The form for engines."""
        [(kind, value)] = [(kind, getattr(self, kind)) for kind in KINDS if getattr(self, kind) is not None]
        return Structure(kind, value if isinstance(value, str) else json.dumps(value))


class GenerateConfig(SpecModel):
    """Sampling settings."""

    temperature: float = Field(default=0.0, ge=0.0, le=10.0)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    top_k: int = Field(default=0, ge=0)
    """0 keeps the whole vocabulary."""
    max_tokens: int = Field(default=256, ge=1)
    stop_seqs: list[Text] = []
    min_p: float = Field(default=0.0, ge=0.0, le=1.0)
    """Exclude tokens less probable than this share of the most probable one; 0 keeps all."""
    presence_penalty: Penalty = 0.0
    """Subtracted from the logit of each token that the output already has."""
    frequency_penalty: Penalty = 0.0
    """Subtracted from a token's logit for each of its occurrences in the output."""
    repetition_penalty: float = Field(default=1.0, gt=0.0)
    """Divides positive logits of tokens that prompt or output already have, and multiplies negative ones; 1
    has no effect."""
    logit_bias: dict[TokenId, Annotated[float, Field(ge=-100.0, le=100.0)]] = {}
    """Token id -> number added to its logit."""
    stop_token_ids: list[TokenId] = []
    """Tokens that end an output, without being part of it."""
    structured_output: StructuredOutput | None = None
    logprobs: bool = False
    """Keep the log-probability of each generated token, for custom judges."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> JsonObject:
        """Omit newer keys with default values, so that identities from before these keys stay equal."""
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
        """The settings in the file, under the keys of a `GenerateConfig`."""
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
    """Named sampling settings that candidates are crossed with; the model's own settings fill in the rest."""

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
    """mean of the scores; score of the most frequent answer; pass@K: the best of K outputs; pass^K: the
    worst of K outputs; best-of: score of the output preferred by judge best-of."""

    @model_validator(mode="after")
    def _has_enough(self) -> Self:
        if (k := self.k) is not None and k > self.n:
            raise ValueError(f"{self.reduce} needs {k} texts or more, and n is {self.n}; raise n")
        return self

    @property
    def k(self) -> int | None:
        """Number of outputs from which the best or the worst is taken; None for the other reducers."""
        return int(self.reduce[5:]) if self.reduce.startswith("pass") else None


def _spelled_out(value: object) -> object:
    """A single number means this many outputs, and their mean."""
    if isinstance(value, (str, float, bool)):
        raise ValueError("must be a number of texts, or a mapping with n and reduce")
    if isinstance(value, int):
        return None if value == 1 else {"n": value}
    return value


Samples = Annotated[
    SamplesSpec | None, BeforeValidator(_spelled_out, json_schema_input_type=SamplesSpec | int | None)
]
