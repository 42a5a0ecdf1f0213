"""What further judges say of an output: kept beside its score, and told to no selector."""

from collections.abc import Mapping, Sequence

from winnow.storage.records.values import NewMetric
from winnow.tasks.judges.protocol import Judge, Sample


def metrics_of(metrics: Mapping[str, Judge], samples: Sequence[Sample]) -> list[NewMetric]:
    """One value per metric: of several texts of a pair the mean, none where one of them has none.

    Args:
        metrics: By name.
        samples: What a judge sees of each text of a pair; empty where there is none.
    """
    return [_metric(name, judge, samples) for name, judge in metrics.items()] if samples else []


def _metric(name: str, judge: Judge, samples: Sequence[Sample]) -> NewMetric:
    verdicts = [judge.judge(sample) for sample in samples]
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    if len(scores) < len(verdicts):
        reason = next(verdict.reason for verdict in verdicts if verdict.reason is not None)
        return NewMetric(name=name, reason=reason)
    return NewMetric(name=name, score=min(1.0, sum(scores) / len(scores)))
