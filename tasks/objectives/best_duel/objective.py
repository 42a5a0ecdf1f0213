"""Objective best-duel: find the candidate that is preferred over every other one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.json_types import JsonObject
from winnow.tasks.campaign.look import Look
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.campaign.scored import fingerprints, refuse_shared_names
from winnow.tasks.candidates.cache_keys import is_greedy
from winnow.tasks.candidates.candidates import Candidate, build_candidates
from winnow.tasks.data.datasets import Dataset
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.errors import SpecError
from winnow.tasks.judges.protocol import Duel, Judge
from winnow.tasks.judges.registry import create_pair_judge, pair_judge_code
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.stored_spec import FACTORS, FEATURES, has_features
from winnow.tasks.text.phrases import count_of

PLACE = f"selector.params.{FEATURES}"


def chosen_features(spec: CampaignSpec, candidates: Sequence[Candidate]) -> dict[str, FloatArray]:
    """The selector's parameter `features` as a table; empty if it uses no features.

    In the spec, `features` is "factors", a table with one row per candidate, or absent. If it is absent,
    `llm-po-bt` uses the factors, and other selectors, which need no model, use no features.

    Raises:
        SpecError: The parameter has another value.
    """
    if not has_features(spec.objective, {"name": spec.selector.name, "params": spec.selector.params}):
        return {}
    given = spec.selector.params.get(FEATURES, FACTORS)
    return {FEATURES: factor_features(candidates) if given == FACTORS else _table(given, candidates)}


def factor_features(candidates: Sequence[Candidate]) -> FloatArray:
    """Encode the candidates' models, prompts, guardrails and sampling as 0 and 1.

    Choices that all candidates share have no column.

    Returns:
        Shape (K, d), 1 if the candidate has the choice of the column, else 0.
    """
    columns = []
    for names in zip(*(each.names for each in candidates), strict=True):  # of one factor
        choices = sorted({name for name in names if name is not None})
        if len(choices) > 1:
            columns += [[float(name == choice) for name in names] for choice in choices]
    return np.array(columns).T


def _table(given: object, candidates: Sequence[Candidate]) -> FloatArray:
    """Read the table of features in a spec: one row per candidate, shape (K, d)."""
    remedy = (
        f'give "{FACTORS}", or a list of equally many numbers for each of the {len(candidates)} candidates: '
        + ", ".join(each.name for each in candidates)
    )
    try:
        table = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise SpecError(f"is not a table of numbers; {remedy}", path=PLACE) from None
    if table.ndim != 2 or len(table) != len(candidates) or table.size == 0:
        raise SpecError(f"has shape {table.shape}; {remedy}", path=PLACE)
    return table


DETERMINISTIC = "deterministic"


@dataclass(frozen=True, kw_only=True)
class BestDuel(ResolvedCampaign):
    """Campaign in which a judge of pairs compares two outputs for an example."""

    judge: Judge[Duel]

    @classmethod
    def check(cls, spec: CampaignSpec, dataset: Dataset, *, is_allowed: bool = True) -> Self:
        """See `ResolvedCampaign`."""
        judge = create_pair_judge(spec.judge.type, **spec.judge.params)
        candidates = build_candidates(spec, dataset, is_allowed=is_allowed)
        refuse_shared_names(judge.models, candidates)
        return cls(
            spec=spec,
            dataset=dataset,
            judge=judge,
            judge_code=pair_judge_code(spec.judge.type),
            judge_fingerprints=fingerprints(judge.models),
            candidates=candidates,
        )

    @classmethod
    def stored_fields(
        cls, look: Look, spec: CampaignSpec, dataset: Dataset, candidates: Sequence[Candidate]
    ) -> JsonObject:
        """See `ResolvedCampaign`."""
        return {"judge": _StoredJudge(is_deterministic=any(look.record.spec[DETERMINISTIC]))}

    @property
    def judge_models(self) -> Sequence[ModelRef]:
        """See `ResolvedCampaign`."""
        return self.judge.models

    @property
    def repeats_examples(self) -> bool:
        """See `ResolvedCampaign`."""
        return self.spec.fresh_generations

    @property
    def grid(self) -> int:
        """Number of all pairs of candidates on all examples."""
        return self._n_pairs * len(self.dataset.examples)

    @property
    def most(self) -> int:
        """Maximum number of duels; repeated duels can make it larger than the grid."""
        budget = self.spec.own_budget
        assert budget is not None  # duels never run out, so the spec requires a budget
        return budget

    @property
    def sides(self) -> str:
        """See `ResolvedCampaign`."""
        return f"{len(self.candidates)} candidates, {count_of(self._n_pairs, 'pair')}"

    def found_params(self) -> JsonObject:
        """See `ResolvedCampaign`."""
        found = chosen_features(self.spec, self.candidates)
        return found | {DETERMINISTIC: np.array(self.deterministic)} if any(self.deterministic) else found

    def particulars(self) -> JsonObject:
        """Which candidates' duels are drawn without replacement."""
        return {DETERMINISTIC: self.deterministic}

    @property
    def deterministic(self) -> list[bool]:
        """By arm, whether repeated duels with another such arm have the same result.

        This requires a judge without randomness, and outputs that are generated once and reused: greedy ones,
        or all if `fresh_generations` is false. With features all are False, because their model is about
        fresh draws.
        """
        is_certain = self.judge.is_deterministic and not chosen_features(self.spec, self.candidates)
        fresh = self.spec.fresh_generations
        return [
            is_certain and (is_greedy(each.model, each.sampling) or not fresh) for each in self.candidates
        ]

    @property
    def _n_pairs(self) -> int:
        return len(self.candidates) * (len(self.candidates) - 1) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredJudge:
    """Properties of a stored judge that a selector depends on; it cannot judge."""

    is_deterministic: bool
