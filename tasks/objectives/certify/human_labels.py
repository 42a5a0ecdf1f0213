"""Read human labels from a file or one by one, and store them for a dataset."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from winnow.storage.engine.database import Database
from winnow.storage.json_types import Row
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records import labels, leases
from winnow.storage.records.labels import LabelRecord
from winnow.storage.records.record_types import CampaignRecord, RoundRecord
from winnow.tasks.campaign.lease import is_gone, now, watch
from winnow.tasks.campaign.look import Look
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.data.dataset_files import PlacedRow, rows_given
from winnow.tasks.errors import DatasetError, WinnowError, did_you_mean
from winnow.tasks.objectives.certify.split import parts_of

ID, TARGET, SKIP = "id", "target", "skip"
YES, NO = ("true", "yes", "1"), ("false", "no", "0", "")
"""Accepted values of the column skip, in upper or lower case."""

Answers = tuple[str, ...] | None
"""A human's accepted answers to an example.
Empty if no human can answer it; None if it has no answer yet.
"""


@dataclass(slots=True, kw_only=True)
class Labelled:
    """Counts of stored labels."""

    new: int = 0
    same: int = 0
    """Number of labels that were already stored with the same answers."""
    changed: int = 0
    skipped: int = 0
    """Number of new and changed labels that mark their example as unanswerable."""
    empty: int = 0
    """Number of rows without an answer."""
    idle: list[str] = field(default_factory=list)
    """Keys of examples for which this campaign needs no label."""


def read_labels(path: Path) -> list[tuple[str, str, Answers]]:
    """Read labels from a .jsonl, .json, .csv or .parquet file.

    Its columns are id, target and, optionally, skip. Empty rows are skipped.

    Returns:
        Place, example's key and answers of each row. A row with a null or empty target has no answer yet,
            unless skip marks
        the example as unanswerable.

    Raises:
        DatasetError: The file cannot be read, or a row has no id or target, or both an answer and skip.
    """
    return labels_in(rows_given(path, (ID, TARGET)), str(path))


def labels_in(rows: Iterable[PlacedRow], source: str) -> list[tuple[str, str, Answers]]:
    """Read labels from rows; the result is that of `read_labels`.

    Args:
        rows: The rows, each with its place.
        source: Name of their origin, for error messages.
    """
    found: dict[str, tuple[str, Answers]] = {}
    for place, row in rows:
        key = str(row[ID])
        if key in found:
            raise DatasetError(
                f"{source}, {found[key][0]} and {place}: the id {key!r} occurs twice; keep one label"
            )
        found[key] = (place, _answers(source, place, row))
    return [(f"{source}, {place}", key, answers) for key, (place, answers) in found.items()]


def store_labels(
    database: Database,
    campaign: CampaignRecord,
    given: Sequence[tuple[str, str, Answers]],
    source: str,
    *,
    correct: bool = False,
) -> Labelled:
    """Store labels of examples, all or none.

    Args:
        database: The database of the campaign.
        campaign: Any certify campaign; its labels are shared by all campaigns on its dataset.
        given: Place, key and answers, as `read_labels` returns them.
        source: Origin of the labels, such as a file's name.
        correct: Whether a label can replace another one that was not used yet.

    Raises:
        WinnowError: An example is unknown, has a target in the dataset, or has another label that cannot be
            replaced.
    """
    result = Labelled()
    with database.reading() as session:
        examples = dataset_records.examples(session, campaign.dataset_id)
        users = labels.leases_on(session, campaign.dataset_id) if correct else []
    for _, lease in users:
        watch(database, lease.campaign_id, now=now())
    positions = {each.key: position for position, each in enumerate(examples)}
    labellable = set(parts_of(campaign, examples).labellable.tolist())
    with database.writing() as session:
        stored = labels.labels(session, campaign.dataset_id)
        used = labels.used_positions(session, campaign.dataset_id)
        for place, key, answers in given:
            _require_known(place, key, positions)
            if answers is None:
                result.empty += 1
                continue
            position = positions[key]
            before = stored.get(position)
            own = examples[position].targets
            answers = _several(answers, own or (before.targets if before else ()))
            if (tuple(own) or (before.targets if before else None)) == answers:
                result.same += 1
                continue
            where = f"{place}: the label of example {key!r}"
            if own:
                raise WinnowError(f"{where} is {own[0]!r} in the dataset; remove the row")

            if before is not None:
                if not correct:
                    raise WinnowError(
                        f"{where} is already {_label_words(before.targets)}, from {before.source}; remove "
                        "the row, or use --correct if the new one is right"
                    )
                _require_changeable(Look(session, campaign), where, is_used=position in used)
            labels.set_label(session, campaign.dataset_id, position, answers, source, now())
            stored[position] = LabelRecord(targets=answers, source=source, labelled_at=now())
            result.changed += before is not None
            result.new += before is None
            result.skipped += not answers
            if position not in labellable:
                result.idle.append(key)
    return result


def require_certifying(campaign: CampaignRecord) -> None:
    """Refuse a campaign that uses no human labels.

    Raises:
        WinnowError: The campaign uses no human labels.
    """
    if campaign.objective != "certify":
        raise WinnowError(
            f"'{campaign.name}' is a {campaign.objective} campaign without a human judge, and uses "
            "no labels; name a certify campaign, or one with judge: {type: human}"
        )


def _require_known(place: str, key: str, positions: Mapping[str, int]) -> None:
    if key not in positions:
        remedy = did_you_mean(key, positions) or "correct the id"
        raise WinnowError(f"{place}: the dataset has no example {key!r}; {remedy}")


def _require_changeable(look: Look, where: str, *, is_used: bool) -> None:
    """Refuse to replace a label that is used, or that a running process may be using."""
    if is_used:
        raise WinnowError(
            f"{where} was used in a stored comparison and cannot change; remove the row, or start a new "
            "campaign with a corrected dataset"
        )
    for name, lease in labels.leases_on(look.session, look.record.dataset_id):
        if leases.is_live(lease, is_gone=is_gone):
            raise WinnowError(
                f"{where} cannot change while campaign '{name}' is run by {lease.holder}, which may be "
                "using it; stop that process first"
            )


def _several(answers: tuple[str, ...], known: Sequence[str]) -> tuple[str, ...]:
    """Parse a list of answers stored as text, for an example with several answers.

    The rows of `winnow query NAME labels` have this form. For other examples, text that looks like a list is
    one answer.
    """
    if len(answers) != 1 or len(known) < 2:
        return answers
    try:
        found = json.loads(answers[0])
    except ValueError:
        return answers
    is_list = isinstance(found, list) and all(isinstance(each, str) for each in found)
    return tuple(found) if is_list else answers


def _label_words(targets: Sequence[str]) -> str:
    return repr(targets[0]) if targets else "marked as unanswerable"


def _answers(source: str, place: str, row: Row) -> Answers:
    targets, is_skipped = _targets(source, place, row), _is_skipped(source, place, row)
    if targets and is_skipped:
        raise DatasetError(f"{source}, {place}: the row has both a target and skip; remove one of them")
    return targets if targets or is_skipped else None


def _is_skipped(source: str, place: str, row: Row) -> bool:
    value: object = row.get(SKIP)
    text = "" if value is None else str(value).strip().lower()
    if text not in (*YES, *NO):
        raise DatasetError(f"{source}, {place}: skip is {str(value)[:60]!r}; write true or false")
    return text in YES


def _targets(source: str, place: str, row: Row) -> tuple[str, ...]:
    value: object = row[TARGET]
    values = value if isinstance(value, list) else [] if value is None else [value]
    for item in values:
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            raise DatasetError(
                f"{source}, {place}: the target {str(item)[:60]!r} is not a label; write text, a number "
                "or a list of these"
            )
    return tuple(str(item) for item in values if str(item).strip())


def lacks_labels(campaign: CampaignSession, round_: RoundRecord) -> bool:
    """Whether a round has to wait for the labels of some examples."""
    with campaign.database.reading() as session:
        return bool(labels.keys_without(session, campaign.record.dataset_id, round_.examples))
