"""demo: real models, trained on the spot, and a campaign that finds the best of them."""

from pathlib import Path
from typing import Annotated

import typer

DEMO_FOLDER = Path(".winnow") / "demo"


def demo(
    folder: Annotated[Path, typer.Option(help="Where the models, data and results go.")] = DEMO_FOLDER,
) -> None:
    """Train small models, run a campaign on them through vLLM, print the winner; again: resume."""
    from infra.demo.prepare import prepare_demo

    prepare_demo(folder, report=print)

    from flows.launching import run_stored_campaign, store_campaign
    from tasks.campaign_files import check_campaign_file

    checked = check_campaign_file(str(folder / "campaign.yaml"))
    store_campaign(checked)
    raise typer.Exit(run_stored_campaign(checked.spec.storage, checked.spec.name))
