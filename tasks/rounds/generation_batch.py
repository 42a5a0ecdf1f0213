"""The texts that a round needs, and what became of each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from winnow.storage.records.values import StoredText
from winnow.tasks.engines.protocol import GenerationFailure, ModelRef, Request
from winnow.tasks.judges.asking.calls import JudgeCall

TextOrFailure = StoredText | GenerationFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGeneration:
    """One text a round needs, of a candidate or of a judge."""

    key: str
    """What its text is stored under."""
    model: ModelRef
    fingerprint: str
    """What the model's weights are."""
    request: Request
    replicate: int = 0
    request_key: str | None = None
    """SHA-256 over all that determines the text; None where that is `key`."""
    unasked: GenerationFailure | None = None
    """Why there is nothing that a model could be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationBatch:
    """What became of planned generations, in their order."""

    planned: Sequence[PlannedGeneration]
    texts: Mapping[str, StoredText]
    """Stored generations by key."""
    failures: Mapping[str, GenerationFailure]
    """Why there is none, by key."""
    calls: Mapping[JudgeCall, TextOrFailure] = field(default_factory=dict)
    """What became of the calls that a judge of these texts has made already."""

    def has(self, position: int) -> bool:
        """Whether it is known yet what became of one of them."""
        key = self.planned[position].key
        return key in self.texts or key in self.failures

    def __iter__(self) -> Iterator[TextOrFailure]:
        return (self[position] for position in range(len(self.planned)))

    def __getitem__(self, position: int) -> TextOrFailure:
        key = self.planned[position].key
        return self.texts[key] if key in self.texts else self.failures[key]
