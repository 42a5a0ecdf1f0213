"""The budget of a campaign: the limits on what it may spend, and their units."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import (
    Field,
    TypeAdapter,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from winnow.storage.objectives import KINDS, Kind, traits_of
from winnow.tasks.spec.spec_model import SpecModel

Count = Annotated[int, Field(ge=1, strict=True)]
Amount = Annotated[float, Field(gt=0.0)]


class BudgetSpec(SpecModel):
    """Limits: whichever is spent first ends the campaign, after the round that spent it."""

    comparisons: Count | None = None
    """Comparisons, unscored ones included, but for those whose texts could not be made."""
    tokens: Count | None = None
    """Tokens shown to models and made by them, judges and the autoevaluator included."""
    gpu_seconds: Amount | None = None
    """Time of engines, loading included, times the devices of each; models that run elsewhere take none."""
    cost: Amount | None = None
    """Price, in the currency of `execution.prices` and `execution.price_per_hour`."""
    human_labels: Count | None = None
    """For certify."""

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if all(limit is None for limit in self.limits.values()):
            raise ValueError(f"give at least one of {', '.join(type(self).model_fields)}")
        return self

    @property
    def limits(self) -> dict[Kind, float | None]:
        """Limits by kind; None if there is none."""
        return {kind: getattr(self, kind) for kind in KINDS}


class PriceSpec(SpecModel):
    """The price of a million tokens of a model, in any currency."""

    input: float = Field(ge=0.0)
    """For tokens that it is shown."""
    output: float = Field(ge=0.0)
    """For tokens that it makes."""


def refuse_unfit(budget: BudgetSpec, objective: str) -> None:
    """Complain of a budget that the question has no use for, or that would never end.

    Raises:
        ValueError: With the key and the remedy.
    """
    traits = traits_of(objective)
    if budget.human_labels is not None and not traits.measures_risk:
        raise ValueError(f"budget.human_labels means nothing to {objective}; leave it out")
    if budget.human_labels is None and traits.measures_risk:
        raise ValueError(
            f"{objective} needs budget.human_labels, since bets look ahead to the last label; add it"
        )
    if budget.comparisons is None and traits.compares_pairs:
        raise ValueError(f"{objective} needs budget.comparisons, since duels never run out; add it")


_NUMBER = TypeAdapter(Count)


def _number_or_mapping(
    value: object,
    union: ValidatorFunctionWrapHandler,
) -> BudgetSpec | int:
    """The budget, checked with one complaint in place of one per type of the union, which is not asked."""
    if isinstance(value, Mapping | BudgetSpec):
        return BudgetSpec.model_validate(value)
    return _NUMBER.validate_python(value)


Budget = Annotated[BudgetSpec | int, WrapValidator(_number_or_mapping)]
