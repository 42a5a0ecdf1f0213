"""Annotation tasks of a round: one for each output, or pair, without a judgment.

The tasks of a round are stored when all its outputs exist, and the campaign waits until each is answered.
They depend only on the round and its outputs, so a resumed run creates the same tasks again and none twice.
An output that two candidates generated is rated once for both.
"""

from collections.abc import Iterator
from dataclasses import replace

from winnow.storage.records import annotations
from winnow.storage.records.leases import writing_under
from winnow.storage.records.record_types import NewAnnotationTask, RoundRecord, StoredText
from winnow.tasks.campaign.planned_outputs import GenerationBatch
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.judges.human import (
    Annotation,
    HumanPairJudge,
    People,
    duel_key,
    needs_people,
    presentation_order,
    rating_key,
)
from winnow.tasks.objectives.best_duel.judging import round_duels
from winnow.tasks.objectives.protocol import steps_of
from winnow.tasks.rounds.score import spared_places
from winnow.tasks.text.canonical_json import sha256


class RoundAnnotators:
    """Stores a round's tasks for annotators, and reads their judgments."""

    def __init__(self, campaign: CampaignSession) -> None:
        self._campaign = campaign

    def lack(self) -> bool:
        """Whether stored tasks of the planned round are unanswered."""
        with self._campaign.database.reading() as session:
            return annotations.lacking(session, self._campaign.record.id) > 0

    def ask(self, round_: RoundRecord, texts: GenerationBatch) -> bool:
        """Store the tasks of a round; return whether some of them are unanswered.

        Raises:
            LeaseLost: Another process took the campaign over; nothing is stored.
        """
        wanted = list(self._tasks(round_, texts).values())
        keys = [each.key for each in wanted]
        with self._campaign.database.reading() as session:
            is_stored = annotations.keys_among(session, keys).issuperset(keys)
        if not is_stored:
            with writing_under(self._campaign.database, self._campaign.lease) as session:
                annotations.add_tasks(session, round_.id, wanted)
        with self._campaign.database.reading() as session:
            return len(annotations.answers(session, keys)) < len(set(keys))

    def informed(self, round_: RoundRecord, texts: GenerationBatch) -> ResolvedCampaign:
        """The checked campaign with a judge that has all judgments of a round."""
        judge = self._campaign.checked.judge
        assert isinstance(judge, People)
        wanted = self._tasks(round_, texts)
        with self._campaign.database.reading() as session:
            found = annotations.answers(session, [each.key for each in wanted.values()])
        said = {
            key: Annotation(verdict=found[task.key].verdict, annotator=found[task.key].annotator)
            for key, task in wanted.items()
            if task.key in found
        }
        return replace(self._campaign.checked, judge=judge.with_annotations(said))

    def _tasks(self, round_: RoundRecord, texts: GenerationBatch) -> dict[str, NewAnnotationTask]:
        """The tasks for annotators, by the judge's key."""
        is_of_pairs = isinstance(self._campaign.checked.judge, HumanPairJudge)
        return dict((self._comparing if is_of_pairs else self._rating)(round_, texts))

    def _comparing(
        self, round_: RoundRecord, texts: GenerationBatch
    ) -> Iterator[tuple[str, NewAnnotationTask]]:
        for position, duel in round_duels(self._campaign, round_, texts).items():
            if needs_people(duel):
                first, second = texts[2 * position], texts[2 * position + 1]
                assert isinstance(first, StoredText)
                assert isinstance(second, StoredText)
                key = duel_key(duel)
                yield (
                    key,
                    NewAnnotationTask(
                        key=self._stored_key(key),
                        example_id=self._campaign.example_ids[round_.examples[position]],
                        generation_a_id=first.id,
                        generation_b_id=second.id,
                        presentation_order=presentation_order(duel),
                    ),
                )

    def _rating(self, round_: RoundRecord, texts: GenerationBatch) -> Iterator[tuple[str, NewAnnotationTask]]:
        campaign = self._campaign
        spared = spared_places(campaign, round_, texts)
        for place, example in enumerate(steps_of(campaign.checked).examples_of(campaign, round_)):
            text = texts[place]
            if isinstance(text, StoredText) and place not in spared:
                key = rating_key(campaign.checked.dataset.examples[example].key, text.text)
                yield (
                    key,
                    NewAnnotationTask(
                        key=self._stored_key(key),
                        example_id=campaign.example_ids[example],
                        generation_a_id=text.id,
                    ),
                )

    def _stored_key(self, key: str) -> str:
        return sha256([self._campaign.record.name, key])
