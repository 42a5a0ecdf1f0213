"""Sections for campaigns of one objective only: groups, constraints, certificates, and the embedder."""

import sys
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from winnow.tasks.engines.known_providers import BUILT_IN_EMBEDDERS
from winnow.tasks.spec.sections.models import ModelSpec
from winnow.tasks.spec.sections.prompts import Name
from winnow.tasks.spec.spec_model import FilePath, JsonScalar, SpecModel

SHARED = ("equal", "size")


def _weights(value: object) -> object:
    """Check the weights with one message for all types of a union; in YAML a name may be a number."""
    if value in SHARED:
        return value
    if not isinstance(value, Mapping) or not value or not all(map(_is_weight, value.values())):
        raise ValueError("must be equal, size, or a number above 0 for each group, by name")
    return {str(key): float(each) for key, each in value.items()}


def _is_weight(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 < value <= sys.float_info.max  # a whole number may be too large for a float


class GroupsSpec(SpecModel):
    """Groups of examples, and how a candidate's group means are combined to one value."""

    by: str = Field(min_length=1)
    """The field of an example whose value is its group."""
    objective: Literal["mean", "worst"] = "mean"
    """mean: the weighted mean of the groups' means; worst: the lowest of them."""
    weights: Annotated[Literal["equal", "size"] | dict[str, float], BeforeValidator(_weights)] = "equal"
    """For mean: "equal", by "size", which is the mean over all examples, or a number for each group."""

    @model_validator(mode="after")
    def _weighs_what_counts(self) -> Self:
        if self.objective == "worst" and self.weights != "equal":
            raise ValueError("weights are for objective: mean, the worst group counts alone; remove them")
        return self


class ConstraintSpec(SpecModel):
    """A bound on a candidate's mean of one metric over all examples."""

    metric: Name
    """One of the file's metrics."""
    at_least: float | None = Field(default=None, gt=0.0, le=1.0)
    at_most: float | None = Field(default=None, ge=0.0, lt=1.0)

    @model_validator(mode="after")
    def _has_one_bound(self) -> Self:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("give one of at_least and at_most; another bound is another constraint")
        return self


class AutoevaluatorSpec(SpecModel):
    """A model that answers every example instead of a human, right or wrong."""

    model: ModelSpec
    prompt: str = Field(min_length=1)
    """A jinja2 template over the fields of an example."""
    extract: str | None = None
    """A pattern whose last match in the model's output is its answer; without it, the whole output is."""


class CertifySpec(SpecModel):
    """The allowed risk, the costs of candidates, and the autoevaluator."""

    alpha: float | None = Field(default=None, gt=0.0, lt=1.0)
    """The highest allowed mean of 1 - score of a certified candidate."""
    drop: float | None = Field(default=None, gt=0.0, lt=1.0)
    """The highest allowed mean of max(0, score of `baseline` - score), instead of `alpha`."""
    baseline: str | None = None
    """Name of a candidate."""
    cost: Literal["size", "prompt-length", "price", "custom"]
    """The kind of cost of a candidate; see `tasks.objectives.certify.check`."""
    costs: dict[str, Annotated[float, Field(ge=0.0)]] = {}
    """Costs by candidate, for "price" and "custom"."""
    labellable: int | None = Field(default=None, ge=1)
    """Number of examples that a human may label; see `tasks.objectives.certify.split`."""
    unlabelled_per_label: int = Field(default=1, ge=1)
    """Number r of unlabelled examples for each labelled one."""
    autoevaluator: AutoevaluatorSpec | None = None

    @model_validator(mode="after")
    def _states_one_risk(self) -> Self:
        if (self.alpha is None) == (self.drop is None):
            raise ValueError("give one of alpha (an absolute risk) and drop (against a baseline)")
        if (self.drop is None) != (self.baseline is None):
            raise ValueError("drop and baseline go together: name the candidate that a drop is measured from")
        if bool(self.costs) != (self.cost in ("price", "custom")):
            raise ValueError("costs is for cost: price and cost: custom, which need it")
        return self

    @property
    def risk(self) -> float:
        """The allowed risk of a certified candidate."""
        return self.alpha if self.alpha is not None else self.drop or 0.0


class EmbedderSpec(SpecModel):
    """An embedder, which computes a vector of each prompt, so that similar prompts can be routed alike."""

    type: str = Field(default="transformers", min_length=1)
    """One of `BUILT_IN_EMBEDDERS`, or an embedder of a package or a program."""
    model: FilePath | None = None
    """Folder of a checkpoint; None for the sentence-embedding model that Winnow installs."""
    pooling: Literal["mean", "cls", "last"] = "mean"
    """For transformers: how the vectors of a text's tokens are combined."""
    path: FilePath | None = None
    """For precomputed: a file with the columns id and vector."""
    params: dict[str, JsonScalar] = {}
    """For an embedder of a package or a program: its parameters."""
    text: str = Field(default="{{ input }}", min_length=1)
    """A jinja2 template of the text to embed, over the fields of an example."""

    @model_validator(mode="after")
    def _has_what_its_type_needs(self) -> Self:
        if self.path is None and self.type == "precomputed":
            raise ValueError("type: precomputed needs path, a file with the columns id and vector")
        if self.path is not None and self.type != "precomputed":
            raise ValueError("path is only for type: precomputed; remove path")
        if self.model is None and self.type == "vllm":
            raise ValueError("type: vllm needs the folder of a checkpoint as model")
        # A stored spec has every key, so that a default is as good as nothing.
        given = {key for key, field in type(self).model_fields.items() if getattr(self, key) != field.default}
        if self.type == "precomputed" and {"model", "pooling", "text"} & given:
            raise ValueError("precomputed vectors need no model, pooling or text; remove them")
        if self.type == "vllm" and "pooling" in given:
            raise ValueError("vLLM pools as the checkpoint says; remove pooling")
        if self.type in BUILT_IN_EMBEDDERS and self.params:
            raise ValueError("params is only for an embedder of a package or a program; remove params")
        if self.type not in BUILT_IN_EMBEDDERS and {"model", "pooling"} & given:
            raise ValueError(
                "an embedder of a package or a program reads its settings from params; move model and "
                "pooling there"
            )
        return self
