"""Settings for sampling texts, and for several texts for an example, as a campaign's file states them."""

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
    """A token's id, which is a text where it is the key of a JSON object."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


TokenId = Annotated[int, BeforeValidator(_whole), Field(ge=0)]


class StructuredOutput(SpecModel):
    """The form that a whole text must have; the engine offers the model no token that leads elsewhere."""

    regex: Text | None = None
    """A text that matches this pattern from its first character to its last."""
    choice: list[Text] | None = Field(default=None, min_length=1)
    """One of these texts."""
    json_schema: dict[str, JsonValue] | None = None
    """JSON that this schema allows."""
    grammar: Text | None = None
    """A text of this context-free grammar, in EBNF as vLLM reads it."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if sum(getattr(self, kind) is not None for kind in KINDS) != 1:
            raise ValueError(f"give one of {', '.join(KINDS)}")
        return self

    @property
    def structure(self) -> Structure:
        """The form as engines take it."""
        [(kind, value)] = [(kind, getattr(self, kind)) for kind in KINDS if getattr(self, kind) is not None]
        return Structure(kind, value if isinstance(value, str) else json.dumps(value))


class GenerateConfig(SpecModel):
    """Settings for sampling a text."""

    temperature: float = Field(default=0.0, ge=0.0, le=10.0)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    top_k: int = Field(default=0, ge=0)
    """0 keeps the whole vocabulary."""
    max_tokens: int = Field(default=256, ge=1)
    stop_seqs: list[Text] = []
    min_p: float = Field(default=0.0, ge=0.0, le=1.0)
    """Leaves out tokens that are less probable than this share of the most probable one; 0 keeps all."""
    presence_penalty: Penalty = 0.0
    """Taken from the logit of each token that the text has already."""
    frequency_penalty: Penalty = 0.0
    """Taken from a token's logit as often as the text has it already."""
    repetition_penalty: float = Field(default=1.0, gt=0.0)
    """Divides the logits above 0 of tokens that prompt or text have already, and multiplies those below 0;
    1 leaves them as they are."""
    logit_bias: dict[TokenId, Annotated[float, Field(ge=-100.0, le=100.0)]] = {}
    """Token id -> what is added to its logit."""
    stop_token_ids: list[TokenId] = []
    """Tokens that end a text, and are no part of it."""
    structured_output: StructuredOutput | None = None
    logprobs: bool = False
    """Keep the log-probability of each token that is written, for judges of one's own."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> JsonObject:
        """Leave out what is rarely set: without it, a campaign is the same as before there was such a key."""
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
        """The settings that the file gives, under the keys of a `GenerateConfig`."""
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
"""Keys that are stored only where they are set."""


class NamedGenerateConfig(GenerateConfig):
    """A way of sampling that candidates are crossed with; the model's own settings fill in the rest."""

    name: Name


class SamplesSpec(SpecModel):
    """The number of texts that a candidate writes for each example, and how their scores become one."""

    n: int = Field(ge=2, le=100)
    """Texts, each drawn with a seed of its own."""
    reduce: Annotated[
        str,
        *matching(
            "(mean|majority|best-of|pass@[1-9][0-9]{0,2})", "must be mean, majority, best-of or pass@K"
        ),
    ] = "mean"
    """mean of the scores; score of the answer that most texts give; pass@K: of K texts, the best; best-of:
    score of the text that judge best-of prefers."""

    @model_validator(mode="after")
    def _has_enough(self) -> Self:
        if (k := self.k) is not None and k > self.n:
            raise ValueError(f"{self.reduce} needs {k} texts or more, and n is {self.n}; raise n")
        return self

    @property
    def k(self) -> int | None:
        """Number of texts of which the best is taken; None for the other reducers."""
        return int(self.reduce.removeprefix("pass@")) if self.reduce.startswith("pass@") else None


def _spelled_out(value: object) -> object:
    """A number alone stands for so many texts, and their mean."""
    if isinstance(value, (str, float, bool)):
        raise ValueError("must be a number of texts, or a mapping with n and reduce")
    if isinstance(value, int):
        return None if value == 1 else {"n": value}
    return value


Samples = Annotated[
    SamplesSpec | None, BeforeValidator(_spelled_out, json_schema_input_type=SamplesSpec | int | None)
]
