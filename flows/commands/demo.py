"""demo: real models, trained on the spot, and a campaign that finds the best of them."""

from pathlib import Path
from typing import Annotated

import typer

from winnow.flows.commands.options import ObjectiveChoice

DEMO_FOLDER = Path(".winnow") / "demo"


def demo(
    folder: Annotated[Path, typer.Option(help="Where the models, data and results go.")] = DEMO_FOLDER,
    objective: Annotated[
        ObjectiveChoice,
        typer.Option(help="Scores on a benchmark, duels before a judge, certificates, or routed prompts."),
    ] = ObjectiveChoice.best_mean,
) -> None:
    """Train small models, run a campaign on them through vLLM, print the winner; again: resume."""
    from winnow.tasks.extras import require

    require("vllm", "winnow demo")
    from winnow.infra.demo.prepare import prepare_certificate, prepare_demo, prepare_duels, prepare_routes

    prepare = {
        ObjectiveChoice.best_mean: prepare_demo,
        ObjectiveChoice.best_duel: prepare_duels,
        ObjectiveChoice.certify: prepare_certificate,
        ObjectiveChoice.route: prepare_routes,
    }
    spec = prepare[objective](folder, report=print)

    from winnow.flows.launching import run_stored_campaign, store_campaign
    from winnow.tasks.campaign_files import check_campaign_file

    checked = check_campaign_file(str(spec))
    store_campaign(checked)
    raise typer.Exit(run_stored_campaign(checked.spec.storage, checked.spec.name))
