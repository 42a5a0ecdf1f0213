"""Limits on what a campaign spends, with their units."""

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
    """Limits on spending; the campaign ends after the round that reaches one."""

    comparisons: Count | None = None
    """Comparisons, including unscored ones; those whose outputs could not be generated do not count."""
    tokens: Count | None = None
    """Input and output tokens of all models, including judges and the autoevaluator."""
    gpu_seconds: Amount | None = None
    """Engine time, including loading, times the number of devices.
    Models that run elsewhere do not count.
    """
    cost: Amount | None = None
    """Price, in the currency of `execution.prices` and `execution.price_per_hour`."""
    human_labels: Count | None = None
    """For certify: labels that humans give."""

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if all(limit is None for limit in self.limits.values()):
            raise ValueError(f"give at least one of {', '.join(type(self).model_fields)}")
        return self

    @property
    def limits(self) -> dict[Kind, float | None]:
        """Limits by kind; None for a kind without a limit."""
        return {kind: getattr(self, kind) for kind in KINDS}


class PriceSpec(SpecModel):
    """Price per million tokens of a model, in any currency."""

    input: float = Field(ge=0.0)
    """Price of input tokens."""
    output: float = Field(ge=0.0)
    """Price of output tokens."""


def refuse_unfit(budget: BudgetSpec, objective: str) -> None:
    """Refuse limits that do not apply to the objective, and a budget without end.

    Raises:
        ValueError: The limits do not fit the objective; names the key and the remedy.
    """
    traits = traits_of(objective)
    if budget.human_labels is not None and not traits.measures_risk:
        raise ValueError(f"budget.human_labels does not apply to {objective}; remove human_labels")
    if budget.human_labels is None and traits.measures_risk:
        raise ValueError(
            f"{objective} needs budget.human_labels, because its tests depend on the number of labels; "
            "add human_labels"
        )
    if budget.comparisons is None and traits.compares_pairs:
        raise ValueError(f"{objective} needs budget.comparisons, since duels never run out; add comparisons")


_NUMBER = TypeAdapter(Count)


def _number_or_mapping(
    value: object,
    union: ValidatorFunctionWrapHandler,
) -> BudgetSpec | int:
    """Validate a budget with one error message, not one for each type."""
    if isinstance(value, Mapping | BudgetSpec):
        return BudgetSpec.model_validate(value)
    return _NUMBER.validate_python(value)


Budget = Annotated[BudgetSpec | int, WrapValidator(_number_or_mapping)]
