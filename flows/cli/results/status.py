"""status, list, show, report: print campaigns' status and results, without importing model libraries."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.flows.cli.options import (
    DEFAULT_STORAGE,
    CampaignName,
    Json,
    OneCampaign,
    ReadStorage,
    campaign_names,
)
from winnow.flows.exit_codes import ERROR
from winnow.flows.reports.default_database import reading
from winnow.storage.json_types import JsonObject
from winnow.tasks.campaign.look import Look

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from winnow.tasks.queries.status import CampaignStatus

MOST_CHECKED = 30
"""Maximum number of campaigns whose outputs are checked for a list of all campaigns."""

OptionalName = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]", help="Name of a campaign; default: all campaigns.", autocompletion=campaign_names
    ),
]


def status(name: OptionalName = None, storage: ReadStorage = DEFAULT_STORAGE, json: Json = False) -> None:
    """Show the status of a campaign, or of all campaigns."""
    from winnow.flows.reports.output import print_json
    from winnow.flows.reports.summary import print_summary
    from winnow.storage.engine.database import shown_url
    from winnow.storage.records import campaigns as campaign_records
    from winnow.tasks.queries.status import campaign_status, each_status, with_output_warnings
    from winnow.tasks.text.printable import one_line

    with reading(storage) as session:
        if name is None:
            listed, wrong = each_status(session)
            are_few = len(listed) <= MOST_CHECKED
            statuses = [
                with_output_warnings(Look(session, record), each) if are_few else each
                for record, each in listed
            ]
        else:
            record, wrong = campaign_records.get_campaign(session, name), []
            statuses = [campaign_status(Look(session, record), in_full=True)]
        if json:
            found = [_as_json(each, storage) for each in statuses]
            print_json(found if name is None else found[0])
            _name_unreadable(wrong)
            return
        for each in statuses:
            print_summary(each, storage, is_brief=len(statuses) > 1)
            if each.holder:
                print(f"  run by    {one_line(str(each.holder))}")
    if not statuses and not wrong:
        print(f"no campaigns in {shown_url(storage)}")
    elif name is None:
        omitted = "details, new examples and costs" if are_few else "warnings about outputs, and details"
        print(f"\nfor {omitted}: winnow status NAME")
    _name_unreadable(wrong)


def _name_unreadable(wrong: Sequence[str]) -> None:
    """Print why campaigns are missing from a list, and exit with an error; do nothing if none are missing."""
    from winnow.flows.reports.output import tell

    for sentence in wrong:
        tell(f"winnow: {sentence}")
    if wrong:
        raise typer.Exit(ERROR)


def list_campaigns(storage: ReadStorage = DEFAULT_STORAGE, json: Json = False) -> None:
    """List all campaigns of a database."""
    from winnow.flows.reports.output import print_json
    from winnow.flows.reports.rows.writer import print_rows
    from winnow.tasks.queries.status import each_status
    from winnow.tasks.text.phrases import list_of

    rows: list[JsonObject] = []
    with reading(storage) as session:
        listed, wrong = each_status(session)
        for record, each in listed:
            certificate, people = each.answer.certificate, each.answer.people
            rows.append(
                {
                    "campaign": each.name,
                    "series": record.series,
                    "objective": record.objective,
                    "state": each.state,
                    "outcome": each.answer.outcome,
                    "claim": each.answer.claim.kind,
                    "baseline": each.answer.baseline,
                    "best": list_of(each.answer.listed) or None,
                    "winners": sorted(each.answer.winners),
                    "estimate": each.answer.listed_estimate,
                    "held_out": each.answer.listed_held_out,
                    "comparisons": each.totals["answered"],
                    "grid": each.totals["grid"],
                    "labels_used": certificate and certificate.labels_used,
                    "labels_wanted": people.wanted if people else certificate and len(certificate.waits_for),
                    "created": record.created_at,
                }
            )
    if json:
        print_json(rows)
    else:
        for row in rows:
            del row["winners"]  # `best` names them, shortened to a line
        print_rows(rows, "table")
    _name_unreadable(wrong)


def show(
    name: CampaignName,
    storage: ReadStorage = DEFAULT_STORAGE,
    json: Json = False,
) -> None:
    """Show a campaign's stored definition and its status."""
    import yaml

    from winnow.flows.reports.output import print_json
    from winnow.flows.reports.summary import print_summary
    from winnow.storage.records import campaigns as campaign_records
    from winnow.tasks.queries.status import campaign_status
    from winnow.tasks.text.printable import one_line

    with reading(storage) as session:
        record = campaign_records.get_campaign(session, name)
        each = campaign_status(Look(session, record), in_full=True)
        candidates = campaign_records.candidate_names(session, record.id)
        if json:
            print_json({**asdict(record), "candidates": candidates, "status": _as_json(each, storage)})
            return
        print_summary(each, storage)
        print(f"  begun     {record.created_at:%Y-%m-%d %H:%M:%S} UTC")
        print("\ndefinition")
        print(
            yaml.safe_dump({**record.spec, **record.execution}, sort_keys=False, allow_unicode=True).rstrip()
        )
        print(f"\ncandidates ({len(candidates)})")
        print("\n".join(f"  {one_line(candidate)}" for candidate in candidates))
        print(
            "\nversions: " + ", ".join(one_line(f"{key} {value}") for key, value in record.versions.items())
        )


