"""The tasks that a round sets people: one for each text or pair that nobody has judged yet.

The tasks of a round are stored once all its texts are there, and the campaign waits until each is answered.
They follow from the round and its texts alone, so that a run that was interrupted sets the same ones again
and none twice. An output that another candidate wrote as well is rated once for both.
"""

from collections.abc import Iterator
from dataclasses import replace

from winnow.storage.records.human import annotations
from winnow.storage.records.leases import writing_under
from winnow.storage.records.record_types import NewAnnotationTask, RoundRecord, StoredText
from winnow.tasks.campaign.missing_texts import GenerationBatch
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
from winnow.tasks.text.canonical_json import sha256


def is_judged_by_people(checked: ResolvedCampaign) -> bool:
    """Whether rounds wait for people."""
    return isinstance(checked.judge, People)


def lacks_annotations(campaign: CampaignSession) -> bool:
    """Whether tasks of the planned round are stored that nobody has answered."""
    if not is_judged_by_people(campaign.checked):
        return False
    with campaign.database.reading() as session:
        return annotations.lacking(session, campaign.record.id) > 0


def ask_people(campaign: CampaignSession, round_: RoundRecord, texts: GenerationBatch) -> bool:
    """Store the tasks of a round whose texts are there; return whether some of them are not answered.

    Raises:
        LeaseLost: If another process took the campaign over; nothing is stored.
    """
    if not is_judged_by_people(campaign.checked):
        return False
    wanted = list(_tasks(campaign, round_, texts).values())
    keys = [each.key for each in wanted]
    with campaign.database.reading() as session:
        is_stored = annotations.keys_among(session, keys).issuperset(keys)
    if not is_stored:
        with writing_under(campaign.database, campaign.lease) as session:
            annotations.add_tasks(session, round_.id, wanted)
    with campaign.database.reading() as session:
        return len(annotations.answers(session, keys)) < len(set(keys))


def told_by_people(
    campaign: CampaignSession, round_: RoundRecord, texts: GenerationBatch
) -> ResolvedCampaign:
    """The campaign whose judge has all at hand that people said of a round; any other as it is."""
    judge = campaign.checked.judge
    if not isinstance(judge, People):
        return campaign.checked
    wanted = _tasks(campaign, round_, texts)
    with campaign.database.reading() as session:
        found = annotations.answers(session, [each.key for each in wanted.values()])
    said = {
        key: Annotation(verdict=found[task.key].verdict, annotator=found[task.key].annotator)
        for key, task in wanted.items()
        if task.key in found
    }
    return replace(campaign.checked, judge=judge.with_annotations(said))


def _tasks(
    campaign: CampaignSession, round_: RoundRecord, texts: GenerationBatch
) -> dict[str, NewAnnotationTask]:
    """The tasks for people, by the keys that the judge knows them by."""
    if isinstance(campaign.checked.judge, HumanPairJudge):
        return dict(_comparing(campaign, round_, texts))
    return dict(_rating(campaign, round_, texts))


def _comparing(
    campaign: CampaignSession, round_: RoundRecord, texts: GenerationBatch
) -> Iterator[tuple[str, NewAnnotationTask]]:
    for position, duel in round_duels(campaign, round_, texts).items():
        if needs_people(duel):
            first, second = texts[2 * position], texts[2 * position + 1]
            assert isinstance(first, StoredText)
            assert isinstance(second, StoredText)
            key = duel_key(duel)
            yield (
                key,
                NewAnnotationTask(
                    key=_stored_key(campaign, key),
                    example_id=campaign.example_ids[round_.examples[position]],
                    generation_a_id=first.id,
                    generation_b_id=second.id,
                    presentation_order=presentation_order(duel),
                ),
            )


def _rating(
    campaign: CampaignSession, round_: RoundRecord, texts: GenerationBatch
) -> Iterator[tuple[str, NewAnnotationTask]]:
    for place, example in enumerate(steps_of(campaign.checked).examples_of(campaign, round_)):
        text = texts[place]
        if isinstance(text, StoredText):
            key = rating_key(campaign.checked.dataset.examples[example].key, text.text)
            yield (
                key,
                NewAnnotationTask(
                    key=_stored_key(campaign, key),
                    example_id=campaign.example_ids[example],
                    generation_a_id=text.id,
                ),
            )


def _stored_key(campaign: CampaignSession, key: str) -> str:
    return sha256([campaign.record.name, key])
