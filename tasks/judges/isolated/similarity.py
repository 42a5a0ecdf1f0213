"""How close a text is to the targets in meaning: the cosine between vectors of a sentence-embedding model."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.json_types import JsonObject
from winnow.tasks.embedding.protocol import EmbeddingFailed, of_unit_length
from winnow.tasks.embedding.sentence_model import Pooling, SentenceModel
from winnow.tasks.errors import JudgeError, WinnowError
from winnow.tasks.judges.isolated.libraries import JUDGE_LIMIT, MEMORY, PATIENCE
from winnow.tasks.judges.isolated.process import IsolatedJudge, IsolationFailed
from winnow.tasks.judges.protocol import Sample, Verdict
from winnow.tasks.judges.scores import Scale
from winnow.tasks.plugins.entry_points import Plugin

VERSION = 1
"""Raised when a verdict can change; see `tasks.judges.catalogue`."""

DIGITS = 4
"""Of a cosine: the last ones of a vector depend on the processor."""

MOST_TARGETS_KEPT = 10_000
"""Vectors of targets that are not made again."""


@dataclass(frozen=True, kw_only=True)
class SimilarityJudge:
    """The cosine between the output and the closest target, by a sentence-embedding model."""

    scale: ClassVar = Scale(
        unit="cosine, -1 to 1", formula="max(0, cosine)", convert=lambda cosine: max(0.0, cosine)
    )

    model: str | None = None
    """The folder of a checkpoint that Transformers loads; None for all-MiniLM-L6-v2, which is a package."""
    pooling: Pooling = "mean"
    """What the vector is of the last hidden states: their mean, or the first ("cls") or last of them."""
    _isolated: IsolatedJudge = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _model(self.model, self.pooling)
        isolated = IsolatedJudge(
            "winnow.tasks.judges.isolated.similarity:measured",
            {"model": self.model, "pooling": self.pooling},
            plugin=Plugin(kind="judge", name="similarity", location=self.model or "all-MiniLM-L6-v2"),
            seconds=PATIENCE,
            exhausted=JUDGE_LIMIT,
            memory=MEMORY,
        )
        object.__setattr__(self, "_isolated", isolated)

    def try_out(self) -> None:
        """Load the model in the judge's process; see `tasks.judges.protocol.try_out`."""
        try:
            self._isolated.start()
        except IsolationFailed as error:
            raise JudgeError(
                f"{error}; give the folder of a sentence-embedding model", "judge.model"
            ) from None

    @staticmethod
    def code(model: str | None = None, pooling: Pooling = "mean", **others: object) -> JsonObject:
        """What the weights of the model are."""
        return {"embedder": _model(model, pooling).identity}

    def judge(self, sample: Sample) -> Verdict:
        """The cosine of the output; none where it or all targets are blank."""
        if not any(target.strip() for target in sample.targets):
            return Verdict.unscored("no_target")
        return self._isolated.judge(sample) if sample.output.strip() else Verdict.unscored("no_answer")


def _model(model: str | None, pooling: Pooling) -> SentenceModel:
    """The model, not loaded; raises `JudgeError` where there is none."""
    try:
        return SentenceModel(model, pooling)
    except WinnowError as error:
        raise JudgeError(getattr(error, "message", str(error)), "judge.model") from error


def measured(model: str | None, pooling: Pooling) -> Callable[[Sample], Verdict]:
    """What judges, in the process in which it may take its time."""
    embedder = SentenceModel(model, pooling)

    def vector(text: str) -> FloatArray:
        text = text.encode("utf-8", "replace").decode()  # no tokenizer takes half a character
        row: FloatArray = of_unit_length(embedder.embed([text]), [text])[0].astype(np.float64)
        return row

    kept = lru_cache(MOST_TARGETS_KEPT)(vector)
    kept("loads the model")

    def judge(sample: Sample) -> Verdict:
        try:
            output = vector(sample.output)
        except EmbeddingFailed:
            return Verdict.unscored("no_answer")
        targets = [kept(target) for target in sample.targets if target.strip()]
        cosine = round(max(float(output @ target) for target in targets), DIGITS)
        return Verdict(score=SimilarityJudge.scale.score(cosine), answer=f"cosine {cosine:.{DIGITS}f}")

    return judge
