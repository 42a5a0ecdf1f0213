"""The further judges of a campaign, whose values are reported beside the score."""

from collections.abc import Mapping

from winnow.tasks.errors import JudgeError, SpecError
from winnow.tasks.judges.protocol import BEST_OF, Judge, models_of
from winnow.tasks.judges.registry import create_judge, judge_code
from winnow.tasks.spec.campaign import CampaignSpec


def check_metrics(spec: CampaignSpec) -> dict[str, Judge]:
    """Make the judges of a spec's metrics, by the names of these.

    Raises:
        SpecError: If there is no such judge, or it asks a model.
    """
    made: dict[str, Judge] = {}
    for index, metric in enumerate(spec.metrics):
        place = f"metrics[{index}].judge"
        if metric.judge.type == BEST_OF:
            raise SpecError(
                f"judge {BEST_OF} chooses among the texts of a pair, and a metric is the mean of all; "
                "name the judge that scores",
                path=f"{place}.type",
            )
        try:
            judge = create_judge(metric.judge.type, **metric.judge.params)
        except JudgeError as error:
            raise JudgeError(error.message, (error.path or "judge").replace("judge", place, 1)) from error
        if models_of(judge):
            raise SpecError(
                f"judge {metric.judge.type} asks a model, and metrics are for judges that ask none; leave it "
                "out, and judge the stored texts by winnow rescore",
                path=f"{place}.type",
            )
        made[metric.name] = judge
    return made


def metric_code(spec: CampaignSpec) -> Mapping[str, object]:
    """What the code of each of these judges is, by the name of its metric."""
    return {each.name: judge_code(each.judge.type, **each.judge.params) for each in spec.metrics}
