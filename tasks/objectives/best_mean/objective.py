"""Objective best-mean: find the candidate with the highest score on a benchmark."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self, cast

import numpy as np

from winnow.algorithms.protocols import Growing, Selector
from winnow.algorithms.registry import takes_later_scores, takes_more_arms
from winnow.algorithms.state.arrays import FloatArray
from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.json_types import JsonObject, JsonView
from winnow.storage.records.record_types import Losses, Values
from winnow.tasks.campaign.kept_rules import EXCESS, TIES
from winnow.tasks.campaign.look import Look
from winnow.tasks.campaign.scored import ScoredCampaign, check_judges
from winnow.tasks.candidates.candidate_costs import check_costs
from winnow.tasks.candidates.candidates import Candidate, build_candidates
from winnow.tasks.data.clusters import clusters_of
from winnow.tasks.data.datasets import Dataset
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.errors import SpecError, unknown_name
from winnow.tasks.objectives.best_mean.groups import ExampleGroups, check_groups
from winnow.tasks.objectives.best_mean.holdout.split import Split, selection_budget, split_examples
from winnow.tasks.objectives.best_mean.sparing import check_sparing
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.judge_tree import HUMAN
from winnow.tasks.spec.selector_traits import ENDS_WITH_TIES, GATE, HALVING, MEETS_CONSTRAINTS
from winnow.tasks.spec.stored_spec import ONLY, Constraint, constraints_of

if TYPE_CHECKING:
    from winnow.tasks.campaign.earlier_scores import EarlierScores

PLAIN = (("top_m", 1), ("prefer", "mean"), ("additions", "stated"))
"""Parameters that cannot be used with constraints, and the values that disable them."""


def told_outcomes(
    constraints: Sequence[Constraint], scores: FloatArray, metrics: Sequence[Values]
) -> FloatArray:
    """Outcomes of B pairs, shape (B, 1 + J): the scores, then the metric values.

    Args:
        constraints: The J constraints.
        scores: Shape (B,).
        metrics: Values of each constraint's metric for each pair.
    """
    values = [[each.told(value) for each, value in zip(constraints, row, strict=True)] for row in metrics]
    return np.column_stack([scores, np.array(values, dtype=np.float64).reshape(len(scores), -1)])


def check_constraints(spec: CampaignSpec) -> tuple[Constraint, ...]:
    """Check a campaign's constraints and return them.

    Raises:
        SpecError: A constraint names no metric, constraints contradict each other, or another setting is
            incompatible with constraints.
    """
    if not spec.constraints:
        return ()
    _check_question(spec)
    found = constraints_of({"constraints": [each.model_dump() for each in spec.constraints]})
    _check_metrics(found, [each.name for each in spec.metrics])
    return found


def params_of(constraints: Sequence[Constraint]) -> JsonObject:
    """Parameters of the selector for the constraints; empty without constraints."""
    return {"constraints": np.array([each.least for each in constraints])} if constraints else {}


def _check_question(spec: CampaignSpec) -> None:
    name, params = spec.selector.name, spec.selector.params
    if name != MEETS_CONSTRAINTS:
        raise SpecError(
            f"{name} compares all candidates by their scores, without constraints; choose selector "
            f"{MEETS_CONSTRAINTS}, or remove constraints",
            path="constraints",
        )
    if "constraints" in params:
        raise SpecError(
            "is computed from the file's constraints; remove it from selector.params",
            path="selector.params.constraints",
        )
    if spec.stopping.delta is None:
        raise SpecError(
            "constraints need delta, the probability that a statement on candidates that meet them is "
            "wrong; add stopping.delta",
            path="stopping.delta",
        )
    if params.get("start") == "race":
        raise SpecError(
            "with start: race, the winner can violate the constraints; remove start, or remove constraints",
            path="selector.params.start",
        )
    for key, plain in PLAIN:
        if params.get(key, plain) != plain:
            raise SpecError(
                f"{key} is not supported with constraints; remove {key} or constraints",
                path=f"selector.params.{key}",
            )
    if spec.groups is not None:
        raise SpecError(
            "groups are not supported with constraints; remove groups or constraints", path="groups"
        )


def _check_metrics(constraints: Sequence[Constraint], metrics: Sequence[str]) -> None:
    for number, each in enumerate(constraints):
        if each.metric not in metrics:
            place = f"constraints[{number}].metric"
            raise SpecError(unknown_name("metric", each.metric, metrics), path=place)
    sides = Counter((each.metric, each.at_least is None) for each in constraints)
    for (metric, _), count in sides.items():
        if count > 1:
            raise SpecError(
                f"{metric} has {count} bounds on the same side; keep the stricter one", path="constraints"
            )
    at_most = {each.metric: each.at_most for each in constraints if each.at_most is not None}
    for each in constraints:
        most = at_most.get(each.metric)
        if each.at_least is not None and most is not None and each.at_least > most:
            raise SpecError(
                f"no mean of {each.metric} can be {each.bound} and at most {most:g}; correct one bound",
                path="constraints",
            )


TIES_BEFORE = "resolve"
"""The rule of campaigns that began before the key `stopping.ties` existed."""
SCHEDULE, SCHEDULE_BEFORE = "halving_schedule", "halving"
"""Name of the rule for the schedule of halving, and the rule of campaigns without it."""


@dataclass(frozen=True, kw_only=True)
class BestMean(ScoredCampaign):
    """Campaign in which every output is scored against the targets of its example."""

    history: "EarlierScores | None"
    """Earlier scores on the examples, shape (M, n); None if the spec names no earlier scores."""
    split: Split | None
    """The split of the dataset; None if no examples are held out."""
    baseline: int | None
    """The arm that a gate compares the others with; None for other selectors."""
    costs: FloatArray | None
    """Cost of each arm, shape (K,); None unless the cheapest good enough candidate is searched for."""
    groups: ExampleGroups | None
    """Groups of the examples; None if means over all examples are compared."""
    constraints: tuple[Constraint, ...]
    """Constraints on the best candidate's means of metrics; empty without constraints."""
    RULES: ClassVar = (TIES, EXCESS, SCHEDULE)

    @classmethod
    def check(cls, spec: CampaignSpec, dataset: Dataset, *, is_allowed: bool = True) -> Self:
        """See `ResolvedCampaign`."""
        check_sparing(spec)
        candidates = build_candidates(spec, dataset, is_allowed=is_allowed)
        return cls(
            spec=spec,
            dataset=dataset,
            **check_judges(spec, candidates),
            candidates=candidates,
            groups=check_groups(spec, dataset.examples),
            constraints=check_constraints(spec),
            history=_history(spec, dataset),
            split=_split(spec, dataset),
            baseline=check_baseline(spec, candidates),
            costs=check_costs(spec, candidates),
        )

    @classmethod
    def stored_fields(
        cls, look: Look, spec: CampaignSpec, dataset: Dataset, candidates: Sequence[Candidate]
    ) -> JsonObject:
        """See `ResolvedCampaign`."""
        return {
            "groups": check_groups(spec, dataset.examples),
            "constraints": check_constraints(spec),
            "history": object_at(f"{EARLIER_SCORES}:stored_history")(look, spec, dataset)
            if spec.history
            else None,
            "split": _split(spec, dataset),
            "baseline": check_baseline(spec, candidates),
            "costs": check_costs(spec, candidates),
        }

    @property
    def takes_more_candidates(self) -> bool:
        """Whether candidates can join, which the selector must support."""
        can_grow = self.costs is None and not self.constraints and not self.spares
        return can_grow and takes_more_arms(self.spec.selector.name)

    @property
    def takes_later_scores(self) -> bool:
        """See `ResolvedCampaign`: the selector must support it, and no rule may count the missing outputs."""
        is_plain = self.costs is None and not self.constraints and not self.spares and self.split is None
        is_asked_here = self.spec.judge.type != HUMAN and self.spec.reuse != ONLY
        return is_plain and is_asked_here and takes_later_scores(self.spec.selector.name)

    def at_round(self, selector: Selector, number: int) -> Selector:
        """Add the candidates that joined up to a round to the selector."""
        for joined in sorted({each for each in self.first_rounds if 0 < each <= number}):
            growing = cast(Growing, selector)
            if (n_arms := sum(each <= joined for each in self.first_rounds)) > growing.n_arms:
                growing.add_arms(n_arms - growing.n_arms)
        return selector

    @property
    def rules(self) -> JsonView:
        """The campaign's rules; `stopping.ties` in the file overrides the stored one."""
        found, ties = super().rules, self.spec.stopping.ties
        return found if ties in (None, found.get(TIES, TIES_BEFORE)) else {**found, TIES: ties}

    def new_rules(self) -> JsonObject:
        """See `ResolvedCampaign`."""
        if self.spec.selector.name in ENDS_WITH_TIES:
            return {TIES: "open", EXCESS: 1}
        schedule = self._best_schedule() if self._leaves_schedule_open else SCHEDULE_BEFORE
        return {} if schedule == SCHEDULE_BEFORE else {SCHEDULE: schedule}

    @property
    def _leaves_schedule_open(self) -> bool:
        """Whether the selector is halving, and the file leaves its schedule open."""
        selector = self.spec.selector
        return selector.name == HALVING and selector.params.get("schedule", "auto") == "auto"

    def _best_schedule(self) -> str:
        """The schedule for the current budget; a stored campaign keeps its first one."""
        budget = self.spec.own_budget
        if self.split is not None:
            budget = selection_budget(budget, self.split)
        return str(object_at(SCHEDULE_FOR)(self.n_begun, self.n_selection_examples, budget))

    def particulars(self) -> JsonObject:
        """See `ResolvedCampaign`."""
        return {
            **({"history_fingerprint": None} if self.history is None else self.history.identity),
            "held_out_fingerprint": None if self.split is None else self.split.fingerprint,
            **self.metric_particulars,
        }

    @property
    def models_needed(self) -> Sequence[ModelRef]:
        """Models that the campaign always needs, including that of a gate's baseline."""
        held_against = () if self.baseline is None else (self.candidates[self.baseline].model,)
        return [*super().models_needed, *held_against]

    @property
    def n_selection_examples(self) -> int:
        """Number of examples that are not held out."""
        return len(self.dataset.examples) if self.split is None else len(self.split.selection)

    @property
    def judges_ahead(self) -> bool:
        """Whether judge models receive each output when it arrives.

        With human judges, metrics are requested after their judgments.
        """
        is_ahead = self.spec.streaming and self.spec.judge.type != HUMAN and not self.spares
        return is_ahead and bool(self.judge_models)

    @property
    def spares(self) -> bool:
        """See `ResolvedCampaign`."""
        return self.spec.judge.spare is not None

    @property
    def held_out_words(self) -> str:
        """See `ResolvedCampaign`."""
        if self.split is None:
            return ""
        return (
            f"; {len(self.split.held_out)} of the examples are held out for {self.split.whose}, "
            f"selection uses the other {len(self.split.selection)}"
        )

    def create_selector(self, limit: int | None = None) -> Selector:
        """Create the selector; held-out comparisons do not count for its own limit."""
        if self.split is None:
            return super().create_selector(limit)
        in_all = self.spec.own_budget if limit is None else limit
        inner = super().create_selector(selection_budget(in_all, self.split))
        holding_out = object_at(HOLDOUT_SELECTOR)
        found: Selector = holding_out(inner, self.split, limit=in_all, batch_size=self.spec.batch_size)
        return found

    def found_params(self) -> JsonObject:
        """See `ResolvedCampaign`."""
        history = None if self.history is None else self.history.scores
        if history is not None and self.split is not None:
            history = history[:, self.split.selection]
        found = {
            "history": history,
            "baseline": self.baseline,
            "costs": self.costs,
            "ties": self.rules.get(TIES),
            "excess": EXCESS in self.rules or None,
            "spares": self.spares or None,
        }
        if self._leaves_schedule_open:
            found["schedule"] = self.rules.get(SCHEDULE, SCHEDULE_BEFORE)
        groups = {} if self.groups is None else self.groups.params()
        found |= groups | params_of(self.constraints)
        return {name: value for name, value in found.items() if value is not None}

    @property
    def told_metrics(self) -> Sequence[str]:
        """Names of the metrics of the constraints, in their order."""
        return [each.metric for each in self.constraints]

    def outcomes(self, scores: Values, losses: Sequence[Losses], metrics: Sequence[Values]) -> FloatArray:
        """The outcomes for the selector; with J constraints of shape (B, 1 + J)."""
        told = super().outcomes(scores, losses, metrics)
        return told_outcomes(self.constraints, told, metrics) if self.constraints else told

    @property
    def compared_words(self) -> str:
        """See `ResolvedCampaign`."""
        if self.constraints:
            return f"; only candidates that meet {', '.join(map(str, self.constraints))} can be the best"
        if self.groups is None or self.spec.groups is None:
            return ""
        return self.groups.words(self.spec.groups.by)


