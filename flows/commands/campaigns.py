"""validate, run, resume: the commands that need a campaign's files."""

from typing import TYPE_CHECKING, Annotated

import typer

from flows.commands.options import DEFAULT_STORAGE, CampaignName, Overrides, SpecPath, Storage

if TYPE_CHECKING:
    from tasks.checking import CheckedCampaign

Fork = Annotated[
    str | None,
    typer.Option(metavar="NEW_NAME", help="Run under another name; generations made before are reused."),
]


def validate(spec: SpecPath, set_: Overrides = None) -> None:
    """Check a campaign's file and all it refers to; write nothing."""
    from tasks.campaign_files import check_campaign_file

    checked = check_campaign_file(spec, set_ or [])
    campaign = checked.spec
    count = len(checked.candidates)
    pairs = f", {count * (count - 1) // 2} pairs" if campaign.objective == "best-duel" else ""
    if checked.certification is not None:
        print(_certifies(spec, checked))
        return
    print(
        f"{spec}: campaign '{campaign.name}' is sound: {count} candidates{pairs} x "
        f"{len(checked.dataset.examples)} examples = {checked.grid} comparisons in the full grid, "
        f"at most {campaign.stopping.budget} of them are run, {campaign.batch_size} a round"
    )


def run(
    spec: SpecPath,
    set_: Overrides = None,
    fork: Fork = None,
    storage: Annotated[
        str | None,
        typer.Option(envvar="WINNOW_STORAGE", help="URL of the results database; overrides the file's."),
    ] = None,
) -> None:
    """Run a campaign; one that was begun before goes on where it stopped."""
    from flows.launching import run_stored_campaign, store_campaign
    from tasks.campaign_files import check_campaign_file

    overrides = list(set_ or [])
    if fork is not None:
        overrides.append(f"name={fork}")
    if storage is not None:
        overrides.append(f"storage={storage}")
    checked = check_campaign_file(spec, overrides)
    store_campaign(checked)
    raise typer.Exit(run_stored_campaign(checked.spec.storage, checked.spec.name))


def resume(name: CampaignName, storage: Storage = DEFAULT_STORAGE) -> None:
    """Go on with a stored campaign; its file is not needed."""
    from flows.launching import run_stored_campaign

    raise typer.Exit(run_stored_campaign(storage, name))


def _certifies(spec: str, checked: "CheckedCampaign") -> str:
    certification = checked.certification
    assert certification is not None
    labellable, per_label = certification.parts.blocks.shape
    labelled = sum(bool(checked.dataset.examples[each].targets) for each in certification.parts.labellable)
    order = ", ".join(f"{name} ({cost:g})" for name, cost in certification.costs.items())
    return (
        f"{spec}: campaign '{checked.spec.name}' is sound: {len(checked.candidates)} candidates, tested from "
        f"the dearest on: {order}; {labellable} of {len(checked.dataset.examples)} examples can be labelled "
        f"({labelled} are), at most {checked.spec.stopping.budget} labels are used, {per_label} unlabelled "
        "examples belong to each"
    )
