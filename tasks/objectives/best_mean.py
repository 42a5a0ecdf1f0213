"""best-mean: which candidate scores highest on a benchmark?"""

from dataclasses import dataclass
from typing import Any, Self

from algorithms.arrays import FloatArray
from storage.records import NewComparison, RoundRecord
from tasks.baseline import check_baseline
from tasks.candidate_costs import check_costs
from tasks.candidates import build_candidates
from tasks.datasets import Dataset
from tasks.generating import Texts
from tasks.history import fingerprint_history, load_history
from tasks.judges.protocol import Judge
from tasks.judges.registry import create_judge, judge_code
from tasks.objectives.checked import CheckedCampaign
from tasks.running import RunningCampaign
from tasks.scoring import score_outputs
from tasks.spec import CampaignSpec


@dataclass(frozen=True, kw_only=True)
class BestMean(CheckedCampaign):
    """Every output is scored against the targets of its example."""

    judge: Judge
    history: FloatArray | None
    """Earlier scores on the examples, shape (M, n), where the spec names some."""
    baseline: int | None
    """The arm that a gate holds the others against."""
    costs: FloatArray | None
    """Of each arm, shape (K,), where the cheapest that is good enough is looked for."""

    @classmethod
    def check(cls, spec: CampaignSpec, dataset: Dataset) -> Self:
        """See `CheckedCampaign`."""
        candidates = build_candidates(spec, dataset.field_names)
        return cls(
            spec=spec,
            dataset=dataset,
            judge=create_judge(spec.judge.type, **spec.judge.params),
            judge_code=judge_code(spec.judge.type, **spec.judge.params),
            candidates=candidates,
            history=load_history(spec.history, spec.storage, dataset),
            baseline=check_baseline(spec, candidates),
            costs=check_costs(spec, candidates),
        )

    def particulars(self) -> dict[str, Any]:
        """See `CheckedCampaign`."""
        return {"history_fingerprint": fingerprint_history(self.history)}

    def found_params(self) -> dict[str, Any]:
        """See `CheckedCampaign`."""
        found = {"history": self.history, "baseline": self.baseline, "costs": self.costs}
        return {name: value for name, value in found.items() if value is not None}

    def judge_texts(
        self, campaign: RunningCampaign, round_: RoundRecord, texts: Texts
    ) -> list[NewComparison]:
        """See `CheckedCampaign`."""
        return score_outputs(campaign, self.judge, round_, texts)
