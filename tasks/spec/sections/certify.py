"""What a campaign that certifies allows, counts as costs, and has in the place of humans."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from winnow.tasks.spec.sections.models import ModelSpec
from winnow.tasks.spec.spec_model import SpecModel


class AutoevaluatorSpec(SpecModel):
    """A model that answers every example in the place of a human, right or wrong."""

    model: ModelSpec
    prompt: str = Field(min_length=1)
    """A jinja2 template over the fields of an example."""
    extract: str | None = None
    """A pattern whose last match in the model's text is its answer; without it, the whole text is."""


class CertifySpec(SpecModel):
    """Which risk is allowed, what a candidate costs, and what stands in for humans."""

    alpha: float | None = Field(default=None, gt=0.0, lt=1.0)
    """The highest mean of 1 - score that a certified candidate may have."""
    drop: float | None = Field(default=None, gt=0.0, lt=1.0)
    """The highest mean of max(0, score of `baseline` - score), in the place of `alpha`."""
    baseline: str | None = None
    """Name of a candidate."""
    cost: Literal["size", "prompt-length", "price", "custom"]
    """What makes a candidate dear; see `tasks.objectives.certify.check`."""
    costs: dict[str, Annotated[float, Field(ge=0.0)]] = {}
    """By candidate, for "price" and "custom"."""
    labellable: int | None = Field(default=None, ge=1)
    """How many examples a human may label; see `tasks.objectives.certify.split`."""
    unlabelled_per_label: int = Field(default=1, ge=1)
    """Unlabelled examples that belong to each labelled one, r."""
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
        """The risk that a certified candidate may have."""
        return self.alpha if self.alpha is not None else self.drop or 0.0
