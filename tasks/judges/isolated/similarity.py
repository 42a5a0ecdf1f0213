"""Cosine similarity of output and targets, by a sentence-embedding model."""

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.algorithms.state.plugin_registry import plugins
from winnow.storage.json_types import JsonObject
from winnow.tasks.embedding.protocol import Embedder, EmbeddingFailed, of_unit_length
from winnow.tasks.embedding.registry import GROUP, create_embedder
from winnow.tasks.embedding.sentence_model import Pooling, SentenceModel
from winnow.tasks.engines.known_providers import BUILT_IN_EMBEDDERS
from winnow.tasks.errors import JudgeError, WinnowError, unknown_name
from winnow.tasks.judges.isolated.libraries import JUDGE_LIMIT, MEMORY, PATIENCE
from winnow.tasks.judges.isolated.process import IsolatedJudge, IsolationFailed
from winnow.tasks.judges.protocol import JUDGE_FAILED, Judge, Sample, Scale, Verdict
from winnow.tasks.plugins.entry_points import Plugin, PluginFailed
from winnow.tasks.spec.sections.objectives import EmbedderSpec
from winnow.tasks.spec.spec_model import JsonScalar

DIGITS = 4
"""Decimal places of a cosine; further digits depend on the processor."""

PLACE = "judge.embedder"

MOST_TARGETS_KEPT = 10_000
"""Maximum number of cached target vectors."""


@dataclass(frozen=True, kw_only=True)
class SimilarityJudge(Judge[Sample]):
    """Cosine between the output and the closest target, by sentence embeddings."""

    scale: ClassVar = Scale(
        unit="cosine, -1 to 1", formula="max(0, cosine)", convert=lambda cosine: max(0.0, cosine)
    )

    model: str | None = None
    """Folder of a checkpoint that Transformers loads; None means all-MiniLM-L6-v2, installed as a package."""
    pooling: Pooling = "mean"
    """How the last hidden states become a vector: their mean, the first ("cls") or the last."""
    embedder: str | None = None
    """Name of an embedder of a package or program, which replaces the checkpoint."""
    embedder_params: Mapping[str, JsonScalar] | None = None
    """Parameters of that embedder."""
    _isolated: IsolatedJudge | None = field(init=False, repr=False, compare=False)
    _measure: Callable[[Sample], Verdict] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        made = _embedder(self.model, self.pooling, self.embedder, self.embedder_params)
        isolated = self._in_a_process() if self.embedder is None else None
        # An embedder that a program registers exists only in that program's process.
        object.__setattr__(self, "_measure", _measuring(made) if isolated is None else isolated.judge)
        object.__setattr__(self, "_isolated", isolated)
        if isolated is None:
            weakref.finalize(self, made.close)

    def _in_a_process(self) -> IsolatedJudge:
        return IsolatedJudge(
            "winnow.tasks.judges.isolated.similarity:measured",
            {"model": self.model, "pooling": self.pooling},
            plugin=Plugin(kind="judge", name="similarity", location=self.model or "all-MiniLM-L6-v2"),
            seconds=PATIENCE,
            exhausted=JUDGE_LIMIT,
            memory=MEMORY,
        )

    def try_out(self) -> None:
        """Load the model in the judge's process; see `Judge`.

        Raises:
            JudgeError: If loading fails.
        """
        try:
            if self._isolated is not None:
                self._isolated.start()
        except IsolationFailed as error:
            raise JudgeError(
                f"{error}; give the folder of a sentence-embedding model", "judge.model"
            ) from None

    @staticmethod
    def code(
        model: str | None = None,
        pooling: Pooling = "mean",
        embedder: str | None = None,
        embedder_params: Mapping[str, JsonScalar] | None = None,
        **others: object,
    ) -> JsonObject:
        """Identity of the model's weights, or of the embedder's code."""
        return {"embedder": _embedder(model, pooling, embedder, embedder_params).identity}

    def judge(self, sample: Sample) -> Verdict:
        """Score by the cosine to the closest target; unscored if the output or all targets are blank."""
        if not any(target.strip() for target in sample.targets):
            return Verdict.unscored("no_target")
        return self._measure(sample) if sample.output.strip() else Verdict.unscored("no_answer")


def _embedder(
    model: str | None, pooling: Pooling, name: str | None, params: Mapping[str, JsonScalar] | None
) -> Embedder:
    """Create the embedder without loading it; raises `JudgeError` if a setting is invalid."""
    if name is None and params:
        raise JudgeError("needs an embedder of a package or a program; remove it", "judge.embedder_params")
    if name is not None and (model is not None or pooling != "mean"):
        raise JudgeError("an embedder uses no checkpoint; remove model and pooling", PLACE)
    if name in BUILT_IN_EMBEDDERS:
        raise JudgeError("must be an embedder of a package or a program; for a checkpoint set model", PLACE)
    if name is not None and name not in (known := plugins(GROUP)):
        raise JudgeError(unknown_name("embedder", name, sorted(known)), PLACE)
    try:
        if name is None:
            return SentenceModel(model, pooling)
        return create_embedder(EmbedderSpec(type=name, params=dict(params or {})))
    except PluginFailed:
        raise
    except WinnowError as error:
        raise JudgeError(
            getattr(error, "message", str(error)), "judge.model" if name is None else PLACE
        ) from error


def measured(model: str | None, pooling: Pooling) -> Callable[[Sample], Verdict]:
    """Create the judging function for a separate process; loads the checkpoint now."""
    embedder = SentenceModel(model, pooling)
    embedder.embed(["loads the model"])
    return _measuring(embedder)


def reading(model: str | None) -> Callable[[Sample], Verdict]:
    """Create a function that checks whether a model can read a target, for a separate process.

    The target is passed as the output. The score is 0 if at least half of its tokens are unknown to the
    tokenizer, else 1.
    """
    tokenizer = SentenceModel(model, "mean").tokenizer()
    unknown = tokenizer.unk_token_id

    def judge(sample: Sample) -> Verdict:
        tokens = tokenizer(sample.output.encode("utf-8", "replace").decode(), add_special_tokens=False)
        found = tokens["input_ids"]
        return Verdict(score=float(unknown is None or 2 * found.count(unknown) < len(found)))

    return judge


def _measuring(embedder: Embedder) -> Callable[[Sample], Verdict]:
    def vector(text: str) -> FloatArray:
        text = text.encode("utf-8", "replace").decode()  # tokenizers reject lone surrogates
        row: FloatArray = of_unit_length(embedder.embed([text]), [text])[0].astype(np.float64)
        return row

    kept = lru_cache(MOST_TARGETS_KEPT)(vector)

    def judge(sample: Sample) -> Verdict:
        try:  # first: an embedder that fails on targets is broken, whatever the output
            targets = [kept(target) for target in sample.targets if target.strip()]
        except EmbeddingFailed as error:
            return Verdict.unscored(JUDGE_FAILED, detail=str(error))
        try:
            output = vector(sample.output)
        except EmbeddingFailed:
            return Verdict.unscored("no_answer")
        cosine = round(max(float(output @ target) for target in targets), DIGITS)
        return Verdict(score=SimilarityJudge.scale.score(cosine), answer=f"cosine {cosine:.{DIGITS}f}")

    return judge
