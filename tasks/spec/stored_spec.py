"""What a stored spec says, read without pydantic: `winnow status` has no time to import it."""

from collections.abc import Iterator, Mapping
from typing import Literal, get_args

from winnow.storage.json_types import JsonObject, JsonView

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


ONLY: Literal["only"] = "only"
"""Stored texts alone: none is made."""

NO_STORED_TEXT = "no_stored_text"
"""Reason of a pair for which there is then no text."""


HUMAN = "human"
"""The type of the judge that is no model and no code: people judge."""


def judge_entries(judge: object) -> Iterator[JsonObject]:
    """The mappings that describe a model, of a judge and of the parts that it combines.

    What is malformed is left to its reader.

    Args:
        judge: As in a spec, its type among its parameters or not.
    """
    if not isinstance(judge, Mapping):
        return
    models, parts = judge.get("models"), judge.get("judges")
    for model in (judge.get("model"), *(models if isinstance(models, list) else ())):
        if isinstance(model, dict):
            yield model
    for part in parts if isinstance(parts, list) else ():
        yield from judge_entries(part)


def judge_place(model: Mapping[str, object]) -> str:
    """Where a model of a judge stands, for what is kept of it by place."""
    return f"judge.{model.get('judge_id', model.get('name'))}"


def is_human(spec: Mapping[str, object]) -> bool:
    """Whether people judge a stored campaign, by its spec."""
    judge = spec.get("judge")
    return isinstance(judge, Mapping) and judge.get("type") == HUMAN


GATE = "gate"
"""The selector that compares candidates with a baseline in the place of finding the best."""


def baseline_name(selector: JsonView) -> str | None:
    """Whom a campaign's selector, as it is stored, holds the others against; None where it is no gate."""
    return str(selector["params"]["baseline"]) if selector["name"] == GATE else None
