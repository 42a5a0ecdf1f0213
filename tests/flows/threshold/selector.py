"""Asks about the candidates that are neither above nor below, until all are."""

from dataclasses import replace

from winnow.algorithms.best_mean.baselines.row_mean import RowMean
from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.claims import Claim


class Above(RowMean):
    """Compare each candidate's interval with a threshold.

    Args:
        config: The problem and the common parameters.
        threshold: The mean to reach, in [0, 1].

    Source: a test.
    """

    def __init__(self, config: BestMeanConfig, *, threshold: float = 0.5) -> None:
        super().__init__(config, variant="paper")
        self._threshold, self._delta = threshold, config.delta

    def decision(self):
        found = super().decision()
        statuses = tuple(
            "certified" if low >= self._threshold else "refuted" if high < self._threshold else "active"
            for low, high in zip(found.lower, found.upper, strict=True)
        )
        is_decided = "active" not in statuses
        return replace(
            found,
            best=None,
            status=statuses,
            stop=is_decided or found.reason in ("budget", "exhausted"),
            reason="certified" if is_decided else found.reason,
            claim=Claim(kind="proven", delta=self._delta) if is_decided else found.claim,
        )
