"""What objectives share whose outputs are scored one by one: the judge, and the models that it asks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from winnow.storage.json_types import JsonObject
from winnow.tasks.candidates.cache_keys import fingerprint_model
from winnow.tasks.candidates.candidates import Candidate
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.protocol import Judge, models_of
from winnow.tasks.judges.registry import create_judge, judge_code
from winnow.tasks.objectives.resolved import ResolvedCampaign
from winnow.tasks.spec.campaign import JudgeSpec


@dataclass(frozen=True, kw_only=True)
class ScoredCampaign(ResolvedCampaign):
    """A campaign in which a judge scores each output by itself."""

    judge: Judge

    @property
    def judge_models(self) -> Sequence[ModelRef]:
        """See `ResolvedCampaign`."""
        asked = [model for judge in self.judges for model in models_of(judge)]
        return list({each.name: each for each in asked}.values())

    @property
    def judges(self) -> Sequence[Judge]:
        """The judge, then those of metrics in their order."""
        return self.judge, *self.metrics.values()


def check_score_judge(spec: JudgeSpec, candidates: Sequence[Candidate]) -> JsonObject:
    """Make the judge of a spec; return the fields of `ScoredCampaign` that follow from it.

    Raises:
        SpecError: If there is no such judge, or a name stands for two models.
    """
    judge = create_judge(spec.type, **spec.params)
    models = models_of(judge)
    refuse_shared_names(models, candidates)
    return {
        "judge": judge,
        "judge_code": judge_code(spec.type, **spec.params),
        "judge_fingerprints": fingerprints(models),
    }


def fingerprints(models: Sequence[ModelRef]) -> Mapping[str, str]:
    """What the weights of each model are, by its name."""
    return {model.name: fingerprint_model(model) for model in models}


def refuse_shared_names(models: Iterable[ModelRef], candidates: Sequence[Candidate]) -> None:
    """Refuse a name that stands for two models, a judge's and another one, wherever it is told or asked.

    Raises:
        JudgeError: With the name.
    """
    known = {each.model.name: each.model for each in candidates}
    for model in models:
        if known.setdefault(model.name, model) != model:
            whose = (
                "a candidate's" if any(each.model.name == model.name for each in candidates) else "another"
            )
            raise JudgeError(f"the name {model.name!r} is {whose} model; rename one", "judge.models")
