"""What a budget counts, read without pydantic: `winnow status` has no time to import it."""

from typing import Literal, get_args

from winnow.storage.json_types import JsonView

Kind = Literal["comparisons", "tokens", "gpu_seconds", "cost", "human_labels"]

KINDS: tuple[Kind, ...] = get_args(Kind)


def own_kind(objective: str) -> Kind:
    """What the algorithm itself counts, and what a budget that is a mere number limits."""
    return "human_labels" if objective == "certify" else "comparisons"


def limits_of(budget: int | JsonView, objective: str) -> dict[Kind, float]:
    """The limits of a budget that was checked, as it is stored, in the order of `KINDS`."""
    if isinstance(budget, int):
        return {own_kind(objective): budget}
    return {kind: budget[kind] for kind in KINDS if budget.get(kind) is not None}
