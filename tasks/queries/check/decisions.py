"""Whether the last decision of each campaign follows from the outcomes that are stored.

A selector without history is made from what is stored of the campaign and told all of its rounds, as at
`winnow resume`; then its decision is compared with the stored one. No file is read for that, and no code of
another package runs.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from winnow.algorithms.errors import AlgorithmError
from winnow.algorithms.protocols import Selector
from winnow.algorithms.registry import rules_version
from winnow.storage.admin.check import UNREADABLE
from winnow.storage.errors import StorageError
from winnow.storage.json_types import JsonObject
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records import rounds as round_records
from winnow.storage.records import stream_batches
from winnow.storage.records.values import CampaignRecord, DecisionRecord, NewDecision
from winnow.tasks.campaign.budget import Allowance
from winnow.tasks.campaign.replay import retold
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.campaign.stored_values import stored_dataset, stored_spec
from winnow.tasks.candidates.candidates import Candidate, StoredCandidate, candidate_names
from winnow.tasks.data.datasets import Dataset
from winnow.tasks.errors import WinnowError
from winnow.tasks.queries.check.judges import Unchecked, said
from winnow.tasks.rounds.record import as_record, believed
from winnow.tasks.setup.check import class_of
from winnow.tasks.setup.open_campaign import SELECTOR_RULES
from winnow.tasks.spec.campaign import CampaignSpec

TOLERANCE = 1e-6
"""Difference, relative or absolute, that other processors and releases of NumPy make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFinding:
    """A stored decision that is not what its selector decides, or the reason why it was not made again."""

    campaign: str
    sentence: str
    is_wrong: bool
    """False if it could not be checked."""
    is_older: bool
    """Whether the campaign was begun before the version of its selector's rules was stored."""

    def __str__(self) -> str:
        return f"the last decision of campaign '{self.campaign}' {self.sentence}"


def decision_findings(session: Session) -> Iterator[DecisionFinding]:
    """The last decisions that do not follow from the stored outcomes, and those that could not be checked."""
    for campaign in campaign_records.campaigns(session):
        begun_with: str | None = None
        try:
            begun_with = campaign.versions.get(SELECTOR_RULES)
            wrong = _wrong(session, campaign, begun_with)
            if wrong is None:
                continue
            sentence = f"does not follow from the stored outcomes: its {wrong}"
            is_wrong = begun_with is not None
        except Unchecked as why:
            sentence, is_wrong = f"could not be checked: {why}", False
        except (WinnowError, AlgorithmError, StorageError, *UNREADABLE) as error:
            sentence, is_wrong = f"could not be checked: {said(error)}", False
        yield DecisionFinding(
            campaign=campaign.name, sentence=sentence, is_wrong=is_wrong, is_older=begun_with is None
        )


def _wrong(session: Session, campaign: CampaignRecord, begun_with: str | None) -> str | None:
    """The way in which a campaign's last decision is not what its selector decides; None if it is.

    Raises:
        Unchecked: If the selector cannot be told what the campaign's own was told, by the same rules.
    """
    stored = outcome_records.decision_as_stored(session, campaign.id)
    if stored is None:
        return None
    name = campaign.spec["selector"]["name"]
    if (rules := rules_version(name)) is None or campaign.spec.get("selector_code") is not None:
        raise Unchecked(f"its selector {name} is of another package")
    if begun_with not in (None, rules):
        raise Unchecked(f"this Winnow decides by other rules (version {rules}, not {begun_with})")
    dataset = stored_dataset(campaign, stream_batches.each_example(session, campaign.id))
    checked = _resolved(session, campaign, dataset)
    selector = _told_again(session, campaign, checked)
    # Numbered by their places, as their names are looked up by.
    decision = as_record(believed(selector, campaign), range(len(checked.candidates)))
    found, _ = stored
    wrong = _differing(found, decision, [each.name for each in checked.candidates])
    if wrong is not None and {found.reason, decision.reason} == {"budget", "running"}:
        raise Unchecked("its budget may have been another one then")
    return wrong


def _told_again(session: Session, campaign: CampaignRecord, checked: ResolvedCampaign) -> Selector:
    """A selector that was told every finished round, with the limit that the campaign's own then had."""
    allowance = Allowance(checked.spec.own_budget if checked.counts_pairs else None)
    for asked, answered in round_records.answered_by_round(session, campaign.id):
        allowance.add(asked, answered)
    selector = checked.create_selector(allowance.limit)
    for _ in retold(session, campaign, checked, selector):
        pass
    return selector


def _resolved(session: Session, campaign: CampaignRecord, dataset: Dataset) -> ResolvedCampaign:
    """A campaign as far as its selector depends on it, by what is stored of it alone.

    It judges nothing, and has no judge.
    """
    spec = stored_spec(campaign, storage="")
    candidates = _candidates(session, campaign, spec, dataset)
    found_by = class_of(spec.objective)
    fields: JsonObject = {"judge": None} | found_by.stored_fields(
        session, campaign, spec, dataset, candidates
    )
    first_rounds = campaign_records.first_rounds(session, campaign.id)
    return found_by(spec=spec, dataset=dataset, candidates=candidates, first_rounds=first_rounds, **fields)


def _candidates(
    session: Session, campaign: CampaignRecord, spec: CampaignSpec, dataset: Dataset
) -> list[Candidate]:
    choices = {each.joined: each for each in candidate_names(spec)}
    found = []
    for record in campaign_records.candidates(session, campaign.id):
        if record.name not in choices:
            raise Unchecked(f"its definition has no candidate {record.name}")
        known = StoredCandidate.from_record(record, dataset.field_names)
        found.append(
            Candidate(
                names=choices[record.name],
                model=known.model,
                fingerprint=known.fingerprint,
                template=known.template,
                prompt_record=record.prompt,
                guardrail=known.guardrail,
                sampling=known.sampling,
            )
        )
    return found


def _differing(stored: DecisionRecord, decision: NewDecision, names: Sequence[str]) -> str | None:
    """The first part of a stored decision that is not what was decided; None if all are the same."""
    best = None if decision.best_candidate_id is None else names[decision.best_candidate_id]
    n_known = len(decision.status)
    parts: dict[str, tuple[object, object]] = {
        "winner": (stored.best, best),
        "status of candidates": (stored.status[:n_known], decision.status),
        "claim": (stored.claim, decision.claim),
        "end": ([stored.stop, stored.reason], [decision.stop, decision.reason]),
        "estimates": (stored.estimates[:n_known], decision.estimates),
        "lower bounds": (stored.lower[:n_known], decision.lower),
        "upper bounds": (stored.upper[:n_known], decision.upper),
        "ranking": (stored.ranking, decision.ranking),
        "differences": (stored.differences, decision.differences),
        "bets": (stored.bets, decision.bets),
    }
    return next((part for part, (one, other) in parts.items() if not _are_alike(one, other)), None)


def _are_alike(stored: object, decided: object) -> bool:
    """Whether two JSON values are the same, numbers up to `TOLERANCE`."""
    if isinstance(stored, Mapping) and isinstance(decided, Mapping):
        return stored.keys() == decided.keys() and all(
            _are_alike(value, decided[key]) for key, value in stored.items()
        )
    if isinstance(stored, list | tuple) and isinstance(decided, list | tuple):
        return len(stored) == len(decided) and all(map(_are_alike, stored, decided))
    if isinstance(stored, float) and isinstance(decided, int | float):
        return math.isclose(stored, decided, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return stored == decided
