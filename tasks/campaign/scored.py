"""Common part of objectives that score single outputs: judge, metrics, models."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from winnow.storage.json_types import JsonObject
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.candidates.cache_keys import fingerprint_model
from winnow.tasks.candidates.candidates import Candidate
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.errors import JudgeError, SpecError
from winnow.tasks.judges.protocol import BEST_OF, Judge, Sample
from winnow.tasks.judges.registry import create_judge, judge_code
from winnow.tasks.spec.campaign import CampaignSpec


@dataclass(frozen=True, kw_only=True)
class ScoredCampaign(ResolvedCampaign):
    """A campaign in which a judge scores each output by itself."""

    judge: Judge[Sample]

    @property
    def judge_models(self) -> Sequence[ModelRef]:
        """See `ResolvedCampaign`."""
        asked = [model for judge in self.judges for model in judge.models]
        return list({each.name: each for each in asked}.values())

    @property
    def deciding_models(self) -> Sequence[ModelRef]:
        """The judge's models, without those that only metrics use."""
        return self.judge.models

    @property
    def judges(self) -> Sequence[Judge[Sample]]:
        """The judge, then the judges of metrics in order."""
        return self.judge, *self.metrics.values()

    @property
    def metric_particulars(self) -> JsonObject:
        """Part of `particulars` on metrics: their judges' code, their models' weights."""
        if not self.metrics:
            return {}
        judges = [(each.name, each.judge) for each in self.spec.metrics]
        code = {name: judge_code(judge.type, **judge.params) for name, judge in judges}
        asked = [model.name for judge in self.metrics.values() for model in judge.models]
        weights = {name: self.judge_fingerprints[name] for name in asked}
        return {"metric_code": code, **({"metric_fingerprints": weights} if weights else {})}


def check_judges(spec: CampaignSpec, candidates: Sequence[Candidate]) -> JsonObject:
    """Create the judges of a spec, and return the fields of `ScoredCampaign` for them.

    Raises:
        SpecError: A judge does not exist, or two models have the same name.
    """
    judge = create_judge(spec.judge.type, **spec.judge.params)
    refuse_shared_names(judge.models, candidates)
    metrics = _metrics(spec, judge.models, candidates)
    asked = [model for each in (judge, *metrics.values()) for model in each.models]
    return {
        "judge": judge,
        "judge_code": judge_code(spec.judge.type, **spec.judge.params),
        "judge_fingerprints": fingerprints(asked),
        "metrics": metrics,
    }


def _metrics(
    spec: CampaignSpec, asked: Sequence[ModelRef], candidates: Sequence[Candidate]
) -> dict[str, Judge[Sample]]:
    """Create the judges of metrics, by metric name.

    Args:
        spec: The campaign.
        asked: The models of the campaign's own judge.
        candidates: The candidates.
    """
    made: dict[str, Judge[Sample]] = {}
    known = list(asked)
    for index, metric in enumerate(spec.metrics):
        place = f"metrics[{index}].judge"
        if metric.judge.type == BEST_OF:
            raise SpecError(
                f"judge {BEST_OF} chooses among the outputs of a pair, and a metric is the mean over all of "
                "them; name a judge that scores single outputs",
                path=f"{place}.type",
            )
        try:
            judge = create_judge(metric.judge.type, **metric.judge.params)
            known += judge.models
            refuse_shared_names(known, candidates)
        except SpecError as error:
            path = (error.path or "judge").replace("judge", place, 1)
            raise JudgeError(error.message, path) from error
        made[metric.name] = judge
    return made


def fingerprints(models: Sequence[ModelRef]) -> Mapping[str, str]:
    """Fingerprint of each model's weights, by the model's name."""
    return {model.name: fingerprint_model(model) for model in models}


def refuse_shared_names(models: Iterable[ModelRef], candidates: Sequence[Candidate]) -> None:
    """Refuse a judge model that has the name of a different model.

    Raises:
        JudgeError: Gives the name.
    """
    known = {each.model.name: each.model for each in candidates}
    for model in models:
        if known.setdefault(model.name, model) != model:
            whose = (
                "a candidate's" if any(each.model.name == model.name for each in candidates) else "another"
            )
            raise JudgeError(f"the name {model.name!r} is {whose} model; rename one", "judge.models")
