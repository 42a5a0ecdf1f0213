"""query: rows out of the results database."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from flows.commands.options import DEFAULT_STORAGE, Json, Storage
from flows.output import Format, Row, print_rows
from flows.reading import reading
from tasks.errors import SpecError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from storage.records import CampaignRecord

FormatChoice = StrEnum("FormatChoice", {name: name for name in get_args(Format)})


class View(StrEnum):
    """What can be asked of a campaign."""

    leaderboard = "leaderboard"
    comparisons = "comparisons"
    rounds = "rounds"
    curve = "curve"
    coverage = "coverage"
    head_to_head = "head-to-head"
    strengths = "strengths"
    games = "games"
    judges = "judges"
    verdicts = "verdicts"
    e_values = "e-values"
    weights = "weights"
    labels = "labels"


OF_DUELS = (View.head_to_head, View.strengths, View.games, View.judges, View.verdicts)
"""What only campaigns of duels can answer."""

OF_CERTIFICATES = (View.e_values, View.weights, View.labels)
"""What only campaigns that certify can answer."""


def query(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Name of a campaign.")] = None,
    view: Annotated[View | None, typer.Argument(help="What to ask of it.")] = None,
    sql: Annotated[str | None, typer.Option(metavar="SELECT", help="Ask in SQL instead; read-only.")] = None,
    format_: Annotated[FormatChoice, typer.Option("--format", help="How to print.")] = FormatChoice.table,
    json: Json = False,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to a file.")] = None,
    candidate: Annotated[str | None, typer.Option(help="Only this candidate's comparisons.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many comparisons.")] = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Ask a campaign for its leaderboard, comparisons, rounds, curve, coverage, or ask in SQL.

    Campaigns of duels (best-duel) also answer who beats whom (head-to-head, strengths), and how their
    judges behaved (games, judges, verdicts); campaigns that certify, how the evidence grew (e-values), how
    far the autoevaluator was relied on (weights), and which labels are given and wanted (labels).
    """
    from storage import certify_views, duel_views, repository, views

    chosen: Format = "json" if json else format_.value
    if sql is not None:
        if name is not None:
            raise SpecError("--sql asks the whole database: give no campaign name with it")
        with reading(storage) as session:
            columns, found = views.run_sql(session, sql)
            print_rows((dict(zip(columns, row, strict=True)) for row in found), chosen, output)
        return
    if name is None or view is None:
        raise SpecError(f"name a campaign and one of {', '.join(View)}, or give --sql")
    with reading(storage) as session:
        campaign = repository.get_campaign(session, name)
        is_duels = campaign.objective == "best-duel"
        certifies = campaign.objective == "certify"
        if (view in OF_DUELS and not is_duels) or (view in OF_CERTIFICATES and not certifies):
            askable = "duels" if view in OF_DUELS else "certificates"
            raise SpecError(f"{view} is asked of {askable}, and '{name}' is a {campaign.objective} campaign")
        source = duel_views if view in OF_DUELS or (is_duels and view is View.comparisons) else views
        if view in OF_CERTIFICATES:
            rows = _of_certificates(session, campaign, view)
        elif certifies and view is View.leaderboard:
            rows = certify_views.leaderboard(session, campaign.id)
        elif certifies and view is View.comparisons:
            rows = certify_views.comparisons(session, campaign.id, candidate=candidate, limit=limit)
        elif view is View.comparisons:
            rows = source.comparisons(session, campaign.id, candidate=candidate, limit=limit)
        elif view is View.strengths:
            from tasks.strengths import strengths  # its fit needs scipy, which no other view does

            rows = strengths(session, campaign.id)
        else:
            rows = getattr(source, view.name)(session, campaign.id)
        print_rows(rows, chosen, output)


def _of_certificates(session: "Session", campaign: "CampaignRecord", view: View) -> list[Row]:
    from tasks.certifying import evidence

    views = {
        View.e_values: evidence.e_values,
        View.weights: evidence.weights,
        View.labels: evidence.label_rows,
    }
    return views[view](session, campaign)
