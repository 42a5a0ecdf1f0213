"""label: store human labels or judgments, from a file or typed in the terminal."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.flows.cli.options import DEFAULT_STORAGE, CampaignName, Storage
from winnow.tasks.campaign.look import Look

if TYPE_CHECKING:
    from winnow.storage.engine.database import Database
    from winnow.storage.records.record_types import CampaignRecord
    from winnow.tasks.objectives.certify.human_labels import Labelled


def label(
    name: CampaignName,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="Labels as .jsonl or .csv with the columns id and target, and skip (true if no human can "
            "answer the example); for a human judge, id and verdict. Default: ask in the terminal.",
        ),
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option(
            "--skip",
            metavar="KEY",
            help="Id of an example that no human can answer; its loss counts as 1. Repeatable.",
        ),
    ] = None,
    correct: Annotated[
        bool,
        typer.Option(
            "--correct", help="Replace stored labels by those of the file, if they are not used yet."
        ),
    ] = False,
    annotator: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Name of the annotator; default: your login.")
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Give a campaign the human labels or judgments that it waits for.

    Campaigns with a human judge: you rate outputs, or prefer one of two, one task at a time, without seeing
    which candidate they are from. Each answer is stored immediately. To let annotators work elsewhere, run
    `winnow query NAME labels --format csv --output FILE`: they fill in the column verdict, and optionally
    annotator.

    Campaigns that certify with labels: run `winnow query NAME labels --format csv --output FILE` to get a
    file to fill in; rows without a target are skipped. Labels are shared by all campaigns on the same
    dataset. A label that differs from a stored one is refused without --correct, and a label that was used
    cannot change. If a label is refused, nothing of the file is stored.

    An example that no human can answer blocks the campaign: mark it with --skip KEY, or in a column skip of
    the file. Every answer to it then counts as wrong, which keeps every certificate valid.
    """
    from winnow.flows.api.labels import refuse_skip
    from winnow.flows.cli.annotating import annotate, wanted_of
    from winnow.storage.admin.schema import existing
    from winnow.storage.records import campaigns as campaign_records
    from winnow.tasks.errors import SpecError
    from winnow.tasks.objectives.certify.certificate import waits_for
    from winnow.tasks.objectives.certify.human_labels import require_certifying
    from winnow.tasks.objectives.human.annotating import TERMINAL, require_name
    from winnow.tasks.spec.judge_tree import is_human

    if correct and file is None and not skip:
        raise SpecError("--correct needs labels to store: add FILE or --skip KEY, or remove --correct")
    with existing(storage) as database:
        with database.reading() as session:
            campaign = campaign_records.get_campaign(session, name)
        if is_human(campaign.spec):
            refuse_skip(skip or ())
            annotate(database, campaign, file, annotator, correct=correct)
            _print_next(database, campaign, wanted_of(database, campaign), storage, "judgment")
            return
        require_certifying(campaign)
        if annotator is not None:
            require_name(annotator)
        if file is None and not skip:
            _ask(database, campaign, annotator or TERMINAL, storage)
        else:
            _store(database, campaign, file, skip or [], annotator, correct=correct)
        with database.reading() as session:
            wanted = len(waits_for(Look(session, campaign)))
        _print_next(database, campaign, wanted, storage, "label")


def _store(
    database: "Database",
    campaign: "CampaignRecord",
    file: Path | None,
    skip: list[str],
    annotator: str | None,
    *,
    correct: bool,
) -> None:
    """Store the labels of a file and the unanswerable examples; if one is refused, store none."""
    from winnow.flows.api.labels import store_labels

    sources = [*([] if file is None else [str(file)]), *(["--skip"] if skip else [])]
    found = store_labels(database, campaign, file, skip, annotator, correct=correct)
    _print(found, " and ".join(sources))


def _print(labelled: "Labelled", source: str) -> None:
    from winnow.tasks.text.phrases import count_of, there_already

    same = f", {there_already(labelled.same)}" if labelled.same else ""
    changed = f", {labelled.changed:,} changed" if labelled.changed else ""
    skipped = (
        f", {labelled.skipped:,} of them for examples that no human can answer" if labelled.skipped else ""
    )
    empty = (
        f", {count_of(labelled.empty, 'row')} {'has' if labelled.empty == 1 else 'have'} no target yet"
        if labelled.empty
        else ""
    )
    print(f"{source}: {count_of(labelled.new, 'new label')}{changed}{skipped}{same}{empty}")
    if labelled.idle:
        are = "is on an example that needs" if len(labelled.idle) == 1 else "are on examples that need"
        print(f"  {len(labelled.idle):,} of them {are} no label in this campaign")


def _print_next(
    database: "Database", campaign: "CampaignRecord", wanted: int, storage: str, what: str
) -> None:
    """Print what the campaign waits for; if it waits for nothing, the command that resumes it."""
    from winnow.storage.engine.database import storage_option
    from winnow.storage.records import campaigns as campaign_records
    from winnow.tasks.queries.status import campaign_status
    from winnow.tasks.text.phrases import count_of

    name, where = campaign.name, storage_option(storage)
    with database.reading() as session:
        found = campaign_records.find_campaign(session, name)
        has_ended = found is not None and campaign_status(Look(session, found)).state == "ended"
    if found is None or found.id != campaign.id:
        print(f"{name} was deleted meanwhile")
    elif has_ended:
        serves = (
            "; its labels remain available to other campaigns on the same data" if what == "label" else ""
        )
        print(f"{name} has ended and waits for no {what}s{serves}")
    elif wanted:
        lists = f"winnow query {name} labels {where} lists {'it' if wanted == 1 else 'them'}"
        print(f"{name} waits for {count_of(wanted, f'more {what}')}; {lists}")
    else:
        print(f"{name} waits for no {what}s; run: winnow resume {name} {where}")


def _ask(database: "Database", campaign: "CampaignRecord", source: str, storage: str) -> None:
    """Ask for labels one by one until the end of the input, and store each immediately."""
    from winnow.storage.engine.database import storage_option
    from winnow.storage.records import datasets as dataset_records
    from winnow.tasks.errors import WinnowError
    from winnow.tasks.objectives.certify.certificate import waits_for
    from winnow.tasks.objectives.certify.human_labels import store_labels
    from winnow.tasks.text.phrases import count_of
    from winnow.tasks.text.printable import printable

    with database.reading() as session:
        wanted = waits_for(Look(session, campaign))
        inputs = {
            each.key: each.fields["input"] for each in dataset_records.examples(session, campaign.dataset_id)
        }
    if wanted:
        print(
            f"{count_of(len(wanted), 'label')} {'is' if len(wanted) == 1 else 'are'} wanted; an empty line "
            f"postpones an example, Ctrl-D ends; if no human can answer an example, run: winnow label "
            f"{campaign.name} --skip KEY {storage_option(storage)}"
        )
    for number, key in enumerate(wanted, 1):
        print(f"\n[{number}/{len(wanted)}] example {printable(key)}\n{printable(str(inputs[key]))}")
        try:
            answer = input("label> ").strip()
        except EOFError:
            print()
            break
        if not answer:
            continue
        try:
            store_labels(database, campaign, [(source, key, (answer,))], source)
        except WinnowError as error:  # another annotator has labelled the example meanwhile
            print(error)
