"""Earlier campaigns with outcomes on examples that this one's answer takes for fresh.

Draws of selection are made again where candidates change (`tasks.campaign.example_seed`). Labels and held-out
examples are not: there are only so many. A prompt that was fixed where an earlier campaign saw it fail seems
better on these than it is elsewhere, and so does the one of many candidates that did best there. Whether
anything was chosen after seeing them nobody but the user knows; that it could have been is in the database.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.objectives import traits_of
from winnow.storage.queries.objective.earlier_campaigns import (
    campaigns_before,
    count_scored,
    positions_elsewhere,
    scored_positions,
)
from winnow.storage.records import pruned as pruned_records
from winnow.storage.records.record_types import CampaignRecord, PrunedRecord
from winnow.tasks.campaign.example_seed import made_of, seed_of_draws
from winnow.tasks.campaign.look import Look
from winnow.tasks.spec.identity_keys import MADE_OF
from winnow.tasks.spec.selector_traits import GATE
from winnow.tasks.spec.stored_spec import ONLY

TESTED = ("certify", "holdout", "selector")
"""Keys of a spec that, with what scores are made of, `delta` and `epsilon`, say what is tested. A budget only
ends a test."""

OF_SCORES = {*MADE_OF, "models_asked_as", "judge_asked_as", "served"} - {
    "dataset_fingerprint",
    "history_fingerprint",
}
"""All that scores are made of but the examples: a file with one more line is the same question again."""

CHANCES = ("selector", "batch_size", "lookahead", "holdout", "history_fingerprint")
"""Keys by which the same question may get another answer, beside seed, budget and `delta`.

A certificate is about more than its examples: with other examples it answers the same question."""

SHOWN = "shown"
"""Key of the versions of a campaign that was made to show outputs, and deleted: `winnow try` makes one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """An earlier campaign that differs from this one and has outcomes on its examples."""

    campaign: str
    examples: int
    """Number of the examples in question that it has outcomes on."""
    of: int
    """Number of the examples in question."""


def earlier_of(look: Look) -> Earlier | None:
    """The earlier campaign that tested something else on the largest number of the examples taken for fresh.

    Fresh examples are the ones whose labels the campaign was told, those that its autoevaluator answered
    beside them, and those that it holds out. An earlier campaign that differs in its budget or seed alone is
    no such test, as the firings of a schedule are not: the chances of error of two of these add up.
    """
    if not traits_of(look.record.objective).measures_risk and look.record.spec.get("holdout") is None:
        return None
    tested, met_others = _tested(look.record), _met_others(look)
    before = campaigns_before(look.session, look.record, with_duels=True)
    others = [each for each in before if _tested(each) != tested or met_others(each)]
    return _most_seen_by(look, others, lambda: _fresh(look))


def _most_seen_by(
    look: Look,
    others: Sequence[CampaignRecord],
    find_fresh: Callable[[], Collection[int]],
) -> Earlier | None:
    """The campaign of `others` with outcomes on the largest number of fresh examples; None if none has any.

    Of several with as many it is the first.
    """
    fresh, found = find_fresh() if others else [], None
    there: dict[int, set[int]] = {}  # where they stand in each dataset
    for other in others:
        if other.dataset_id not in there:
            there[other.dataset_id] = positions_elsewhere(
                look.session, look.record.dataset_id, fresh, other.dataset_id
            )
        count = _n_seen(look.at(other), there[other.dataset_id])
        if count > (0 if found is None else found.examples):
            found = Earlier(campaign=name_of(other), examples=count, of=len(fresh))
        if count == len(fresh):
            break  # nobody has more
    return found


def _n_seen(look: Look, positions: Collection[int]) -> int:
    """The number of some examples of its dataset that a campaign has outcomes on, whoever answered them."""
    if traits_of(look.record.objective).measures_risk and not isinstance(look.record, PrunedRecord):
        return len({*seen_by(look.session, look.record)} & {*positions})
    return count_scored(look.session, look.record, positions)


def seen_by(session: Session, campaign: CampaignRecord) -> Collection[int]:
    """Positions of the examples that a campaign has outcomes on, whoever answered them."""
    measures_risk = traits_of(campaign.objective).measures_risk
    return _fresh(Look(session, campaign)) if measures_risk else scored_positions(session, campaign)


def name_of(campaign: CampaignRecord) -> str:
    """The name of an earlier campaign, with a mark where the campaign was pruned."""
    return f"{campaign.name} (pruned)" if isinstance(campaign, PrunedRecord) else campaign.name


def changed_since(look: Look) -> Earlier | None:
    """The earlier campaign with other scores on the largest number of the examples that this one compares by.

    Scores are others where anything that they are made of differs, candidates among it. The question, the
    selector and the error probability do not matter to what is said of all pairs at once.
    """
    mine, met_others = _scores_of(look.record), _met_others(look)
    before = campaigns_before(look.session, look.record, with_duels=True)
    others = [each for each in before if _scores_of(each) != mine or met_others(each)]
    return _most_seen_by(look, others, lambda: scored_positions(look.session, look.record))


