"""Export a campaign as a run of MLflow; repeated exports continue the same run."""

import math
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

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
"""Tags of a run with the campaign's key, by which the run is found, and with its schedule."""
NOTE = "mlflow.note.content"
"""MLflow's tag for a run's description in Markdown."""
MOST_METRICS, MOST_PARAMS = 1_000, 100
"""Maximum numbers of metrics and parameters per request to MLflow."""

ARTIFACTS = "mlruns"
"""MLflow's default folder for files of runs, in the working folder."""

DEFAULTS = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}
"""Default settings of MLflow's client: no telemetry, and few retries for unresponsive servers."""


def export_to_mlflow(run: CampaignRun, uri: str, experiment: str) -> str:
    """Write a campaign's run to an experiment, and return the run's id.

    Args:
        run: The campaign.
        uri: URI of MLflow's tracking store: an http server, a database, or a folder.
        experiment: Name of the experiment, which is created if it does not exist.

    Raises:
        WinnowError: If MLflow reports an error or does not answer, if the database belongs to Winnow, or if
            MLflow would write through a link.
    """
    _require_no_winnow_database(uri)
    store = _store_of(uri)
    if not uri.startswith("http"):  # a server keeps the files of runs itself
        _require_no_links(uri, store)
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    try:
        client = MlflowClient(tracking_uri=uri)
        return _write(client, run, experiment, is_here=store is not None and _is_here(store))
    except WinnowError:
        raise
    except Exception as error:  # errors of a database's driver and of MLflow's migrations are not wrapped
        why = one_line(str(error).replace(uri, shown_url(uri)))
        raise WinnowError(
            f"--mlflow {shown_url(uri)}: {why}; check that the server runs, and read its log"
        ) from error


def _require_no_winnow_database(uri: str) -> None:
    """Refuse a database of Winnow, because MLflow would create its own tables in it."""
    try:
        with closing(open_database(uri, read_only=True)) as database:
            holds_results = current_revision(database) in REVISIONS
    except StorageError:  # the database does not exist yet, or is not of Winnow
        return
    if holds_results:
        raise WinnowError(
            f"--mlflow {shown_url(uri)} is a Winnow database, where MLflow would create its own tables; "
            "name another database, such as sqlite:///mlflow.db"
        )


def _store_of(uri: str) -> Path | None:
    """The file or folder of a store on this machine; None for servers of any kind.

    Raises:
        WinnowError: If SQLite would take its name for options.
    """
    if uri.startswith("file:"):
        return _path_of(uri)
    try:
        url = make_url(uri)
    except ArgumentError:
        return None
    if url.get_backend_name() != "sqlite":
        return None
    if (url.database or "").startswith("file:"):
        raise WinnowError(f"--mlflow {uri}: write the file's plain path, such as sqlite:///mlflow.db")
    return Path(url.database or "")


def _path_of(uri: str) -> Path | None:
    """The path of a `file:` URI or of a plain path; None for another URI."""
    parts = urlsplit(uri)
    return Path(url2pathname(parts.path)) if parts.scheme in ("", "file") else None


def _require_no_links(uri: str, store: Path | None) -> None:
    """Refuse links in MLflow's folders, and files that make SQLite write to other files."""
    folders = [Path(ARTIFACTS)]
    if uri.startswith("file:") and store is not None:
        folders.append(store)
    elif store is not None:
        try:
            refuse_others(str(store))
        except sqlite3.OperationalError as error:
            raise WinnowError(f"--mlflow {uri}: {error}") from error
    for folder in folders:
        here = Path(os.path.relpath(folder)) if _is_here(folder) else folder
        if (link := link_below(here)) is not None:
            raise WinnowError(f"{link} is a link, and MLflow would write files to its target: remove it")


def _is_here(path: Path) -> bool:
    """Whether a path lies in the working folder, links followed."""
    return Path(os.path.realpath(path)).is_relative_to(Path.cwd().resolve())


def _require_near(place: str) -> None:
    """Refuse a place for files of runs, named by a store in the working folder, that is not in this folder.

    Whoever made the store may have named a place of the user's, or a server.
    """
    path = _path_of(place)
    if path is None or not _is_here(path):
        raise WinnowError(
            f"MLflow's store in the working folder has this experiment's files written to {one_line(place)}, "
            "outside this folder; choose another --experiment, or start MLflow's server on that store and "
            "name its URL"
        )


def _write(client: "MlflowClient", run: CampaignRun, experiment: str, *, is_here: bool) -> str:
    found = _run_of(client, run, experiment)
    if is_here:
        _require_near(str(found.info.artifact_uri))
    id_ = found.info.run_id
    _log_params(client, id_, run, logged=set(found.data.params))
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
    """Find the campaign's run in an experiment; create both if they do not exist."""
    existing = client.get_experiment_by_name(experiment)
    id_ = client.create_experiment(experiment) if existing is None else existing.experiment_id
    found = client.search_runs([id_], filter_string=f"tags.`{KEY}` = '{run.key}'", max_results=1)
    if found:
        return found[0]
    group = {} if run.group is None else {GROUP: run.group}
    return client.create_run(id_, run_name=run.name, tags={KEY: run.key, **group})


def _log_params(client: "MlflowClient", id_: str, run: CampaignRun, logged: set[str]) -> None:
    """Log parameters that are not logged yet; MLflow refuses to change a parameter."""
    from mlflow.entities import Param

    new = [Param(key, str(value)) for key, value in run.params.items() if key not in logged]
    for begin in range(0, len(new), MOST_PARAMS):
        client.log_batch(id_, params=new[begin : begin + MOST_PARAMS])


def _log_metrics(client: "MlflowClient", id_: str, run: CampaignRun, summary: Mapping[str, float]) -> None:
    """Log the metrics of rounds that are not logged yet, and the summary."""
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
    """Convert the path of a folder to a URI for MLflow; return a URI unchanged."""
    return given if ":" in given else Path(given).absolute().as_uri()