EARLIER_SCORES = "winnow.tasks.campaign.earlier_scores"
HOLDOUT_SELECTOR = "winnow.tasks.objectives.best_mean.holdout.selector:HoldoutSelector"
"""Import paths, so that campaigns without `history` and `holdout` do not import these modules."""


def _history(spec: CampaignSpec, dataset: Dataset) -> "EarlierScores | None":
    if not spec.history:
        return None
    found: EarlierScores = object_at(f"{EARLIER_SCORES}:load_history")(
        spec.history, spec.storage, dataset, spec.name
    )
    return found


def _split(spec: CampaignSpec, dataset: Dataset) -> Split | None:
    if spec.holdout is None:
        return None
    if spec.selector.name == GATE:
        raise SpecError(
            "gate chooses no winner, so there is no winner to score on held-out examples; remove holdout",
            path="holdout",
        )
    fields = [each.fields for each in dataset.examples]
    split = split_examples(
        [each.key for each in dataset.examples],
        share=spec.holdout,
        seed=spec.seed,
        has_constraints=bool(spec.constraints),
        clusters=None if spec.dataset.cluster is None else clusters_of(fields, spec.dataset.cluster),
    )
    budget = spec.own_budget
    left = selection_budget(budget, split)
    if budget is not None and left is not None and left < spec.batch_size:
        wants = f"{split.whose} need{'s' if split.finalists == 1 else ''}"
        raise SpecError(
            f"{wants} {budget - left} of the budget of {budget} comparisons for the {len(split.held_out)} "
            f"held-out examples, which leaves less than one round (batch_size {spec.batch_size}) for "
            "selection; raise stopping.budget or lower holdout",
            path="holdout",
        )
    return split


SCHEDULE_FOR = "winnow.algorithms.best_mean.baselines.halving:schedule_for"


BASELINE_PLACE = "selector.params.baseline"


def check_baseline(spec: CampaignSpec, candidates: Sequence[Candidate]) -> int | None:
    """The arm that a gate compares the others with; None for other selectors.

    Raises:
        SpecError: A gate names no candidate, or has no error probability.
    """
    if spec.selector.name != GATE:
        return None
    names = [each.name for each in candidates]
    name = spec.selector.params.get("baseline")
    if name is None:
        raise SpecError(
            f"gate compares the other candidates with a baseline; name one of: {', '.join(names)}",
            path=BASELINE_PLACE,
        )
    if name not in names:
        raise SpecError(unknown_name("candidate", str(name), names), path=BASELINE_PLACE)
    if spec.stopping.delta is None:
        raise SpecError(
            "gate needs delta, the probability that any of its verdicts is wrong; add stopping.delta",
            path="stopping.delta",
        )
    return names.index(name)
