"""Sections for one objective only: groups, constraints, certify, embedder."""

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
    """Validate the weights with one error message instead of one for each type.

    A group's name can be a number in YAML; it becomes text.
    """
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
    """Groups of examples, and how a candidate's group means are combined."""

    by: str = Field(min_length=1)
    """Field of an example whose value is the example's group."""
    objective: Literal["mean", "worst"] = "mean"
    """mean: the weighted mean of the groups' means; worst: the lowest of them."""
    weights: Annotated[Literal["equal", "size"] | dict[str, float], BeforeValidator(_weights)] = "equal"
    """For mean: "equal"; "size", which gives the mean over all examples; or a number for each group."""

    @model_validator(mode="after")
    def _weighs_what_counts(self) -> Self:
        if self.objective == "worst" and self.weights != "equal":
            raise ValueError(
                "objective: worst uses only the lowest group mean; remove weights, or set objective: mean"
            )
        return self


class ConstraintSpec(SpecModel):
    """A bound on a candidate's mean of one metric over all examples."""

    metric: Name
    """Name of one of the file's metrics."""
    at_least: float | None = Field(default=None, gt=0.0, le=1.0)
    at_most: float | None = Field(default=None, ge=0.0, lt=1.0)

    @model_validator(mode="after")
    def _has_one_bound(self) -> Self:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError(
                "give exactly one of at_least and at_most; write a second bound as another constraint"
            )
        return self


class AutoevaluatorSpec(SpecModel):
    """A model that answers each example instead of a human, and can be wrong."""

    model: ModelSpec
    prompt: str = Field(min_length=1)
    """A jinja2 template over the fields of an example."""
    extract: str | None = None
    """Regular expression whose last match in the model's output is the answer; None takes the whole
    output.
    """


class CertifySpec(SpecModel):
    """The allowed risk, the costs of candidates, and the autoevaluator."""

    alpha: float | None = Field(default=None, gt=0.0, lt=1.0)
    """Highest allowed mean of 1 - score of a certified candidate."""
    drop: float | None = Field(default=None, gt=0.0, lt=1.0)
    """Instead of `alpha`: highest allowed mean of max(0, score of `baseline` - score)."""
    baseline: str | None = None
    """Name of the candidate that `drop` is measured from."""
    cost: Literal["size", "prompt-length", "price", "custom"]
    """Kind of a candidate's cost; see `tasks.objectives.certify.check`."""
    costs: dict[str, Annotated[float, Field(ge=0.0)]] = {}
    """For cost "price" or "custom": cost of each candidate, by name."""
    labellable: int | None = Field(default=None, ge=1)
    """Number of examples that humans may label; see `tasks.objectives.certify.split`."""
    unlabelled_per_label: int = Field(default=1, ge=1)
    """Number r of unlabelled examples for each labelled one."""
    autoevaluator: AutoevaluatorSpec | None = None

    @model_validator(mode="after")
    def _states_one_risk(self) -> Self:
        if (self.alpha is None) == (self.drop is None):
            raise ValueError("give exactly one of alpha (an absolute risk) and drop (against a baseline)")
        if (self.drop is None) != (self.baseline is None):
            raise ValueError("drop and baseline go together: name the candidate that a drop is measured from")
        if bool(self.costs) != (self.cost in ("price", "custom")):
            if self.costs:
                raise ValueError(f"costs is only for cost: price or custom, not {self.cost}; remove costs")
            raise ValueError(f"cost: {self.cost} needs costs, the cost of each candidate by name; add costs")
        return self

    @property
    def risk(self) -> float:
        """The allowed risk of a certified candidate."""
        return self.alpha if self.alpha is not None else self.drop or 0.0


class EmbedderSpec(SpecModel):
    """Computes a vector for each prompt, so that similar prompts are routed alike."""

    type: str = Field(default="transformers", min_length=1)
    """One of `BUILT_IN_EMBEDDERS`, or an embedder of a package or of a program."""
    model: FilePath | None = None
    """Folder of a checkpoint; None for the sentence-embedding model that Winnow installs."""
    pooling: Literal["mean", "cls", "last"] = "mean"
    """For transformers: how the token vectors of a text are combined."""
    path: FilePath | None = None
    """For precomputed: a file with the columns id and vector."""
    params: dict[str, JsonScalar] = {}
    """For an embedder of a package or of a program: its parameters."""
    text: str = Field(default="{{ input }}", min_length=1)
    """jinja2 template of the text to embed, over the fields of an example."""

    @model_validator(mode="after")
    def _has_what_its_type_needs(self) -> Self:
        if self.path is None and self.type == "precomputed":
            raise ValueError("type: precomputed needs path, a file with the columns id and vector")
        if self.path is not None and self.type != "precomputed":
            raise ValueError("path is only for type: precomputed; remove path")
        if self.model is None and self.type == "vllm":
            raise ValueError("type: vllm needs model, the folder of a checkpoint; add model")
        # A stored spec has every key, so a default value counts as not set.
        given = {key for key, field in type(self).model_fields.items() if getattr(self, key) != field.default}
        if self.type == "precomputed" and {"model", "pooling", "text"} & given:
            raise ValueError("precomputed vectors need no model, pooling or text; remove them")
        if self.type == "vllm" and "pooling" in given:
            raise ValueError("vLLM pools as the checkpoint's configuration says; remove pooling")
        if self.type in BUILT_IN_EMBEDDERS and self.params:
            raise ValueError("params is only for an embedder of a package or a program; remove params")
        if self.type not in BUILT_IN_EMBEDDERS and {"model", "pooling"} & given:
            raise ValueError(
                "an embedder of a package or a program reads its settings from params; move model and "
                "pooling there"
            )
        return self
