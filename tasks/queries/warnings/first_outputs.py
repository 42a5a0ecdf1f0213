"""Inspect each candidate's first outputs before their scores can eliminate it.

This does not add, drop or reorder requests: it reads outputs of rounds that the selector proposed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from winnow.storage.queries.candidate_outputs import CandidateCounts, JudgedOutput, targets_of
from winnow.storage.records.record_types import EQUAL_OUTPUTS, NewComparison, StoredText
from winnow.tasks.campaign.look import Look
from winnow.tasks.campaign.outputs import Settings
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.data.datasets import Example
from winnow.tasks.data.labels import labels_of
from winnow.tasks.engines.known_providers import FUNCTION
from winnow.tasks.objectives.runner import JudgedRound
from winnow.tasks.queries.warnings.from_outputs import (
    MOST_EXAMPLES,
    Looked,
    looked_at,
    shown_output,
    warnings_about,
)
from winnow.tasks.queries.warnings.from_spec import CampaignWarning, Kind

ENOUGH = 4
"""Number of outputs at which a candidate is inspected; fewer if the campaign has fewer examples."""

SUSPICIOUS: frozenset[Kind] = frozenset(
    {
        "zero-holds-target",
        "zero-unread",
        "zero-all-equal",
        "zero-other",
        "empty",
        "truncated",
        "thoughts",
        "in-thoughts",
        "structure",
    }
)
"""Kinds of warnings that suggest that the judge, the prompt or a setting causes a low score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A candidate with suspicious first outputs."""

    arm: int
    name: str
    sentences: Sequence[str]
    """The suspected problems, with one output and its target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstLook:
    """The candidates that became suspicious in a round."""

    suspects: Sequence[Suspect] = ()
    warnings: Sequence[CampaignWarning] = ()
    """The same findings, with one sentence for all candidates with the same cause."""


class FirstOutputs:
    """Inspects each candidate of a running campaign once, when it has enough outputs."""

    def __init__(self) -> None:
        self._waiting: dict[int, Looked] | None = None  # by arm, with the outputs so far
        self._labels: Sequence[str] | None = None

    def look(self, campaign: CampaignSession, judged: JudgedRound) -> FirstLook:
        """Inspect the candidates that have enough outputs since this round.

        The round is not recorded yet.
        """
        if self._waiting is None:
            self._waiting = _not_looked_at(campaign)
        if not self._waiting:
            return FirstLook()
        _add_outputs(campaign, judged, self._waiting)
        enough = min(ENOUGH, len(campaign.checked.dataset.examples))
        found = [self._waiting.pop(arm) for arm in [*self._waiting] if _number(self._waiting[arm]) >= enough]
        if not found:
            return FirstLook()
        if self._labels is None:
            with campaign.database.reading() as session:
                targets = targets_of(session, campaign.record.dataset_id, most=MOST_EXAMPLES)
                self._labels = labels_of(targets)
        for looked in found:
            looked.find_faults(campaign.record.spec)
        suspects = [each for looked in found if (each := self._suspect(campaign, looked)) is not None]
        names = {each.name for each in suspects}
        of_suspects = [each for each in found if each.counts.name in names]
        return FirstLook(suspects=suspects, warnings=self._warnings(campaign, of_suspects))

    def _suspect(self, campaign: CampaignSession, looked: Looked) -> Suspect | None:
        warnings = self._warnings(campaign, [looked])
        if not warnings:
            return None
        sentences = [each.sentence for each in warnings]
        if not any(each.kind.startswith("zero-") for each in warnings):
            sentences[0] += f"; {shown_output(looked, warnings[0].kind)}"
        return Suspect(arm=looked.counts.position, name=looked.counts.name, sentences=sentences)

    def _warnings(self, campaign: CampaignSession, found: Sequence[Looked]) -> list[CampaignWarning]:
        if not found:
            return []
        warnings = warnings_about(
            campaign.record, found, self._labels or (), has_ended=True, is_part=True, zeros=True
        )
        return [each for each in warnings if each.kind in SUSPICIOUS and each.about]


def _number(looked: Looked) -> int:
    return looked.counts.scored + looked.counts.unscored


