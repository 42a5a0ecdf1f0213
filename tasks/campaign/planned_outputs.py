"""The outputs that a round needs, grouped into requests, and the result of each."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from winnow.storage.records.record_types import StoredText
from winnow.tasks.campaign.outputs import Settings, judged_text
from winnow.tasks.engines.known_providers import ELSEWHERE
from winnow.tasks.engines.protocol import GenerationFailure, ModelRef, Request
from winnow.tasks.judges.asking.calls import JudgeCall

TextOrFailure = StoredText | GenerationFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGeneration:
    """One output that a round needs, from a candidate or a judge model."""

    key: str
    """Key under which the output is stored."""
    model: ModelRef
    fingerprint: str
    """Fingerprint of the model's weights."""
    request: Request
    replicate: int = 0
    request_key: str | None = None
    """SHA-256 over everything that determines the output; None if `key` is this digest."""
    unasked: GenerationFailure | None = None
    """Failure to report if no request can be sent to the model; else None."""
    cut_at_stop: bool = False
    """Whether the output is judged only up to its stop sequences, however the server handles them."""

    def judged(self, text: str) -> str:
        """The part of an output that judges receive."""
        sampling = self.request.sampling
        if not (self.cut_at_stop and sampling.stop) or sampling.choices or self.request.continuations:
            return text
        return judged_text(text, Settings(sampling.stop, self.model.reasoning))


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationBatch:
    """Results of planned generations in order: outputs as judged, or failures."""

    planned: Sequence[PlannedGeneration]
    texts: Mapping[str, StoredText]
    """Stored outputs by key."""
    failures: Mapping[str, GenerationFailure]
    """Failures to generate an output, by key."""
    calls: Mapping[JudgeCall, TextOrFailure] = field(default_factory=dict)
    """Answers to calls that a judge has already made for these outputs."""

    def has(self, position: int) -> bool:
        """Whether the output or failure at a position is already known."""
        key = self.planned[position].key
        return key in self.texts or key in self.failures

    def __iter__(self) -> Iterator[TextOrFailure]:
        return (self[position] for position in range(len(self.planned)))

    def __getitem__(self, position: int) -> TextOrFailure:
        planned = self.planned[position]
        if planned.key not in self.texts:
            return self.failures[planned.key]
        text = self.texts[planned.key]
        judged = planned.judged(text.text)
        return text if judged == text.text else replace(text, text=judged)


RequestGroups = list[list[PlannedGeneration]]


def missing_groups(planned: Sequence[PlannedGeneration], size: int, known: Set[str]) -> RequestGroups:
    """Group the generations whose result is unknown; each output occurs once."""
    seen = set(known)
    groups: RequestGroups = []
    for group in _groups(planned, size):
        missing = {each.key: each for each in group if each.key not in seen}
        seen |= missing.keys()
        groups.append(list(missing.values()))
    return _spread([group for group in groups if group])


GOLDEN = 0.6180339887498949
"""Inverse of the golden ratio: fractional parts of its multiples are evenly spread over [0, 1)."""


def _spread(groups: RequestGroups) -> RequestGroups:
    """Spread each candidate's requests to a server over the round.

    At the beginning and the end of a round, a server answers few requests at once, and each takes a large
    share of its time. In the order of prompts, candidates with equal work would get different shares.
    """
    local = [group for group in groups if group[0].model.provider not in ELSEWHERE]
    served = [group for group in groups if group[0].model.provider in ELSEWHERE]
    order = sorted(range(len(served)), key=lambda place: place * GOLDEN % 1.0)
    return [*local, *(served[place] for place in order)]


def whole_calls(
    planned: Sequence[PlannedGeneration], size: int, known: Set[str], made_in: Mapping[str, int], own: int
) -> RequestGroups:
    """Group the requests of a round, regardless of how many were answered since.

    If outputs depend on the rest of their batch, a process that resumes must send the same batches as the
    first one. So a group contains the requests that were unanswered when the round began. Outputs that rounds
    in flight have stored since are not skipped, because their time of arrival depends on the clock.

    Args:
        planned: All outputs that the round needs, in order.
        size: Maximum number of requests in a group.
        known: Keys of outputs that are stored or cannot be generated.
        made_in: For outputs generated since the round began: number of the round that generated them, by key.
        own: Number of this round.
    """
    calls = missing_groups(planned, size, known - made_in.keys())
    # A group is committed as a whole, except for failed requests, which are not stored.
    left = [
        [each for each in call if each.key not in known]
        if any(made_in.get(each.key) == own for each in call)
        else call
        for call in calls
    ]
    return [call for call in left if any(each.key not in known for each in call)]


def _groups(planned: Sequence[PlannedGeneration], size: int) -> RequestGroups:
    """Group generations by model, with similar prompts next to each other.

    A prefix cache of any size can then reuse their common beginning.
    """
    by_model: dict[str, list[PlannedGeneration]] = {}
    for generation in planned:
        by_model.setdefault(generation.model.name, []).append(generation)
    for wanted in by_model.values():
        wanted.sort(key=lambda each: each.request.prompt)
    return [
        wanted[start : start + size] for wanted in by_model.values() for start in range(0, len(wanted), size)
    ]
