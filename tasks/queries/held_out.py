"""Views of best-mean campaigns that mark or count held-out comparisons.

Estimates and intervals are about the selection examples. The winner and the runner-up are also scored on
held-out ones, and views count these comparisons like all others. Which examples are held out is not stored,
because it follows from the campaign's seed and the keys of its examples.
"""

from collections.abc import Iterator

from winnow.storage.json_types import JsonView, Row
from winnow.storage.queries import campaign_views
from winnow.storage.queries.objective import paired as paired_views
from winnow.storage.records import rounds as round_records
from winnow.storage.records.campaigns import candidate_names
from winnow.tasks.campaign.look import Look


def leaderboard(look: Look) -> list[Row]:
    """The leaderboard, with the column `held_out` if examples are held out.

    It is the number of scored held-out examples.
    """
    rows = campaign_views.leaderboard(look.session, look.record.id)
    if look.record.spec.get("holdout") is None:
        return rows
    counts = _scored_on_held_out(look)
    return [_after("scored", row, counts.get(row["candidate"], 0)) for row in rows]


def comparisons(look: Look, *, candidate: str | None = None, limit: int | None = None) -> Iterator[Row]:
    """The comparisons, with the column `held_out` if examples are held out.

    It is whether the example of the comparison is held out.
    """
    rows = campaign_views.comparisons(look.session, look.record.id, candidate=candidate, limit=limit)
    if look.record.spec.get("holdout") is None:
        return rows
    # Imported here, as below, because it imports numpy, which other campaigns do not need.
    from winnow.tasks.objectives.best_mean.holdout.split import selection_keys

    seen = selection_keys(look)
    return (_after("example", row, row["example"] not in seen) for row in rows)


def scored_words(row: JsonView) -> str:
    """Number of scored comparisons in a leaderboard's row, held-out ones separately."""
    held_out = row.get("held_out") or 0
    apart = f" (+{held_out:,} held out)" if held_out else ""
    return f"{row['scored'] - held_out:,}{apart}"


def _scored_on_held_out(look: Look) -> dict[str, int]:
    from winnow.tasks.objectives.best_mean.holdout.split import stored_split

    split = stored_split(look)
    assert split is not None
    positions = frozenset(split.held_out.tolist())
    keys = {split.keys[position] for position in positions}
    asked = {
        arm for each in round_records.rounds_on(look.session, look.record.id, positions) for arm in each.arms
    }
    names = candidate_names(look.session, look.record.id)
    found = {names[arm]: paired_views.outcomes(look.session, look.record.id, names[arm]) for arm in asked}
    return {
        name: sum(outcome is not None and key in keys for key, outcome in outcomes.items())
        for name, outcomes in found.items()
    }


def _after(column: str, row: JsonView, value: object) -> Row:
    """Insert the column `held_out` into a row, after another column."""
    found: Row = {}
    for name, each in row.items():
        found[name] = each
        if name == column:
            found["held_out"] = value
    return found