def _not_looked_at(campaign: CampaignSession) -> dict[int, Looked]:
    """Candidates with too few stored outputs for an inspection, by arm.

    Empty if outputs are not read.
    """
    spec = campaign.record.spec
    if spec.get("output_type", "generate") != "generate" or any(
        each.get("provider") == FUNCTION for each in spec.get("models", ())
    ):
        return {}
    stored: dict[int, Looked] = {}
    if campaign.allowance.answered:
        with campaign.database.reading() as session:
            found = looked_at(Look(session, campaign.record))
        stored = {
            each.counts.position: replace(each, outputs=list(each.outputs), faults={}) for each in found
        }
    waiting: dict[int, Looked] = {}
    for arm, candidate in enumerate(campaign.checked.candidates):
        if candidate.sampling.choices:
            continue
        looked = stored.get(arm) or looked_so_far(campaign, arm, ())
        if _number(looked) < ENOUGH:
            waiting[arm] = looked
    return waiting


def _add_outputs(campaign: CampaignSession, judged: JudgedRound, waiting: dict[int, Looked]) -> None:
    """Add a round's outputs to those of the candidates that wait for an inspection."""
    texts = {each.id: each for each in judged.texts if isinstance(each, StoredText)}
    arms = {id_: arm for arm, id_ in enumerate(campaign.candidate_ids)}
    examples = campaign.checked.dataset.examples
    new: dict[int, list[tuple[JudgedOutput, NewComparison]]] = {}
    for comparison, at in zip(judged.comparisons, judged.round_.examples, strict=True):
        for candidate, generation in _sides(comparison):
            arm, text = arms[candidate], texts.get(generation)
            if arm in waiting and text is not None:
                new.setdefault(arm, []).append(
                    (judged_output(examples[at], at, text, comparison), comparison)
                )
    for arm, outputs in new.items():
        before = waiting[arm]
        added = looked_so_far(campaign, arm, outputs)
        waiting[arm] = replace(
            added, counts=_sum(before.counts, added.counts), outputs=[*before.outputs, *added.outputs]
        )


def _sides(comparison: NewComparison) -> Iterator[tuple[int, int]]:
    """Yield each candidate of a comparison and its (first) output, by id."""
    first = comparison.outputs[0].generation_id if comparison.outputs else comparison.generation_a_id
    if first is not None:
        yield comparison.candidate_a_id, first
    if comparison.candidate_b_id is not None and comparison.generation_b_id is not None:
        yield comparison.candidate_b_id, comparison.generation_b_id


def _sum(first: CandidateCounts, second: CandidateCounts) -> CandidateCounts:
    highest = [each.highest for each in (first, second) if each.highest is not None]
    return replace(
        second,
        scored=first.scored + second.scored,
        unscored=first.unscored + second.unscored,
        highest=max(highest, default=None),
        texts=first.texts + second.texts,
        truncated=first.truncated + second.truncated,
    )


def judged_output(example: Example, number: int, text: StoredText, comparison: NewComparison) -> JudgedOutput:
    """An output with its judgment, in the form that is later read from the database.

    Here `number` is the example's position.
    """
    return JudgedOutput(
        example=example.key,
        example_number=number,
        targets=example.targets,
        text=text.text,
        reasoning=text.reasoning,
        finish_reason=text.finish_reason,
        output_tokens=text.output_tokens,
        no_answer=comparison.no_answer,
        answer=comparison.answer,
        reason=comparison.reason,
    )


def looked_so_far(
    campaign: CampaignSession, arm: int, outputs: Sequence[tuple[JudgedOutput, NewComparison]]
) -> Looked:
    """A candidate with outputs that are not recorded yet; its faults are not computed."""
    candidate = campaign.checked.candidates[arm].as_record()
    scores = [each.outcome for _, each in outputs if each.outcome is not None]
    counts = CandidateCounts(
        id=campaign.candidate_ids[arm],
        position=arm,
        name=candidate.name,
        scored=len(scores),
        unscored=len(outputs) - len(scores),
        highest=max([*scores, *(1.0 for _, each in outputs if each.reason == EQUAL_OUTPUTS)], default=None),
        texts=len(outputs),
        truncated=sum(each.finish_reason == "length" for each, _ in outputs),
        refused=0,
        refusal=None,
    )
    return Looked(
        counts=counts,
        model=str(candidate.model.get("name")),
        out=None,
        settings=Settings.from_record(candidate.model, candidate.sampling),
        outputs=[each for each, _ in outputs],
        is_cut=campaign.checked.cuts_at_stop,
    )
