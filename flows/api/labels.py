"""`winnow.label`: store human labels or judgments that a campaign waits for."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from winnow.flows.api.call_checks import require_url
from winnow.flows.api.judgments import IN_PROGRAM, GivenLabels, rows_of, store_judgments
from winnow.storage.admin.schema import existing
from winnow.storage.engine.database import Database
from winnow.storage.records import annotations
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.errors import SpecError
from winnow.tasks.judges.human import UNCLEAR
from winnow.tasks.objectives.certify import human_labels
from winnow.tasks.objectives.certify.certificate import waits_for
from winnow.tasks.objectives.human.annotating import TERMINAL, require_name
from winnow.tasks.spec.judge_tree import is_human
from winnow.tasks.spec.stored_spec import DEFAULT_STORAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLabels:
    """Counts of stored labels or judgments."""

    new: int
    same: int
    """Labels or judgments that were stored before."""
    changed: int
    empty: int
    """Rows without an answer, which were skipped."""
    wanted: int
    """Labels or judgments that the campaign still needs."""
    skipped: int = 0
    """New and changed labels that mark an example as unanswerable."""
    unused: tuple[str, ...] = ()
    """Ids of labelled examples for which this campaign needs no label."""


def label(
    name: str,
    labels: GivenLabels = None,
    *,
    skip: Sequence[str] = (),
    correct: bool = False,
    annotator: str | None = None,
    storage: str = DEFAULT_STORAGE,
) -> StoredLabels:
    """Store human labels or judgments that a campaign waits for.

    If one of them is refused, none is stored.

    Args:
        name: Name of a certify campaign with labels, or of a campaign with a human judge.
        labels: A mapping from the id of an example to its answer, or from the id of a task to its verdict; or
            rows, a frame or a file with the columns of `Campaign.view("labels")`. Rows without an answer are
            skipped.
        skip: Ids of examples that no human can answer; their loss counts as 1.
        correct: Whether labels may replace stored labels that were not used yet.
        annotator: Name of the annotator. None uses the login name for judgments, and names no annotator for
            labels of examples.
        storage: URL of the results database.

    Returns:
        Counts of what was stored, and what the campaign still needs.

    Raises:
        SpecError: If there is nothing to store, or `skip` is used for a campaign with a human judge.
        DatasetError: If the rows cannot be read.
        WinnowError: If an example or task is unknown, or has another label that cannot be replaced.
        StorageError: If the database cannot be used.
    """
    require_url(storage)
    if labels is None and not skip:
        raise SpecError("nothing to store: give labels, or ids of unanswerable examples as skip")
    with existing(storage) as database:
        with database.reading() as session:
            campaign = campaign_records.get_campaign(session, name)
        if is_human(campaign.spec):
            refuse_skip(skip)
            given = {} if labels is None else labels
            taken = store_judgments(database, campaign, given, annotator, correct=correct)
            with database.reading() as session:
                wanted = annotations.lacking(session, campaign.id)
            return StoredLabels(
                new=taken.new, same=taken.same, changed=taken.changed, empty=taken.empty, wanted=wanted
            )
        human_labels.require_certifying(campaign)
        if annotator is not None:
            require_name(annotator)
        found = store_labels(database, campaign, labels, skip, annotator, correct=correct)
        with database.reading() as session:
            wanted = len(waits_for(Look(session, campaign)))
    return StoredLabels(
        new=found.new,
        same=found.same,
        changed=found.changed,
        skipped=found.skipped,
        empty=found.empty,
        unused=tuple(found.idle),
        wanted=wanted,
    )


def refuse_skip(skip: Sequence[str]) -> None:
    """Refuse `skip` for a campaign with a human judge."""
    if skip:
        raise SpecError(
            f"--skip is for labels of examples; answer {UNCLEAR!r} if a comparison cannot be judged"
        )


def store_labels(
    database: Database,
    campaign: CampaignRecord,
    given: GivenLabels,
    skip: Sequence[str],
    annotator: str | None,
    *,
    correct: bool,
) -> human_labels.Labelled:
    """Store labels of examples, and mark the examples of `skip` as unanswerable; see `label`."""
    found: list[tuple[str, str, human_labels.Answers]] = []
    source = annotator or TERMINAL
    if isinstance(given, str | Path):
        found += human_labels.read_labels(Path(given))
        source = annotator or Path(given).name[:255]
    elif given is not None:
        found += human_labels.labels_in(rows_of(given, (human_labels.ID, human_labels.TARGET)), IN_PROGRAM)
        source = annotator or IN_PROGRAM
    found += [("--skip", key, ()) for key in skip]
    return human_labels.store_labels(database, campaign, found, source, correct=correct)
