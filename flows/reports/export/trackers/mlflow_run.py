"""Export a campaign as a run of MLflow; a repeated export continues the same run."""

import math
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from winnow.flows.reports.export.trackers.campaign_run import FINAL, TAG, CampaignRun
from winnow.storage.admin.schema import REVISIONS, current_revision
from winnow.storage.engine.database import open_database, shown_url
from winnow.storage.engine.sqlite import refuse_others
from winnow.storage.errors import StorageError
from winnow.tasks.campaign.lease import now
from winnow.tasks.errors import WinnowError
from winnow.tasks.plugins.own_files import link_below
from winnow.tasks.text.printable import escaped, one_line

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

KEY, GROUP = f"{TAG}key", f"{TAG}schedule"
"""Tags of a campaign's key and of its schedule, by which its run is found."""
NOTE = "mlflow.note.content"
"""MLflow's tag for a description, in Markdown."""
MOST_METRICS, MOST_PARAMS = 1_000, 100
"""Maximum numbers per request in MLflow."""

ARTIFACTS = "mlruns"
"""Folder for run files if the server names none, in the working folder."""

SQLITE = "sqlite:///"

DEFAULTS = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}
"""Settings without telemetry, and with short timeouts for unresponsive servers."""


def export_to_mlflow(run: CampaignRun, uri: str, experiment: str) -> str:
    """Write a campaign to an experiment, created if necessary; return the run's id.

    Args:
        run: The campaign.
        uri: URI of the tracking server: http, a database, or a folder.
        experiment: Its name.

    Raises:
        WinnowError: If MLflow refuses or does not answer, if the database is one of Winnow, or if MLflow
            would write through a link.
    """
    _require_other_tables(uri)
    if not uri.startswith("http"):  # whose server keeps the files of runs
        _require_no_links(uri)
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    try:
        client = MlflowClient(tracking_uri=uri)
        return _write(client, run, experiment)
    except Exception as error:  # of a database, what its driver and MLflow's migrations raise comes through
        why = one_line(str(error).replace(uri, shown_url(uri)))
        raise WinnowError(
            f"--mlflow {shown_url(uri)}: {why}; check that the server runs, and read its log"
        ) from error


def _require_other_tables(uri: str) -> None:
    """Refuse a Winnow database: MLflow would create its own tables in it."""
    try:
        with closing(open_database(uri, read_only=True)) as database:
            holds_results = current_revision(database) in REVISIONS
    except StorageError:  # there is none yet, or it is none that Winnow could use
        return
    if holds_results:
        raise WinnowError(
            f"--mlflow {shown_url(uri)} is a Winnow database, where MLflow would create its own tables; "
            "name another database, such as sqlite:///mlflow.db"
        )


def _require_no_links(uri: str) -> None:
    """Refuse links in MLflow's folder of run files, and names by which SQLite would write to other files."""
    if uri.startswith(SQLITE):
        try:
            refuse_others(uri.removeprefix(SQLITE))
        except sqlite3.OperationalError as error:
            raise WinnowError(f"--mlflow {uri}: {error}") from error
    if (link := link_below(Path(ARTIFACTS))) is not None:
        raise WinnowError(f"{link} is a link, and MLflow would write files to its target: remove it")


def _write(client: "MlflowClient", run: CampaignRun, experiment: str) -> str:
    found = _run_of(client, run, experiment)
    id_ = found.info.run_id
    _log_params(client, id_, run, known=set(found.data.params))
    gone = {key for key in found.data.metrics if key.startswith(FINAL)} - run.summary.keys()
    _log_metrics(client, id_, run, {**run.summary, **dict.fromkeys(gone, math.nan)})
    for key, value in {**run.tags, NOTE: _markdown(run.note)}.items():
        client.set_tag(id_, key, value)
    for key in {each for each in found.data.tags if each.startswith(TAG)} - {KEY, GROUP} - run.tags.keys():
        client.delete_tag(id_, key)
    for path in run.files:
        client.log_artifact(id_, str(path), None if path.suffix == ".html" else "tables")
    client.set_terminated(id_, "FINISHED" if run.has_ended else "RUNNING")
    return str(id_)


def _run_of(client: "MlflowClient", run: CampaignRun, experiment: str) -> "Run":
    """The campaign's run, created if necessary."""
    known = client.get_experiment_by_name(experiment)
    id_ = client.create_experiment(experiment) if known is None else known.experiment_id
    found = client.search_runs([id_], filter_string=f"tags.`{KEY}` = '{run.key}'", max_results=1)
    if found:
        return found[0]
    group = {} if run.group is None else {GROUP: run.group}
    return client.create_run(id_, run_name=run.name, tags={KEY: run.key, **group})


def _log_params(client: "MlflowClient", id_: str, run: CampaignRun, known: set[str]) -> None:
    """Log the missing parameters: MLflow refuses to change one."""
    from mlflow.entities import Param

    new = [Param(key, str(value)) for key, value in run.params.items() if key not in known]
    for begin in range(0, len(new), MOST_PARAMS):
        client.log_batch(id_, params=new[begin : begin + MOST_PARAMS])


def _log_metrics(client: "MlflowClient", id_: str, run: CampaignRun, summary: Mapping[str, float]) -> None:
    """Log the missing rounds, and the current totals: NaN for totals no longer known."""
    from mlflow.entities import Metric

    logged = max((each.step for each in client.get_metric_history(id_, "comparisons")), default=-1)
    written_at = int(now().timestamp() * 1_000)
    new = [
        Metric(key, value, written_at, step)
        for step, metrics in enumerate(run.steps)
        if step > logged
        for key, value in metrics.items()
    ]
    new += [Metric(key, value, written_at, len(run.steps)) for key, value in summary.items()]
    for begin in range(0, len(new), MOST_METRICS):
        client.log_batch(id_, metrics=new[begin : begin + MOST_METRICS])


def _markdown(note: str) -> str:
    return "\n".join(f"- {escaped(line)}" for line in note.splitlines())


def as_uri(given: str) -> str:
    """The URI for MLflow of a folder given as a path; any other URI unchanged."""
    return given if ":" in given else Path(given).absolute().as_uri()
