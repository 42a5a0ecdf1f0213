"""The texts that a round needs, and what became of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from winnow.storage.records.values import StoredText
from winnow.tasks.engines.protocol import GenerationFailure, ModelRef, Request


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

    def __getitem__(self, position: int) -> StoredText | GenerationFailure:
        key = self.planned[position].key
        return self.texts[key] if key in self.texts else self.failures[key]
