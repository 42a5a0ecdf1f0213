"""Read a stored spec without pydantic and numpy, to keep `winnow status` fast."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from winnow.storage.json_types import JsonView
from winnow.storage.objectives import KINDS, Kind, traits_of
from winnow.tasks.spec.selector_traits import GATE, NEEDS_FEATURES, PREFERS_COST

DEFAULT_STORAGE = "sqlite:///winnow.db"
"""Default URL of the results database."""

LONGEST_NAME = 100
"""Maximum length of the name of a campaign, model or prompt, in characters."""


def own_kind(objective: str | None) -> Kind:
    """The kind of limit that a plain number as budget sets.

    It is the amount that the selector counts.

    Args:
        objective: The objective; None if a file names no objective, or an unknown one.
    """
    return "comparisons" if objective is None else traits_of(objective).counts


def limits_of(budget: int | JsonView, objective: str | None) -> dict[Kind, float]:
    """The limits of a stored, valid budget by kind, in the order of `KINDS`."""
    if isinstance(budget, int):
        return {own_kind(objective): budget}
    return {kind: budget[kind] for kind in KINDS if budget.get(kind) is not None}


ONLY: Literal["only"] = "only"
"""Value of `reuse` that allows only stored outputs, so that no output is generated."""

NO_STORED_TEXT = "no_stored_text"
"""Reason for a missing score: the pair has no stored output, and the campaign generates no outputs."""


LAST_ROUNDS = "history_rounds"
"""Identity key of a campaign that learns from others: the last round used of each source."""

CUT_AT_STOP = "cut_at_stop"
"""Identity key: outputs are judged only up to their stop sequences.
Absent if no candidate has stop sequences, and for older campaigns, which judge whole outputs.
"""


LEFT_OUT = "left_out"
"""Execution key of a campaign: candidates that a user excluded while the campaign ran."""


def left_out_of(execution: JsonView) -> Mapping[str, int]:
    """Map each excluded candidate to the number, from 0, of the round that excluded it."""
    found: Mapping[str, int] = execution.get(LEFT_OUT, {})
    return found


RETRIED = "retried"
"""Execution key of a campaign: rounds that ask pairs of earlier rounds again."""


def retries_of(execution: JsonView) -> Sequence[int]:
    """Numbers, from 0, of the rounds that ask pairs without an output again."""
    found: Sequence[int] = execution.get(RETRIED, ())
    return found


def cuts_at_stop(identity: JsonView) -> bool:
    """Whether a stored campaign judges outputs only up to their stop sequences."""
    return bool(identity.get(CUT_AT_STOP))


def has_stop_sequences(identity: JsonView) -> bool:
    """Whether a stored campaign has stop sequences in a model or in sampling settings."""
    models = (each.get("generate_config") for each in identity.get("models") or ())
    configs = [*models, *(identity.get("generate_configs") or ())]
    return any(each.get("stop_seqs") for each in configs if each)


def baseline_name(selector: JsonView) -> str | None:
    """Baseline of a stored gate; None for other selectors."""
    return str(selector["params"]["baseline"]) if selector["name"] == GATE else None


def fork_command(identity: JsonView) -> str:
    """Command that starts a campaign with this identity under another name.

    For a gate, it includes the baseline.
    """
    selector = identity.get("selector")
    baseline = None if selector is None else baseline_name(selector)
    if baseline is None:
        return "winnow run SPEC --fork NEW_NAME"
    return f"winnow gate SPEC --baseline {baseline} --fork NEW_NAME"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """How a stored campaign compares candidates by groups."""

    by: str
    """Key `groups.by`: the field whose values are the groups."""
    objective: str
    """Key `groups.objective`: "worst" compares worst-group means; else means of group means are compared."""
    weights: str
    """The weights in words: "equal", "size" or "given"."""

    @property
    def value(self) -> str:
        """The compared value, as a noun."""
        if self.objective == "worst":
            return "worst-group mean"
        return "mean of group means" if self.weights == "equal" else "weighted mean of group means"


def grouping_of(spec: JsonView) -> Grouping | None:
    """Comparison by groups in a stored definition; None without groups."""
    groups = spec.get("groups")
    if groups is None:
        return None
    weights = groups["weights"]
    said = weights if isinstance(weights, str) else "given"
    return Grouping(by=groups["by"], objective=groups["objective"], weights=said)


def estimated_value(objective: str, groups: Grouping | None) -> str:
    """The value that a campaign estimates for each candidate, as a noun.

    Args:
        objective: The objective's name in a spec.
        groups: The comparison by groups; None if candidates are not compared by groups.
    """
    return traits_of(objective).estimated if groups is None else groups.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """A bound on the mean of a metric over all examples; exactly one bound is set."""

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
        """The lowest mean that meets the constraint, on the scale of `told`."""
        return 1.0 - (self.at_most or 0.0) if self.at_least is None else self.at_least

    def told(self, value: float | None) -> float:
        """Convert a metric's value so that higher is better; NaN for None."""
        if value is None:
            return math.nan
        return 1.0 - value if self.at_least is None else value


def constraints_of(spec: JsonView) -> tuple[Constraint, ...]:
    """The constraints of a stored definition."""
    return tuple(Constraint(**each) for each in spec.get("constraints", ()))


def costs_of(selector: JsonView) -> dict[str, float] | None:
    """Cost of each candidate by name; None unless the selector prefers cheap ones."""
    params = selector["params"]
    is_thrifty = selector["name"] == PREFERS_COST and params.get("prefer") == "cost"
    return dict(params["costs"]) if is_thrifty else None


FEATURES = "features"
FACTORS = "factors"


def has_features(objective: str, selector: JsonView) -> bool:
    """Whether a selector of a spec uses a model of the candidates' features."""
    default = FACTORS if selector["name"] == NEEDS_FEATURES else None
    return traits_of(objective).compares_pairs and selector["params"].get(FEATURES, default) is not None
