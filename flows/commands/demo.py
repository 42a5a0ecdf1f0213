"""demo: real models, trained on the spot, and a campaign that finds the best of them."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

DEMO_FOLDER = Path(".winnow") / "demo"


class Question(StrEnum):
    """What the demo's campaign asks."""

    best_mean = "best-mean"
    best_duel = "best-duel"
    certify = "certify"


def demo(
    folder: Annotated[Path, typer.Option(help="Where the models, data and results go.")] = DEMO_FOLDER,
    objective: Annotated[
        Question,
        typer.Option(help="Scores on a benchmark, duels before a model that judges, or certificates."),
    ] = Question.best_mean,
) -> None:
    """Train small models, run a campaign on them through vLLM, print the winner; again: resume."""
    from infra.demo.prepare import prepare_certificate, prepare_demo, prepare_duels

    prepare = {
        Question.best_mean: prepare_demo,
        Question.best_duel: prepare_duels,
        Question.certify: prepare_certificate,
    }
    spec = prepare[objective](folder, report=print)

    from flows.launching import run_stored_campaign, store_campaign
    from tasks.campaign_files import check_campaign_file

    checked = check_campaign_file(str(spec))
    store_campaign(checked)
    raise typer.Exit(run_stored_campaign(checked.spec.storage, checked.spec.name))
