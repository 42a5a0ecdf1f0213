"""Sections of a best-duel campaign's report in a terminal."""

from winnow.flows.reports.terminal.sections import LEADERBOARD, TerminalSection, by_id
from winnow.storage.json_types import Row
from winnow.storage.queries import campaign_views
from winnow.storage.queries.objective import duels as duel_views
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.objectives.best_duel.views import strengths as strength_rows
from winnow.tasks.text.phrases import rounded


def sections_of(campaign: CampaignRecord) -> tuple[TerminalSection, ...]:
    """Sections between the answer and the coverage."""
    return (
        LEADERBOARD,
        ("Head to head: win rate of the row against the column (scored duels)", _matrix),
        (
            "Strengths: log-odds of beating the average candidate, 95% intervals, valid at a single look",
            strength_rows,
        ),
        (
            "Judges: preference for the answer shown first, and how often the order changed the verdict",
            by_id(duel_views.judges),
        ),
        ("Verdicts", by_id(duel_views.verdicts)),
    )


def _matrix(look: Look) -> list[Row]:
    """A table of win rates with a numbered row and column per candidate, best candidates first."""
    cells = {
        (row["candidate"], row["opponent"]): f"{rounded(row['win_rate'])} ({row['duels'] - row['unscored']})"
        for row in duel_views.head_to_head(look.session, look.record.id)
        if row["win_rate"] is not None
    }
    names = [row["candidate"] for row in campaign_views.leaderboard(look.session, look.record.id)]
    return [
        {
            "": number,
            "candidate": name,
            **{str(column): cells.get((name, other), "") for column, other in enumerate(names, 1)},
        }
        for number, name in enumerate(names, 1)
    ]
