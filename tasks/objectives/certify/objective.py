"""certify: which candidates keep their risk below a limit, with certainty?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from winnow.algorithms.certify.setting import rule_for
from winnow.algorithms.protocols import Selector
from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.records.values import Losses
from winnow.tasks.candidates.cache_keys import fingerprint_model
from winnow.tasks.candidates.candidates import build_candidates
from winnow.tasks.data.datasets import Dataset
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.judges.protocol import Judge
from winnow.tasks.judges.registry import create_judge, judge_code
from winnow.tasks.objectives.certify.check import Certification, check_certification
from winnow.tasks.objectives.certify.selector import LabelSelector, as_losses, certifying_selector
from winnow.tasks.objectives.resolved import ResolvedCampaign
from winnow.tasks.spec.campaign import CampaignSpec


@dataclass(frozen=True, kw_only=True)
class Certify(ResolvedCampaign):
    """Losses of each output: with a human's label, with an autoevaluator's answer, on unlabelled examples.

    Candidates are in testing order.
    """

    judge: Judge
    certification: Certification

    @classmethod
    def check(cls, spec: CampaignSpec, dataset: Dataset) -> Self:
        """See `ResolvedCampaign`."""
        judge = create_judge(spec.judge.type, **spec.judge.params)
        candidates = build_candidates(spec, dataset)
        certification, ordered = check_certification(spec, dataset, candidates)
        model = None if certification.autoevaluator is None else certification.autoevaluator.model
        return cls(
            spec=spec,
            dataset=dataset,
            judge=judge,
            judge_code=judge_code(spec.judge.type, **spec.judge.params),
            judge_fingerprints={} if model is None else {model.name: fingerprint_model(model)},
            candidates=ordered,
            certification=certification,
        )

    @property
    def judge_models(self) -> Sequence[ModelRef]:
        """See `ResolvedCampaign`."""
        autoevaluator = self.certification.autoevaluator
        return () if autoevaluator is None else (autoevaluator.model,)

    @property
    def size(self) -> str:
        """See `ResolvedCampaign`."""
        parts = self.certification.parts
        labellable, per_label = parts.blocks.shape
        labelled = sum(bool(self.dataset.examples[each].targets) for each in parts.labellable)
        order = ", ".join(f"{name} ({cost:g})" for name, cost in self.certification.costs.items())
        return (
            f"{len(self.candidates)} candidates, tested from the dearest on: {order}; {labellable} of "
            f"{len(self.dataset.examples)} examples can be labelled ({labelled} are), at most "
            f"{self.spec.own_budget} labels are used, {per_label} unlabelled examples belong to each"
            f"{self.other_limits}"
        )

    def particulars(self) -> dict[str, Any]:
        """See `ResolvedCampaign`."""
        return {"candidate_costs": dict(self.certification.costs), "betting_rule": self._betting_rule}

    @property
    def _betting_rule(self) -> str:
        """How the selector bets: what it would choose by itself for so many labels is settled here."""
        n_labels = len(self.certification.parts.labellable)
        budget = self.spec.own_budget
        return rule_for(
            self.spec.selector.params.get("betting", "auto"),
            n_labels if budget is None else min(budget, n_labels),
        )

    @property
    def counts_pairs(self) -> bool:
        """See `ResolvedCampaign`: it counts labels."""
        return False

    def create_selector(self, limit: int | None = None) -> Selector:
        """See `ResolvedCampaign`."""
        return certifying_selector(self.spec, len(self.candidates), self.certification.parts)

    def outcomes(self, scores: Sequence[float | None], losses: Sequence[Losses]) -> FloatArray:
        """See `ResolvedCampaign`; shape (B, 4)."""
        return as_losses(losses)

    def labels_used(self, selector: Selector) -> int | None:
        """See `ResolvedCampaign`."""
        assert isinstance(selector, LabelSelector)
        return selector.n_labels
