"""Compare two candidates, of one or two campaigns, on examples scored for both."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from winnow.algorithms.bounds.mean_interval import mean_interval
from winnow.storage.json_types import JsonView
from winnow.storage.objectives import traits_of
from winnow.storage.queries.objective import paired as paired_views
from winnow.storage.queries.objective.paired import Scored
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.answer.new_examples import by_chance

ALPHA = 0.05
"""Error probability of each single interval."""
MOST_EXAMPLES = 20_000
"""Maximum number of scores read per candidate."""
MOST_GROUPS = 24
"""Maximum number of values of a field for grouping."""

UNCERTIFIED = (
    "Each 95% interval holds by itself and for one look at the data, if these examples were drawn at random "
    "and the choice of scored candidates did not depend on scores. The search may have chosen them by "
    "scores, so nothing here is certified; see the answer for what is proven."
)
"""Note on the meaning of intervals of comparisons that were not planned."""

CUT = (
    f" At most {MOST_EXAMPLES:,} scores of a candidate are read, in the order of the data: if the "
    "data are sorted, these examples are not a random sample."
)
"""Sentence added to the note if a candidate has more scores than are read."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two candidates, with its campaign."""

    campaign: CampaignRecord
    candidate: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedExample:
    """An example with scores of both candidates."""

    key: str
    fields: JsonView
    first: float
    second: float
    difference: float
    """The first score minus the second; in duels, how much more often the first is preferred."""
    first_comparison: int
    second_comparison: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """Mean difference over examples, with its interval."""

    n: int
    mean: float
    lower: float
    upper: float
    first_higher: int
    second_higher: int


def paired_examples(session: Session, first: Side, second: Side) -> list[PairedExample]:
    """The examples with scores of both candidates, in dataset order.

    For two campaigns on different data, examples are the same if their key, fields and targets are equal. In
    duels the score is the preference for one of the two over the other.
    """
    if any(traits_of(each.campaign.objective).compares_pairs for each in (first, second)):
        return _of_duels(session, first, second) if first.campaign.id == second.campaign.id else []
    ours, theirs = (
        paired_views.scores(session, side.campaign.id, side.candidate, most=MOST_EXAMPLES)
        for side in (first, second)
    )
    of_key = {each.key: each for each in theirs}
    pairs = [(each, of_key[each.key]) for each in ours if each.key in of_key]
    known = paired_views.examples(session, {each.example_id for pair in pairs for each in pair})
    return [
        _paired(a, b.outcome, b.comparison_id, a.outcome - b.outcome, known[a.example_id][0])
        for a, b in pairs
        if a.example_id == b.example_id or known[a.example_id] == known[b.example_id]
    ]


def are_cut(session: Session, *sides: Side) -> bool:
    """Whether a candidate has more scores, or duels with one opponent, than are read."""
    return any(
        count > MOST_EXAMPLES
        for side in sides
        for count in paired_views.scored_examples(session, side.campaign.id, side.candidate).values()
    )


def _of_duels(session: Session, first: Side, second: Side) -> list[PairedExample]:
    found = paired_views.duel_scores(
        session, first.campaign.id, first.candidate, second.candidate, most=MOST_EXAMPLES
    )
    known = paired_views.examples(session, {each.example_id for each in found})
    return [
        _paired(
            each, 1.0 - each.outcome, each.comparison_id, 2.0 * each.outcome - 1.0, known[each.example_id][0]
        )
        for each in found
    ]


def _paired(
    first: Scored, second: float, comparison: int, difference: float, fields: JsonView
) -> PairedExample:
    return PairedExample(
        key=first.key,
        fields=fields,
        first=first.outcome,
        second=second,
        difference=difference,
        first_comparison=first.comparison_id,
        second_comparison=comparison,
    )


def difference_of(examples: Sequence[PairedExample]) -> PairedDifference | None:
    """The mean difference of examples in any order, with its interval.

    None without examples.
    """
    if not examples:
        return None
    found = np.array([each.difference for each in examples])
    lower, upper = mean_interval((by_chance(found) + 1.0) / 2.0, ALPHA)
    return PairedDifference(
        n=len(found),
        mean=float(found.mean()),
        lower=2.0 * lower - 1.0,
        upper=2.0 * upper - 1.0,
        first_higher=int((found > 0).sum()),
        second_higher=int((found < 0).sum()),
    )


def grouping_fields(examples: Sequence[PairedExample]) -> list[str]:
    """Names of fields that divide the examples into a few groups.

    Their values are texts, whole numbers, or yes or no, as for tags.
    """
    names = dict.fromkeys(name for each in examples for name in each.fields)
    return [name for name in names if _groups_by([each.fields.get(name) for each in examples])]


def _groups_by(values: Sequence[object]) -> bool:
    given = [value for value in values if value is not None]
    if not all(isinstance(value, str | int) for value in given):
        return False
    return 2 <= len(set(map(str, given))) <= min(MOST_GROUPS, len(given) // 2)


def by_field(examples: Sequence[PairedExample], field: str) -> dict[str, PairedDifference]:
    """The difference on the examples with each value of a field, largest group first."""
    groups: dict[str, list[PairedExample]] = {}
    for each in examples:
        if (value := each.fields.get(field)) is not None:
            groups.setdefault(str(value), []).append(each)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return {value: found for value, some in ordered if (found := difference_of(some)) is not None}