def n_shown(look: Look) -> int:
    """Number of examples on which a user was shown outputs, as by `winnow try`, before the campaign began."""
    shown = [each for each in campaigns_before(look.session, look.record) if SHOWN in each.versions]
    found: set[int] = set()
    for each in shown:
        if isinstance(each, PrunedRecord):
            found |= positions_elsewhere(
                look.session, each.dataset_id, each.positions, look.record.dataset_id
            )
    return len(found)


def is_drawn_again(look: Look) -> bool:
    """Whether an earlier campaign drew the same examples for what a server has served before it changed.

    Draws are made again where candidates are others, but that a served model is another one is only found
    once it is asked.
    """
    changed = _changed_models(look)
    if not changed:
        return False
    seed = seed_of_draws(look.record)
    before = campaigns_before(look.session, look.record, with_duels=True)
    return any(seed_of_draws(each) == seed and _met_before(look.at(each), changed) for each in before)


def serves_another(look: Look, now: CampaignRecord) -> bool:
    """Whether a served model was found to have changed between the time one campaign met it and another did.

    The later one may have met what was served before, too.
    """
    return _met_before(look, _changed_models(look.at(now)))


def _changed_models(look: Look) -> dict[str, int]:
    """The served models that had changed when a campaign met them, and how often each had."""
    met = pruned_records.epochs_met(look.session, look.record)
    return {model: last for model, (_, last) in met.items() if last > 0}


def _met_before(look: Look, changed: Mapping[str, int]) -> bool:
    met = pruned_records.epochs_met(look.session, look.record) if changed else {}
    return any(met[model][0] < changed[model] for model in changed.keys() & met.keys())


def _met_others(look: Look) -> Callable[[CampaignRecord], bool]:
    """Whether an earlier campaign scored others than its file says by now, or than a campaign met.

    It began as one of others where candidates joined it later.
    """
    changed, grown = _changed_models(look), pruned_records.grown(look.session)
    return lambda before: before.id in grown or _met_before(look.at(before), changed)


def asked_before(look: Look) -> tuple[str, ...]:
    """Names of the earlier decided campaigns that asked the same question by other chances, oldest first.

    Each of their answers may be wrong by a chance of its own. By another budget too: a round is cut to what
    is left of it, and draws others then.
    """
    question, chances = _question(look.record), _chances(look.record)
    changed, grown = _changed_models(look), pruned_records.grown(look.session)
    before = campaigns_before(look.session, look.record, with_duels=True)
    others = [
        each
        for each in reversed(before)
        if _question(each) == question
        and (_chances(each) != chances or {each.id, look.record.id} & grown)
        and not _met_before(look.at(each), changed)
    ]
    return tuple(name_of(each) for each in others if pruned_records.is_decided(look.session, each))


def _question(campaign: CampaignRecord) -> dict[str, object]:
    found = {key: value for key, value in made_of(campaign).items() if key not in _by_chance(campaign)}
    epsilon = campaign.spec["stopping"]["epsilon"]
    return {**found, "of": campaign.objective, "epsilon": epsilon, "certify": campaign.spec.get("certify")}


def _chances(campaign: CampaignRecord) -> dict[str, object]:
    found = {key: campaign.spec.get(key) for key in _by_chance(campaign)}
    if campaign.execution.get("reuse") == ONLY:
        found["draws of"] = campaign.name
    if campaign.spec["selector"]["name"] != GATE:  # whose draws are the first of those of a larger budget
        found["budget"] = campaign.execution.get("budget")
    return {**found, "seed": campaign.seed, "delta": campaign.spec["stopping"]["delta"]}


def _by_chance(campaign: CampaignRecord) -> tuple[str, ...]:
    return (*CHANCES, "dataset_fingerprint") if traits_of(campaign.objective).measures_risk else CHANCES


def _scores_of(campaign: CampaignRecord) -> dict[str, object]:
    found = made_of(campaign)
    return {key: value for key, value in found.items() if key in OF_SCORES}


def _fresh(look: Look) -> Collection[int]:
    """Positions of the examples whose outcomes nothing about a campaign may have been chosen by."""
    if (address := traits_of(look.record.objective).fresh_positions) is None:
        return held_out_positions(look)
    own: Collection[int] = object_at(address)(look)
    return own


def held_out_positions(look: Look) -> set[int]:
    """Positions of the examples that selection never sees; none if none are held out."""
    from winnow.tasks.objectives.best_mean.holdout.split import stored_split

    split = stored_split(look)
    return set() if split is None else set(split.held_out.tolist())


def _tested(campaign: CampaignRecord) -> dict[str, object]:
    """All that says what a campaign tested: one that differs in any of it tested something else."""
    spec, stopping = campaign.spec, campaign.spec["stopping"]
    found = made_of(campaign) | {key: spec.get(key) for key in TESTED}
    del found["dataset_fingerprint"]  # data that have grown are the same question again
    return {**found, "of": campaign.objective, "delta": stopping["delta"], "epsilon": stopping["epsilon"]}
