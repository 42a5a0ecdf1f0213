"""Features of candidates for a Bradley-Terry model: by default, their choices of model, prompt and so on."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.stored_spec import FACTORS, FEATURES, has_features

if TYPE_CHECKING:
    from winnow.tasks.candidates.candidates import Candidate
    from winnow.tasks.spec.campaign import CampaignSpec

PLACE = f"selector.params.{FEATURES}"


def chosen_features(spec: "CampaignSpec", candidates: "Sequence[Candidate]") -> dict[str, FloatArray]:
    """The parameter `features` of a selector for duels, if it has one.

    In the spec it is "factors", a table with a row for each candidate, or absent: then `llm-po-bt` uses the
    factors, and other selectors, which need no model, use none.

    Raises:
        SpecError: If it is anything else.
    """
    if not has_features(spec.objective, {"name": spec.selector.name, "params": spec.selector.params}):
        return {}
    given = spec.selector.params.get(FEATURES, FACTORS)
    return {FEATURES: factor_features(candidates) if given == FACTORS else _table(given, candidates)}


def factor_features(candidates: "Sequence[Candidate]") -> FloatArray:
    """One column for each choice of model, prompt, guardrail and sampling that not all candidates share.

    Returns:
        Shape (K, d), 1 if the candidate has that choice, else 0.
    """
    columns = []
    for names in zip(*(each.names for each in candidates), strict=True):  # of one factor
        choices = sorted({name for name in names if name is not None})
        if len(choices) > 1:
            columns += [[float(name == choice) for name in names] for choice in choices]
    return np.array(columns).T


def _table(given: object, candidates: "Sequence[Candidate]") -> FloatArray:
    """The table in a spec, one row per candidate, shape (K, d)."""
    remedy = (
        f'give "{FACTORS}", or a list of as many numbers for each of the {len(candidates)} candidates: '
        + ", ".join(each.name for each in candidates)
    )
    try:
        table = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise SpecError(f"is not a table of numbers; {remedy}", path=PLACE) from None
    if table.ndim != 2 or len(table) != len(candidates) or table.size == 0:
        raise SpecError(f"has shape {table.shape}; {remedy}", path=PLACE)
    return table
