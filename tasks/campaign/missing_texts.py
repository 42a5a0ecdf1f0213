"""The texts that a round needs: the groups in which they are requested, and the result of each."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from winnow.storage.records.record_types import StoredText
from winnow.tasks.campaign.outputs import Settings, judged_text
from winnow.tasks.engines.known_providers import REMOTE
from winnow.tasks.engines.protocol import GenerationFailure, ModelRef, Request
from winnow.tasks.judges.asking.calls import JudgeCall

TextOrFailure = StoredText | GenerationFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGeneration:
    """One text a round needs, of a candidate or of a judge."""

    key: str
    """The key that its text is stored under."""
    model: ModelRef
    fingerprint: str
    """The fingerprint of the model's weights."""
    request: Request
    replicate: int = 0
    request_key: str | None = None
    """SHA-256 over all that determines the text; None if that is `key`."""
    unasked: GenerationFailure | None = None
    """The failure to be told where there is nothing that a model could be asked; else None."""
    cut_at_stop: bool = False
    """Whether its text is judged up to its stop sequences alone, whatever the server did with these."""

    def judged(self, text: str) -> str:
        """The part of its text that judges see."""
        sampling = self.request.sampling
        if not (self.cut_at_stop and sampling.stop) or sampling.choices or self.request.continuations:
            return text
        return judged_text(text, Settings(sampling.stop, self.model.reasoning))


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationBatch:
    """The results of planned generations, in their order: a text as it is judged, or a failure, for each."""

    planned: Sequence[PlannedGeneration]
    texts: Mapping[str, StoredText]
    """Stored generations by key."""
    failures: Mapping[str, GenerationFailure]
    """Failures to make a text, by key."""
    calls: Mapping[JudgeCall, TextOrFailure] = field(default_factory=dict)
    """The answers to calls that a judge of these texts has made already."""

    def has(self, position: int) -> bool:
        """Whether the text or the failure at a position is known yet."""
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
    """The generations of each group that are not known, each text once; groups without any are left out."""
    seen = set(known)
    groups: RequestGroups = []
    for group in _groups(planned, size):
        missing = {each.key: each for each in group if each.key not in seen}
        seen |= missing.keys()
        groups.append(list(missing.values()))
    return _spread([group for group in groups if group])


GOLDEN = 0.6180339887498949
"""Multiples of it, less their whole parts, lie evenly in [0, 1) however many there are."""


def _spread(groups: RequestGroups) -> RequestGroups:
    """The groups, those of servers in an order in which each candidate's are spread over the round.

    A server answers few requests at once when a round begins and ends, and each then has a large share of its
    time: candidates with equal work would have other shares by the order of their prompts.
    """
    local = [group for group in groups if group[0].model.provider not in REMOTE]
    served = [group for group in groups if group[0].model.provider in REMOTE]
    order = sorted(range(len(served)), key=lambda place: place * GOLDEN % 1.0)
    return [*local, *(served[place] for place in order)]


def whole_calls(
    planned: Sequence[PlannedGeneration], size: int, known: Set[str], made_in: Mapping[str, int], own: int
) -> RequestGroups:
    """The groups that were not answered yet, made of the same requests whatever has been answered since.

    Where texts depend on what is asked beside them, a process that continues has to ask what the first one
    would have asked. So a group holds what was not known when the round began. What rounds in flight have
    stored since is no reason to leave a request out: when it came is up to the clock.

    Args:
        planned: Each text that the round needs, in its order.
        size: Number of texts in a group, at most.
        known: Keys of the texts that are there, or that cannot be made.
        made_in: Numbers of the rounds in which the campaign made texts since this round began, by key.
        own: The number of the round.
    """
    calls = missing_groups(planned, size, known - made_in.keys())
    # A group is committed as a whole, but for requests that failed, of which nothing is kept.
    left = [
        [each for each in call if each.key not in known]
        if any(made_in.get(each.key) == own for each in call)
        else call
        for call in calls
    ]
    return [call for call in left if any(each.key not in known for each in call)]


def _groups(planned: Sequence[PlannedGeneration], size: int) -> RequestGroups:
    """Groups by model, in each of which prompts that begin alike stand next to each other.

    An engine's prefix cache then still has what they share, however small it is.
    """
    by_model: dict[str, list[PlannedGeneration]] = {}
    for generation in planned:
        by_model.setdefault(generation.model.name, []).append(generation)
    for wanted in by_model.values():
        wanted.sort(key=lambda each: each.request.prompt)
    return [
        wanted[start : start + size] for wanted in by_model.values() for start in range(0, len(wanted), size)
    ]
