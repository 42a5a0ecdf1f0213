"""best-mean: which candidate scores highest on a benchmark?"""

from dataclasses import dataclass
from typing import Any, Self, cast

from algorithms.arrays import FloatArray
from algorithms.protocols import Growing, Selector
from algorithms.registry import takes_more_arms
from storage.records import NewComparison, RoundRecord
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

    @classmethod
    def check(cls, spec: CampaignSpec, dataset: Dataset) -> Self:
        """See `CheckedCampaign`."""
        return cls(
            spec=spec,
            dataset=dataset,
            judge=create_judge(spec.judge.type, **spec.judge.params),
            judge_code=judge_code(spec.judge.type, **spec.judge.params),
            candidates=build_candidates(spec, dataset.field_names),
            history=load_history(spec.history, spec.storage, dataset),
        )

    @property
    def takes_more_candidates(self) -> bool:
        """See `CheckedCampaign`: the selector has to say what then holds."""
        return takes_more_arms(self.spec.selector.name)

    def at_round(self, selector: Selector, number: int) -> Selector:
        """See `CheckedCampaign`: lists of candidates join, each as it was given."""
        for joined in sorted({each for each in self.first_rounds if 0 < each <= number}):
            growing = cast(Growing, selector)
            if (n_arms := sum(each <= joined for each in self.first_rounds)) > growing.n_arms:
                growing.add_arms(n_arms - growing.n_arms)
        return selector

    def particulars(self) -> dict[str, Any]:
        """See `CheckedCampaign`."""
        return {"history_fingerprint": fingerprint_history(self.history)}

    def found_params(self) -> dict[str, Any]:
        """See `CheckedCampaign`."""
        return {} if self.history is None else {"history": self.history}

    def judge_texts(
        self, campaign: RunningCampaign, round_: RoundRecord, texts: Texts
    ) -> list[NewComparison]:
        """See `CheckedCampaign`."""
        return score_outputs(campaign, self.judge, round_, texts)
