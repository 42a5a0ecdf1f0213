"""Answer arrived prompts: choose, generate, judge and learn as in any round."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from winnow.storage.engine.database import Database
from winnow.storage.records import stream_batches
from winnow.storage.records.record_types import CampaignRecord, NewComparison, RoundRecord, StoredText
from winnow.tasks.campaign.missing_texts import GenerationBatch
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.campaign.session import CampaignSession, running
from winnow.tasks.objectives.route.arrivals import require_route
from winnow.tasks.objectives.route.selector import as_router
from winnow.tasks.objectives.runner import finish_round, restarting
from winnow.tasks.rounds.plan import plan_new, stored_plan
from winnow.tasks.rounds.score import places_of


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedAnswer:
    """The candidate for one prompt, its output, and the score."""

    prompt: str
    candidate: str
    text: str | None
    """The output, of several the representative one; None if the candidate gave none."""
    score: float | None
    reason: str | None
    """Why there is no score."""


def answer_prompts(
    database: Database,
    record: CampaignRecord,
    checked: ResolvedCampaign,
    positions: Sequence[int] | None,
    say: Callable[[RoutedAnswer], None],
) -> int:
    """Answer each of these prompts by the candidate chosen for it, in rounds of a batch.

    A round that was begun earlier and not finished is finished first.

    Args:
        database: The database that holds the campaign.
        record: A route campaign, as stored.
        checked: The same campaign, reopened.
        positions: Example positions, not answered before; None for all arrived prompts without an answer, for
            example after an interruption.
        say: Called with each answer once its round is stored.

    Returns:
        The number of these prompts; `say` is not called for prompts without a remaining candidate.

    Raises:
        WinnowError: If the campaign does not route.
        LeaseHeld: If another live process runs the campaign.
        EngineDied, EngineTimeout: If an engine keeps failing; what was committed stays.
    """
    checked = require_route(record, checked)
    with running(database, record, checked) as campaign:
        if positions is None:
            with database.reading() as session:
                positions = stream_batches.unanswered(session, record.id)
        left = _after_the_begun(campaign, positions, say)
        size = checked.spec.batch_size
        for start in range(0, len(left), size):
            for answer in _answer(campaign, left[start : start + size]):
                say(answer)
        return len(positions)


def _after_the_begun(
    campaign: CampaignSession, positions: Sequence[int], say: Callable[[RoutedAnswer], None]
) -> Sequence[int]:
    """Finish the unfinished round, if there is one; return the positions that are not in it."""
    if (begun := stored_plan(campaign)) is None:
        return positions
    wanted, taken = {*positions}, {*begun.examples}
    for position, answer in zip(begun.examples, _finish(campaign, begun), strict=True):
        if position in wanted:
            say(answer)
    return [each for each in positions if each not in taken]


def _answer(campaign: CampaignSession, positions: Sequence[int]) -> list[RoutedAnswer]:
    round_ = plan_new(campaign, lambda rng: as_router(campaign.selector).ask_about(rng, positions))
    return [] if round_ is None else _finish(campaign, round_)


def _finish(campaign: CampaignSession, round_: RoundRecord) -> list[RoutedAnswer]:
    found = finish_round(campaign, round_, restarting(campaign.most_restarts))
    assert found is not None, "a stream waits for nobody"
    return [_routed(campaign, round_, found.texts, each) for each in found.comparisons]


def _routed(
    campaign: CampaignSession, round_: RoundRecord, texts: GenerationBatch, comparison: NewComparison
) -> RoutedAnswer:
    of_pair = [texts[place] for place in places_of(campaign, comparison.position)]
    shown = [each for each in of_pair if isinstance(each, StoredText)]
    text = next((each for each in shown if each.id == comparison.generation_a_id), None)
    return RoutedAnswer(
        prompt=campaign.checked.dataset.examples[round_.examples[comparison.position]].question,
        candidate=campaign.checked.candidates[round_.arms[comparison.position]].name,
        text=None if text is None else text.text,
        score=comparison.outcome,
        reason=comparison.reason,
    )
