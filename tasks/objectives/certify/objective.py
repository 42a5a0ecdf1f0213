"""Objective certify: find candidates whose risk is proven to be below a limit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sqlalchemy.orm import Session

from winnow.algorithms.certify.config import Betting, Rule, rule_for
from winnow.algorithms.decision import Decision
from winnow.algorithms.protocols import Batch, Selector
from winnow.algorithms.state.arrays import FloatArray, IntArray
from winnow.storage.json_types import JsonObject, JsonView
from winnow.storage.records import labels
from winnow.storage.records.record_types import Losses, Values
from winnow.tasks.campaign.look import Look
from winnow.tasks.campaign.resolved import common_params
from winnow.tasks.campaign.scored import ScoredCampaign, check_judges, fingerprints, refuse_shared_names
from winnow.tasks.candidates.candidates import Candidate, build_candidates
from winnow.tasks.data.datasets import Dataset
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.objectives.certify.check import Certification, certify_section, check_certification
from winnow.tasks.objectives.certify.split import Parts, divide_by_spec
from winnow.tasks.plugins.selectors import campaign_selector
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.judge_tree import HUMAN
from winnow.tasks.text.phrases import count_of, list_of

BETTING_RULE = "betting_rule"
"""Identity key of the betting rule; a campaign keeps the rule that it began with."""


class LabelSelector:
    """Wrap a selector over labellable examples 0..n-1; convert indices to positions.

    Args:
        inner: The wrapped selector.
        labellable: Dataset positions of the labellable examples, shape (n,).
    """

    def __init__(self, inner: Selector, labellable: IntArray) -> None:
        self.inner = inner
        self._labellable = labellable
        self._numbers = {int(position): number for number, position in enumerate(labellable)}
        self._told: set[int] = set()

    @property
    def n_labels(self) -> int:
        """Number of labels used: examples observed for at least one arm."""
        return len(self._told)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose the next pairs; see `Selector`."""
        batch = self.inner.ask(rng)
        return Batch(batch.arms, self._labellable[batch.examples])

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe losses, shape (B, 4); see `Selector`."""
        numbers = [self._numbers[position] for position in batch.examples.tolist()]
        self.inner.tell(Batch(batch.arms, np.array(numbers, dtype=np.int64)), outcomes)
        self._told.update(numbers)

    def decision(self) -> Decision:
        """See `Selector`."""
        return self.inner.decision()


def certifying_selector(
    spec: CampaignSpec, n_arms: int, parts: Parts, rule: Rule, **more: object
) -> LabelSelector:
    """Create the selector of a certify campaign, without observations.

    Args:
        spec: The campaign.
        n_arms: Number of candidates.
        parts: The split of the dataset.
        rule: The betting rule.
        more: Parameters that override those of the spec.
    """
    params = {**common_params(spec), **spec.selector.params, "betting": rule, **more}
    inner = campaign_selector(spec.selector.name, n_arms=n_arms, n_examples=len(parts.labellable), **params)
    return LabelSelector(inner, parts.labellable)


def as_losses(losses: Sequence[Losses]) -> FloatArray:
    """Losses in the form for a selector: shape (B, 4), NaN if unknown."""
    known = [[math.nan if loss is None else loss for loss in row] for row in losses]
    return np.array(known, dtype=np.float64).reshape(-1, 4)


@dataclass(frozen=True, kw_only=True)
class Certify(ScoredCampaign):
    """Campaign that measures losses by human labels and by an autoevaluator.

    The autoevaluator also answers unlabelled examples. Candidates are in testing order.
    """

    certification: Certification
    RULES: ClassVar = (BETTING_RULE,)
    labelled: frozenset[int] = frozenset()
    """Positions of the examples with labels in the database; empty until they are looked up."""

    @classmethod
    def check(cls, spec: CampaignSpec, dataset: Dataset, *, is_allowed: bool = True) -> Self:
        """See `ResolvedCampaign`."""
        candidates = build_candidates(spec, dataset, is_allowed=is_allowed)
        certification, ordered = check_certification(spec, dataset, candidates)
        scoring = check_judges(spec, candidates)
        answering = answering_models(certification)
        judges = (scoring["judge"], *scoring["metrics"].values())
        refuse_shared_names([*chain.from_iterable(each.models for each in judges), *answering], [])
        scoring["judge_fingerprints"] = {**scoring["judge_fingerprints"], **fingerprints(answering)}
        return cls(spec=spec, dataset=dataset, candidates=ordered, certification=certification, **scoring)

    @classmethod
    def stored_fields(
        cls, look: Look, spec: CampaignSpec, dataset: Dataset, candidates: Sequence[Candidate]
    ) -> JsonObject:
        """See `ResolvedCampaign`."""
        certification = Certification(
            spec=certify_section(spec),
            costs=look.record.spec["candidate_costs"],
            parts=divide_by_spec(
                look.record.spec,
                [bool(each.targets) for each in dataset.examples],
                seed=look.record.seed,
                fingerprint=dataset.fingerprint,
            ),
            autoevaluator=None,
            baseline=None,
        )
        return {"certification": certification}

    def with_stored_labels(self, session: Session) -> Self:
        """See `ResolvedCampaign`."""
        return replace(self, labelled=labels.labelled(session, self.dataset.fingerprint))

    @property
    def judge_models(self) -> Sequence[ModelRef]:
        """See `ResolvedCampaign`."""
        known = [*answering_models(self.certification), *super().judge_models]
        return list({each.name: each for each in known}.values())

    @property
    def deciding_models(self) -> Sequence[ModelRef]:
        """See `ResolvedCampaign`."""
        known = [*answering_models(self.certification), *super().deciding_models]
        return list({each.name: each for each in known}.values())

    @property
    def models_needed(self) -> Sequence[ModelRef]:
        """Models that every loss needs, including the baseline's."""
        return [*super().models_needed, *(model for _, model in needed_by_losses(self))]

    @property
    def askable(self) -> int:
        """Maximum number of labels without a budget."""
        return len(self.certification.parts.labellable)

    @property
    def size(self) -> str:
        """See `ResolvedCampaign`."""
        parts = self.certification.parts
        labellable, per_label = parts.blocks.shape
        examples = self.dataset.examples
        labelled = sum(bool(examples[each].targets) or each in self.labelled for each in parts.labellable)
        of_these = "" if self.spec.judge.type == HUMAN else f" ({labelled} are)"
        order = list_of([f"{name} ({cost:g})" for name, cost in self.certification.costs.items()])
        of_each = (
            f", {count_of(per_label, 'unlabelled example')} belong{'s' * (per_label == 1)} to each"
            if per_label
            else ""
        )
        return (
            f"{len(self.candidates)} candidates, tested from the most expensive on: {order}; {labellable} of "
            f"{count_of(len(examples), 'example')} can be labelled{of_these}, at most "
            f"{count_of(self.most, 'label')} {'is' if self.most == 1 else 'are'} used{of_each}"
            f"{self.samples_words}{self.other_limits}"
        )

    def particulars(self) -> JsonObject:
        """See `ResolvedCampaign`."""
        return {"candidate_costs": dict(self.certification.costs), **self.metric_particulars}

    @property
    def rules(self) -> JsonView:
        """The campaign's rules; the parameter `betting` overrides the stored one."""
        return super().rules if self._betting == "auto" else self.new_rules()

    def new_rules(self) -> JsonObject:
        """See `ResolvedCampaign`."""
        return {BETTING_RULE: rule_for(self._betting, self.most)}

    @property
    def _betting(self) -> Betting:
        betting: Betting = self.spec.selector.params.get("betting", "auto")
        return betting

    @property
    def counts_pairs(self) -> bool:
        """False, because the selector's budget counts labels."""
        return False

    def create_selector(self, limit: int | None = None) -> Selector:
        """See `ResolvedCampaign`."""
        parts, rule = self.certification.parts, self.rules[BETTING_RULE]
        return certifying_selector(self.spec, len(self.candidates), parts, rule)

    def outcomes(self, scores: Values, losses: Sequence[Losses], metrics: Sequence[Values]) -> FloatArray:
        """Losses of the comparisons, shape (B, 4)."""
        return as_losses(losses)

    def labels_used(self, selector: Selector) -> int | None:
        """See `ResolvedCampaign`."""
        assert isinstance(selector, LabelSelector)
        return selector.n_labels


def answering_models(certification: Certification) -> Sequence[ModelRef]:
    """The autoevaluator's model; empty without an autoevaluator."""
    autoevaluator = certification.autoevaluator
    return () if autoevaluator is None else (autoevaluator.model,)


def needed_by_losses(checked: Certify) -> Sequence[tuple[str, ModelRef]]:
    """The models that every loss needs, each with the key that names it."""
    baseline = checked.certification.baseline
    others = [("certify.autoevaluator", model) for model in answering_models(checked.certification)]
    return others if baseline is None else [*others, ("certify.baseline", checked.candidates[baseline].model)]