def report(
    name: OneCampaign = None,
    storage: ReadStorage = DEFAULT_STORAGE,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write one HTML page with figures; replaces an earlier page."),
    ] = None,
    png: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write each figure of the page as a PNG; overwrites files of the same names. "
            "Needs Chrome or Chromium.",
        ),
    ] = None,
    pdf: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the page as a PDF; replaces an earlier PDF. Needs Chrome or Chromium.",
        ),
    ] = None,
    all_: Annotated[
        Path | None,
        typer.Option(
            "--all",
            metavar="DIR",
            help="Write a page for every campaign and an index into a folder, for any web server; "
            "overwrites existing pages.",
        ),
    ] = None,
    model_card: Annotated[
        Path | None,
        typer.Option(
            "--model-card",
            metavar="FILE",
            help="Write a section for the winner's model card, in Markdown: the answer, its confidence, "
            "and how to check it; replaces an earlier section.",
        ),
    ] = None,
) -> None:
    """Print the full report of a campaign, or write it as a page, pictures or a model-card section."""
    from winnow.storage.records import campaigns as campaign_records
    from winnow.tasks.errors import SpecError
    from winnow.tasks.plugins.extras import require

    if (name is None) == (all_ is None):
        raise SpecError("name a campaign to report, or give --all DIR")
    drawn = any(each is not None for each in (html, png, pdf))
    if drawn or all_ is not None:
        require("report", "a report with figures")
    with reading(storage) as session:
        if name is None:
            _write_bundle(session, all_, others=(html, png, pdf, model_card))
            return
        campaign = campaign_records.get_campaign(session, name)
        if not drawn and model_card is None:
            from winnow.flows.reports.terminal.sections import print_report

            print_report(Look(session, campaign), storage)
            return
        written = []
        if drawn:
            from winnow.flows.reports.html.page import write_report

            written = write_report(Look(session, campaign), html=html, png=png, pdf=pdf)
        if model_card is not None:
            from winnow.flows.reports.export.model_card import write_model_card

            write_model_card(Look(session, campaign), model_card)
            written.append(model_card)
    for path in written:
        print(f"wrote {path}")
    if not written:
        print(f"{name} has no figures yet; no PNG was written")


def _write_bundle(session: "Session", folder: Path | None, *, others: Sequence[Path | None]) -> None:
    from winnow.flows.reports.html.bundle import write_bundle
    from winnow.tasks.campaign.lease import now
    from winnow.tasks.errors import SpecError

    if any(each is not None for each in others):
        raise SpecError(
            "--all writes pages only: remove --html, --png, --pdf and --model-card, or name a campaign"
        )
    assert folder is not None, "--all is given if NAME is not"
    *pages, index = write_bundle(session, folder, now())
    print(f"wrote {len(pages)} page{'s' * (len(pages) != 1)} and {index}")


def _as_json(status: "CampaignStatus", storage: str) -> JsonObject:
    from winnow.flows.reports.summary import resume_command
    from winnow.tasks.answer.status_lines import status_lines

    answer, best = status.answer, status.answer.of_best
    found = asdict(status)
    del found["answer"]
    told = asdict(answer)
    del told["scored"], told["measured"]  # only sentences need them
    lines = status_lines(answer, status.totals)
    return {
        **found,
        **told,
        "estimate": best and best.estimate,
        "lower": best and best.lower,
        "upper": best and best.upper,
        "runner_up": answer.runner_up and answer.runner_up.name,
        "top": answer.top,
        "tied": answer.tied,
        "chosen": answer.chosen,
        "contenders": answer.contenders,
        "is_guaranteed": answer.is_guaranteed,
        "sure": dict(lines).get("confidence", "nothing is claimed"),
        "lines": lines,
        "share_of_grid": status.share_of_grid,
        "share_of_loading": status.share_of_loading,
        "resume": resume_command(status, storage),
    }
