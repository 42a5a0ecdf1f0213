"""Candidates' scores on the examples of each tag.

A repeated query reads only the new rounds.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from winnow.storage.json_types import JsonView
from winnow.storage.queries.objective.paired import outcomes_since
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records.record_types import CampaignRecord
from winnow.storage.records.rounds import told_at
from winnow.tasks.dotted_names import MISSING, value_of

NO_TAG = "none"
"""The value of a tag for an example without the field."""

TagValue = tuple[str, str]
"""A tag and one of its values."""


@dataclass(slots=True)
class Tally:
    """Scores of one candidate on the examples with one value of a tag."""

    scored: int = 0
    unscored: int = 0
    total: float = 0.0


Tallies = dict[TagValue, Tally]
Outcome = tuple[int, float | None]
"""The id of an example, and a score on it; None if unscored."""


class TagCounts:
    """Tags of a campaign's examples, and tallies by tag for candidates.

    For candidates of two successive queries, only the new rounds are read; for other candidates, all rounds.
    """

    _sizes: dict[TagValue, int]
    _tagged: dict[int, tuple[TagValue, ...]]
    """Tag values by example id."""
    _found: dict[str, Tallies]
    """Tallies by candidate."""
    _last: tuple[int, dt.datetime] | None
    """The last round that was read, and the time of its decision; None before the first query."""

    def __init__(self) -> None:
        self._of: object = None
        self._forget()

    def look(
        self, session: Session, campaign: CampaignRecord, tags: Sequence[str], names: Sequence[str]
    ) -> tuple[Mapping[TagValue, int], Mapping[str, Tallies]]:
        """The tallies, and the number of examples for each value of these tags.

        The numbers are in order of appearance.
        """
        of = (campaign.id, campaign.created_at, campaign.dataset_id, tuple(tags))
        # The database may have been replaced since the last query.
        if of != self._of or not self._is_past(session, campaign.id):
            self._forget()
            self._of = of
            self._read_examples(session, campaign.dataset_id, tags)
        last = told_at(session, campaign.id)
        read = {name: self._read(session, campaign.id, name) for name in names}
        # All rows are read, so none of them is counted twice.
        self._found = {name: self._counted(name, rows) for name, rows in read.items()}
        self._last = last
        return self._sizes, self._found

    def _is_past(self, session: Session, campaign_id: int) -> bool:
        return self._last is None or told_at(session, campaign_id, self._last[0]) == self._last

    def _forget(self) -> None:
        self._sizes, self._tagged, self._found, self._last = {}, {}, {}, None

    def _read_examples(self, session: Session, dataset_id: int, tags: Sequence[str]) -> None:
        sizes: dict[tuple[TagValue, ...], int] = {}
        for example, fields in dataset_records.fields_by_id(session, dataset_id).items():
            values = tuple([(tag, value) for tag in tags for value in values_of(fields, tag)])
            self._tagged[example] = values
            sizes[values] = sizes.get(values, 0) + 1
        for values, size in sizes.items():
            for each in values:
                self._sizes[each] = self._sizes.get(each, 0) + size

    def _read(self, session: Session, campaign_id: int, name: str) -> Sequence[Outcome]:
        after = self._last[0] if self._last is not None and name in self._found else None
        return outcomes_since(session, campaign_id, name, after)

    def _counted(self, name: str, rows: Sequence[Outcome]) -> Tallies:
        found = self._found.get(name) or {each: Tally() for each in self._sizes}
        for example, outcome in rows:
            for each in self._tagged[example]:
                _count(found[each], outcome)
        return found


def values_of(fields: JsonView, tag: str) -> list[str]:
    """The values of a tag for an example.

    These are the field's value, or each distinct entry of a list.
    """
    value = value_of(fields, tag)
    if isinstance(value, str) and value:  # true for most
        return [value]
    several = value if isinstance(value, list) else [value]
    names = [NO_TAG if each in (None, "", MISSING) else str(each) for each in several]
    return list(dict.fromkeys(names)) or [NO_TAG]


def _count(tally: Tally, outcome: float | None) -> None:
    if outcome is None:
        tally.unscored += 1
    else:
        tally.scored += 1
        tally.total += outcome
