"""Find earlier campaigns with outcomes on examples that count as fresh here.

If candidates change, selection examples are drawn again (`tasks.campaign.example_seed`). Labels and held-out
examples are not drawn again, because their number is limited. A prompt that was improved after an earlier
campaign showed its failures looks better on these examples than elsewhere. So does the best of many
candidates on them. The database only shows that such a choice was possible; the user has to know whether it
was made.
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
"""Spec keys that define what is tested, together with `made_of`, `delta` and `epsilon`. The budget is not one
of them, because it only ends a test.
"""

OF_SCORES = {*MADE_OF, "models_asked_as", "judge_asked_as", "served"} - {
    "dataset_fingerprint",
    "history_fingerprint",
}
"""Keys of everything that scores depend on, except the examples: a dataset with one more row is the same
question.
"""

CHANCES = ("selector", "batch_size", "lookahead", "holdout", "history_fingerprint")
"""Keys, besides seed, budget and `delta`, that can change the answer to the same question. For a certificate
the examples are added to them, because it answers the same question on other examples.
"""

SHOWN = "shown"
"""Version key of a deleted campaign that only showed outputs, as `winnow try` creates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """An earlier campaign with other candidates or another test, on the same examples."""

    campaign: str
    examples: int
    """Number of this campaign's fresh examples that have outcomes in the earlier campaign."""
    of: int
    """Number of this campaign's fresh examples."""


def earlier_of(look: Look) -> Earlier | None:
    """Find the earlier campaign with another test on the most fresh examples.

    Fresh examples are those with labels that the campaign used, those that its autoevaluator also answered,
    and held-out ones. Two kinds of earlier campaigns do not count: those that differ only in budget or seed,
    and other runs of a schedule. Their error probabilities add up instead. None if no campaign counts.
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

    Among campaigns with the same number, the first one. None if no campaign has outcomes on fresh examples.
    """
    fresh, found = find_fresh() if others else [], None
    there: dict[int, set[int]] = {}  # positions of the fresh examples in each dataset
    for other in others:
        if other.dataset_id not in there:
            there[other.dataset_id] = positions_elsewhere(
                look.session, look.record.dataset_id, fresh, other.dataset_id
            )
        count = _n_seen(look.at(other), there[other.dataset_id])
        if count > (0 if found is None else found.examples):
            found = Earlier(campaign=name_of(other), examples=count, of=len(fresh))
        if count == len(fresh):
            break  # no campaign can have more
    return found


def _n_seen(look: Look, positions: Collection[int]) -> int:
    """Number of the given examples with outcomes in a campaign, for any candidate.

    Args:
        look: The campaign.
        positions: Positions of the examples in the campaign's own dataset.
    """
    if traits_of(look.record.objective).measures_risk and not isinstance(look.record, PrunedRecord):
        return len({*seen_by(look.session, look.record)} & {*positions})
    return count_scored(look.session, look.record, positions)


def seen_by(session: Session, campaign: CampaignRecord) -> Collection[int]:
    """Positions of the examples with outcomes in a campaign, for any candidate."""
    measures_risk = traits_of(campaign.objective).measures_risk
    return _fresh(Look(session, campaign)) if measures_risk else scored_positions(session, campaign)


def name_of(campaign: CampaignRecord) -> str:
    """The name of an earlier campaign, marked if the campaign was pruned."""
    return f"{campaign.name} (pruned)" if isinstance(campaign, PrunedRecord) else campaign.name


def changed_since(look: Look) -> Earlier | None:
    """Find the earlier campaign with other scores on the most examples scored here.

    Scores differ if anything that they depend on differs, candidates included. Objective, selector and error
    probability do not matter, because the statements that use this hold for all pairs at once. None if no
    campaign has such outcomes.
    """
    mine, met_others = _scores_of(look.record), _met_others(look)
    before = campaigns_before(look.session, look.record, with_duels=True)
    others = [each for each in before if _scores_of(each) != mine or met_others(each)]
    return _most_seen_by(look, others, lambda: scored_positions(look.session, look.record))


def n_shown(look: Look) -> int:
    """Number of examples with outputs shown to a user before the campaign began.

    For example by `winnow try`.
    """
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

    Examples are drawn again if candidates differ. But a change of a served model is only detected when the
    model is contacted.
    """
    changed = _changed_models(look)
    if not changed:
        return False
    seed = seed_of_draws(look.record)
    before = campaigns_before(look.session, look.record, with_duels=True)
    return any(seed_of_draws(each) == seed and _met_before(look.at(each), changed) for each in before)


def serves_another(look: Look, now: CampaignRecord) -> bool:
    """Whether a served model changed between the contacts of two campaigns.

    The later campaign can have contacted the earlier model, too.
    """
    return _met_before(look, _changed_models(look.at(now)))


def _changed_models(look: Look) -> dict[str, int]:
    """Served models that had changed before the contact, with the number of changes."""
    met = pruned_records.epochs_met(look.session, look.record)
    return {model: last for model, (_, last) in met.items() if last > 0}


def _met_before(look: Look, changed: Mapping[str, int]) -> bool:
    met = pruned_records.epochs_met(look.session, look.record) if changed else {}
    return any(met[model][0] < changed[model] for model in changed.keys() & met.keys())


def _met_others(look: Look) -> Callable[[CampaignRecord], bool]:
    """Return a check whether an earlier campaign scored different candidates.

    The check is true if candidates joined that campaign later, or if it contacted a served model before a
    change.
    """
    changed, grown = _changed_models(look), pruned_records.grown(look.session)
    return lambda before: before.id in grown or _met_before(look.at(before), changed)


def earlier_on_same_question(look: Look) -> tuple[str, ...]:
    """Names of earlier decided campaigns on the same question, with other draws.

    The order is from the oldest to the newest. Each of their answers can be wrong with its own probability. A
    campaign with another budget counts, too: the budget can shorten a round, after which the draws differ.
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
    if campaign.spec["selector"]["name"] != GATE:  # a gate's draws do not depend on its budget
        found["budget"] = campaign.execution.get("budget")
    return {**found, "seed": campaign.seed, "delta": campaign.spec["stopping"]["delta"]}


def _by_chance(campaign: CampaignRecord) -> tuple[str, ...]:
    return (*CHANCES, "dataset_fingerprint") if traits_of(campaign.objective).measures_risk else CHANCES


def _scores_of(campaign: CampaignRecord) -> dict[str, object]:
    found = made_of(campaign)
    return {key: value for key, value in found.items() if key in OF_SCORES}


def _fresh(look: Look) -> Collection[int]:
    """Positions of the examples whose outcomes must not have influenced the campaign."""
    if (address := traits_of(look.record.objective).fresh_positions) is None:
        return held_out_positions(look)
    own: Collection[int] = object_at(address)(look)
    return own


def held_out_positions(look: Look) -> set[int]:
    """Positions of the held-out examples, which selection never uses.

    Empty without held-out examples.
    """
    from winnow.tasks.objectives.best_mean.holdout.split import stored_split

    split = stored_split(look)
    return set() if split is None else set(split.held_out.tolist())


def _tested(campaign: CampaignRecord) -> dict[str, object]:
    """All values that define a campaign's test."""
    spec, stopping = campaign.spec, campaign.spec["stopping"]
    found = made_of(campaign) | {key: spec.get(key) for key in TESTED}
    del found["dataset_fingerprint"]  # with more examples, it is the same question
    return {**found, "of": campaign.objective, "delta": stopping["delta"], "epsilon": stopping["epsilon"]}
