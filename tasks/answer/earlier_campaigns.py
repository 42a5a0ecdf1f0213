"""Earlier campaigns with outcomes on examples that this campaign's answer treats as fresh.

Selection examples are drawn again if candidates change (`tasks.campaign.example_seed`). Labels and held-out
examples are not, because their number is limited. If a prompt was improved after an earlier campaign showed
its failures, it looks better on these examples than elsewhere; so does the best of many candidates there.
Only the user knows whether anything was chosen after seeing them; the database shows that it was possible.
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
"""Spec keys that, with the make-up of scores, `delta` and `epsilon`, define what is tested. A budget only
ends a test."""

OF_SCORES = {*MADE_OF, "models_asked_as", "judge_asked_as", "served"} - {
    "dataset_fingerprint",
    "history_fingerprint",
}
"""Everything that scores depend on except the examples: a file with one more line is the same question."""

CHANCES = ("selector", "batch_size", "lookahead", "holdout", "history_fingerprint")
"""Keys besides seed, budget and `delta` that can change the answer to the same question.

A certificate is about more than its examples: with other examples it answers the same question.
"""

SHOWN = "shown"
"""Version key of a campaign that only showed outputs and was deleted, as `winnow try` creates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """An earlier campaign that differs from this one and has outcomes on its examples."""

    campaign: str
    examples: int
    """Number of this campaign's fresh examples with outcomes in the earlier campaign."""
    of: int
    """Number of the examples in question."""


def earlier_of(look: Look) -> Earlier | None:
    """The earlier campaign with another test on the largest number of examples that count as fresh here.

    Fresh examples are those whose labels the campaign observed, those that its autoevaluator also answered,
    and held-out ones. An earlier campaign that differs only in its budget or seed does not count, nor do
    other runs of a schedule: for these, the error probabilities add up.
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
    """The campaign of `others` with outcomes on most of the fresh examples.

    The first one if several have the same number; None if no campaign has outcomes on them.
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
    """Number of these examples of its dataset with outcomes in a campaign, for any candidate."""
    if traits_of(look.record.objective).measures_risk and not isinstance(look.record, PrunedRecord):
        return len({*seen_by(look.session, look.record)} & {*positions})
    return count_scored(look.session, look.record, positions)


def seen_by(session: Session, campaign: CampaignRecord) -> Collection[int]:
    """Positions of the examples with outcomes in a campaign, for any candidate."""
    measures_risk = traits_of(campaign.objective).measures_risk
    return _fresh(Look(session, campaign)) if measures_risk else scored_positions(session, campaign)


def name_of(campaign: CampaignRecord) -> str:
    """The name of an earlier campaign, with a mark if it was pruned."""
    return f"{campaign.name} (pruned)" if isinstance(campaign, PrunedRecord) else campaign.name


def changed_since(look: Look) -> Earlier | None:
    """The earlier campaign with other scores on the largest number of examples compared here.

    Scores differ if anything that they depend on differs, candidates included. The question, the selector and
    the error probability do not matter for statements about all pairs at once.
    """
    mine, met_others = _scores_of(look.record), _met_others(look)
    before = campaigns_before(look.session, look.record, with_duels=True)
    others = [each for each in before if _scores_of(each) != mine or met_others(each)]
    return _most_seen_by(look, others, lambda: scored_positions(look.session, look.record))


def n_shown(look: Look) -> int:
    """Number of examples with outputs shown to a user before the campaign began, as by `winnow try`."""
    shown = [each for each in campaigns_before(look.session, look.record) if SHOWN in each.versions]
    found: set[int] = set()
    for each in shown:
        if isinstance(each, PrunedRecord):
            found |= positions_elsewhere(
                look.session, each.dataset_id, each.positions, look.record.dataset_id
            )
    return len(found)


def is_drawn_again(look: Look) -> bool:
    """Whether an earlier campaign drew the same examples before a served model changed.

    Examples are drawn again if candidates differ, but a change of a served model is only detected once it is
    contacted.
    """
    changed = _changed_models(look)
    if not changed:
        return False
    seed = seed_of_draws(look.record)
    before = campaigns_before(look.session, look.record, with_duels=True)
    return any(seed_of_draws(each) == seed and _met_before(look.at(each), changed) for each in before)


def serves_another(look: Look, now: CampaignRecord) -> bool:
    """Whether a served model was found to have changed between the contacts of two campaigns.

    The later campaign may have contacted the earlier model, too.
    """
    return _met_before(look, _changed_models(look.at(now)))


def _changed_models(look: Look) -> dict[str, int]:
    """Served models that had changed when a campaign contacted them, with the number of changes of each."""
    met = pruned_records.epochs_met(look.session, look.record)
    return {model: last for model, (_, last) in met.items() if last > 0}


def _met_before(look: Look, changed: Mapping[str, int]) -> bool:
    met = pruned_records.epochs_met(look.session, look.record) if changed else {}
    return any(met[model][0] < changed[model] for model in changed.keys() & met.keys())


def _met_others(look: Look) -> Callable[[CampaignRecord], bool]:
    """Whether an earlier campaign scored candidates that its file, or a campaign's contacts, no longer have.

    It began with other candidates if some joined later.
    """
    changed, grown = _changed_models(look), pruned_records.grown(look.session)
    return lambda before: before.id in grown or _met_before(look.at(before), changed)


def asked_before(look: Look) -> tuple[str, ...]:
    """Names of the earlier decided campaigns on the same question with other random choices, oldest first.

    Each of their answers can be wrong with its own probability. A different budget counts as well: it
    shortens a round, and later draws differ.
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
    """Positions of the examples whose outcomes must not have influenced anything about the campaign."""
    if (address := traits_of(look.record.objective).fresh_positions) is None:
        return held_out_positions(look)
    own: Collection[int] = object_at(address)(look)
    return own


def held_out_positions(look: Look) -> set[int]:
    """Positions of the held-out examples, which selection never uses; empty without held-out examples."""
    from winnow.tasks.objectives.best_mean.holdout.split import stored_split

    split = stored_split(look)
    return set() if split is None else set(split.held_out.tolist())


def _tested(campaign: CampaignRecord) -> dict[str, object]:
    """Everything that defines what a campaign tested; a difference in it means a different test."""
    spec, stopping = campaign.spec, campaign.spec["stopping"]
    found = made_of(campaign) | {key: spec.get(key) for key in TESTED}
    del found["dataset_fingerprint"]  # data that have grown are the same question again
    return {**found, "of": campaign.objective, "delta": stopping["delta"], "epsilon": stopping["epsilon"]}
