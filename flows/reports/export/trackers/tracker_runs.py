"""Write a stored campaign to experiment trackers."""

from pathlib import Path
from tempfile import TemporaryDirectory

from winnow.flows.reports.default_database import reading
from winnow.storage.engine.database import shown_url
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.campaign.look import Look
from winnow.tasks.plugins.extras import require


def write_runs(name: str, storage: str, *, mlflow: str | None, experiment: str, wandb: str | None) -> None:
    """Write a campaign as a run to each given tracker, and print where the run is.

    Args:
        name: Name of the campaign.
        storage: URL of the campaign's database.
        mlflow: URI of MLflow's server, database or folder; None writes no run to MLflow.
        experiment: Name of MLflow's experiment.
        wandb: Project of Weights & Biases, or ENTITY/PROJECT; None writes no run to W&B.

    Raises:
        ExtraMissing: If a tracker's package, or Plotly for the report, is not installed.
        WinnowError: If a tracker reports an error, or does not answer.
    """
    require("report", "the report of a tracker's run")
    if mlflow is not None:
        require("mlflow", "--mlflow")
    if wandb is not None:
        require("wandb", "--wandb")
    from winnow.flows.reports.export.trackers.campaign_run import campaign_run

    with TemporaryDirectory(prefix="winnow-") as beside:
        with reading(storage) as session:
            campaign = campaign_records.get_campaign(session, name)
            run = campaign_run(Look(session, campaign), Path(beside))
        if mlflow is not None:
            from winnow.flows.reports.export.trackers.mlflow_run import as_uri, export_to_mlflow

            id_ = export_to_mlflow(run, as_uri(mlflow), experiment)
            print(f"wrote run {id_} of experiment {experiment} at {shown_url(mlflow)}")
        if wandb is not None:
            from winnow.flows.reports.export.trackers.wandb_run import export_to_wandb

            print(f"wrote {export_to_wandb(run, wandb)}")
