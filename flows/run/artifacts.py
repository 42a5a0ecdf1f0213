"""A campaign's Prefect artifacts: a log, a progress bar and the leaderboard, updated while it runs.

A separate thread sends them to Prefect's server, so that a slow server delays no round and a failing one ends
no campaign. The thread reads all contents from the database.
"""

import logging
import threading
import time
from collections.abc import Collection
from contextvars import copy_context
from uuid import UUID

from winnow.algorithms.decision import Decision
from winnow.flows.run import artifact_contents as contents
from winnow.storage.records.record_types import RoundRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.objectives.runner import JudgedRound
from winnow.tasks.text.printable import escaped

PACE = 5.0
"""Seconds between two updates."""

SHARE = 0.01
"""Maximum share of the time for updates: slow updates become less frequent."""

FAREWELL = 10.0
"""Maximum seconds of waiting for the last update."""

KEYS = {"progress": "progress", "table": "leaderboard", "markdown": "page"}
"""The ends of the keys of artifacts, by type."""

LOGGER = logging.getLogger("winnow.prefect")


def server_is_the_users() -> bool:
    """Whether the server is the user's own; pages of a temporary server are not visible to anyone."""
    from prefect.settings import Settings

    # A temporary server is set inside this process alone; a new reading of the settings knows none of it.
    return Settings().api.url is not None


class Artifacts:
    """A callback that publishes a campaign on Prefect's pages."""

    wants_to_stop = False

    def __init__(self) -> None:
        self._wake = threading.Event()
        self._has_news = False
        self._is_over = False
        self._is_told = False
        self._thread: threading.Thread | None = None

    def begun(self, campaign: CampaignSession) -> None:
        """See `Callback`."""
        from prefect.runtime import flow_run

        self._campaign, self._run_id = campaign, UUID(flow_run.id)
        self._ids: dict[str, UUID] = {}
        self._log = RunLog(self._run_id)
        self._has_news = True
        # Prefect keeps its settings in the context.
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._publish_for_long,), daemon=True
        )
        self._thread.start()

    def round_judged(self, campaign: CampaignSession, judged: JudgedRound) -> Collection[int]:
        """See `Callback`."""
        return ()

    def round_done(self, campaign: CampaignSession, round_: RoundRecord, decision: Decision) -> None:
        """See `Callback`."""
        self._has_news = True

    def ended(self) -> None:
        """See `Callback`; publishes the final state."""
        if self._thread is None:
            return
        self._has_news = self._is_over = True
        self._wake.set()
        self._thread.join(FAREWELL)
        self._log.close()

    def _publish_for_long(self) -> None:
        wait = 0.0
        while not self._is_over:
            self._wake.wait(wait)
            began = time.thread_time()
            if self._has_news:
                self._has_news = False
                self._publish()
            wait = max(PACE, (time.thread_time() - began) / SHARE)
        if self._has_news:
            self._publish()

    def _publish(self) -> None:
        try:
            with self._campaign.database.reading() as session:
                percent, standing = contents.progress(session, self._campaign.record)
                table, title, names = contents.leaderboard(Look(session, self._campaign.record))
                said = contents.standing(Look(session, self._campaign.record))
            self._log.info(said)
            self._show("progress", percent, standing)
            self._show("table", table, title, names)
            if page := contents.page_address(self._campaign.record.name):
                self._show(
                    "markdown", f"[{page}]({page})", f"the page of {escaped(self._campaign.record.name)}"
                )
        except Exception as error:
            # Whatever is wrong with a server is no reason to end a campaign.
            self._complain(error)

    def _show(
        self, type_: str, data: float | str, description: str, metadata: dict[str, str] | None = None
    ) -> None:
        from prefect.client.schemas.actions import ArtifactCreate

        from winnow.flows.prefect_support.client import put_artifact

        shown = ArtifactCreate(
            type=type_,
            key=contents.artifact_key(self._campaign.record.name, KEYS[type_]),
            data=data,
            description=description,
            metadata_=metadata,
            flow_run_id=self._run_id,
        )
        self._ids[type_] = put_artifact(self._ids.get(type_), shown)

    def _complain(self, error: Exception) -> None:
        if not self._is_told:
            self._is_told = True
            LOGGER.warning(
                "Prefect's pages do not show the campaign: %s; it continues",
                str(error) or type(error).__name__,
                extra={"event": "artifacts_failed"},
            )


WINNOW = logging.getLogger("winnow")


class RunLog:
    """Sends the lines of a run, and Winnow's log records of all threads, to Prefect's server."""

    def __init__(self, run_id: UUID) -> None:
        from prefect.logging.handlers import APILogHandler

        self._handler = APILogHandler()
        self._handler.setLevel(logging.INFO)
        self._handler.addFilter(_OfRun(run_id))
        # Of its own, so that a terminal that shows progress does not show it twice.
        self._logger = logging.Logger("winnow.run", logging.INFO)
        self._logger.addHandler(self._handler)
        WINNOW.addHandler(self._handler)

    def info(self, line: str) -> None:
        """Log a line for this run only."""
        self._logger.info("%s", line)

    def close(self) -> None:
        """Send the remaining lines and stop."""
        WINNOW.removeHandler(self._handler)
        self._handler.flush()


class _OfRun(logging.Filter):
    """Adds the flow run to each record; filters nothing out."""

    def __init__(self, run_id: UUID) -> None:
        super().__init__()
        self._run_id = str(run_id)

    def filter(self, record: logging.LogRecord) -> bool:
        """See `logging.Filter`."""
        record.flow_run_id = self._run_id
        return True
