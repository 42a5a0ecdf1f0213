"""A stored spec, read without pydantic and numpy: `winnow status` has no time to import them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from winnow.storage.json_types import JsonView
from winnow.storage.objectives import KINDS, Kind, traits_of
from winnow.tasks.spec.selector_traits import GATE, NEEDS_FEATURES, PREFERS_COST

DEFAULT_STORAGE = "sqlite:///winnow.db"
"""URL of the results database of a spec, or a command, that names none."""

LONGEST_NAME = 100
"""Characters, at most, of the name of a campaign, a model or a prompt."""


def own_kind(objective: str | None) -> Kind:
    """The kind of amount that the selector counts, and that a budget which is a plain number limits.

    Args:
        objective: The objective; None if a file names none, or an unknown one.
    """
    return "comparisons" if objective is None else traits_of(objective).counts


def limits_of(budget: int | JsonView, objective: str | None) -> dict[Kind, float]:
    """The limits of a budget that was checked, as it is stored, in the order of `KINDS`."""
    if isinstance(budget, int):
        return {own_kind(objective): budget}
    return {kind: budget[kind] for kind in KINDS if budget.get(kind) is not None}


ONLY: Literal["only"] = "only"
"""Stored texts alone: none is made."""

NO_STORED_TEXT = "no_stored_text"
"""Reason of a pair for which no text is stored, where none is made."""


LAST_ROUNDS = "history_rounds"
"""Key of the identity of a campaign that learns from others: the last round that it knows, by source."""

CUT_AT_STOP = "cut_at_stop"
"""Key of an identity: outputs are judged up to their stop sequences alone. Absent where no candidate has any,
and of campaigns that began when outputs were judged whole."""


LEFT_OUT = "left_out"
"""Key of the execution fields of a campaign: the candidates that a user left out while it ran."""


def left_out_of(execution: JsonView) -> Mapping[str, int]:
    """The number of the round by which each candidate was left out, counted from 0, by name."""
    found: Mapping[str, int] = execution.get(LEFT_OUT, {})
    return found


def cuts_at_stop(identity: JsonView) -> bool:
    """Whether a stored campaign judges outputs up to their stop sequences alone."""
    return bool(identity.get(CUT_AT_STOP))


def has_stop_sequences(identity: JsonView) -> bool:
    """Whether a model or a way of sampling of a stored campaign has stop sequences."""
    models = (each.get("generate_config") for each in identity.get("models") or ())
    configs = [*models, *(identity.get("generate_configs") or ())]
    return any(each.get("stop_seqs") for each in configs if each)


def baseline_name(selector: JsonView) -> str | None:
    """The candidate that a stored selector holds the others against; None if it is not a gate."""
    return str(selector["params"]["baseline"]) if selector["name"] == GATE else None


def fork_command(identity: JsonView) -> str:
    """The command that begins a campaign of this identity under another name; a gate's has the baseline."""
    selector = identity.get("selector")
    baseline = None if selector is None else baseline_name(selector)
    if baseline is None:
        return "winnow run SPEC --fork NEW_NAME"
    return f"winnow gate SPEC --baseline {baseline} --fork NEW_NAME"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """The way in which a stored campaign compares candidates by groups, as far as its definition says."""

    by: str
    objective: str
    weights: str
    """The weights in words: "equal", "size" or "given"."""

    @property
    def value(self) -> str:
        """The value that candidates are compared by, as a noun."""
        if self.objective == "worst":
            return "worst-group mean"
        return "mean of group means" if self.weights == "equal" else "weighted mean of group means"


def grouping_of(spec: JsonView) -> Grouping | None:
    """The way in which the campaign of a stored definition compares by groups; None if it does not."""
    groups = spec.get("groups")
    if groups is None:
        return None
    weights = groups["weights"]
    said = weights if isinstance(weights, str) else "given"
    return Grouping(by=groups["by"], objective=groups["objective"], weights=said)


def estimated_value(objective: str, groups: Grouping | None) -> str:
    """The value that a campaign estimates, as a noun.

    Args:
        objective: As a spec names it.
        groups: The way in which its candidates are compared by groups; None if they are not.
    """
    return traits_of(objective).estimated if groups is None else groups.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """A bound on the mean of a metric over all examples; one of the two is given."""

    metric: str
    at_least: float | None
    at_most: float | None

    @property
    def bound(self) -> str:
        """The bound in words, such as "at least 0.9"."""
        return f"at most {self.at_most:g}" if self.at_least is None else f"at least {self.at_least:g}"

    def __str__(self) -> str:
        return f"{self.metric} {self.bound}"

    @property
    def least(self) -> float:
        """The lowest mean that meets the constraint, of the values as selectors are told them."""
        return 1.0 - (self.at_most or 0.0) if self.at_least is None else self.at_least

    def told(self, value: float | None) -> float:
        """The value as a selector is told it: the more the better; NaN if there is none."""
        if value is None:
            return math.nan
        return 1.0 - value if self.at_least is None else value


def constraints_of(spec: JsonView) -> tuple[Constraint, ...]:
    """The constraints of a stored definition."""
    return tuple(Constraint(**each) for each in spec.get("constraints", ()))


def costs_of(selector: JsonView) -> dict[str, float] | None:
    """The cost of each candidate, where a stored selector prefers the cheaper; None elsewhere."""
    params = selector["params"]
    is_thrifty = selector["name"] == PREFERS_COST and params.get("prefer") == "cost"
    return dict(params["costs"]) if is_thrifty else None


FEATURES = "features"
FACTORS = "factors"


def has_features(objective: str, selector: JsonView) -> bool:
    """Whether the selector of a spec, its name and parameters, has a model of the candidates' features."""
    default = FACTORS if selector["name"] == NEEDS_FEATURES else None
    return traits_of(objective).compares_pairs and selector["params"].get(FEATURES, default) is not None
