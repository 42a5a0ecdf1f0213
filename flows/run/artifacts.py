"""Show a running campaign on Prefect's pages: a log, a progress bar and the leaderboard.

A separate thread reads these artifacts from the database and sends them to Prefect's server. So a slow server
does not delay a round, and a server that fails does not end a campaign.
"""

import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from hashlib import sha256
from urllib.parse import urlencode
from uuid import UUID

from sqlalchemy.orm import Session

from winnow.algorithms.decision import Decision
from winnow.flows.reports.summary import resume_command
from winnow.flows.run.callbacks import NullCallback
from winnow.storage.engine.database import storage_option
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.record_types import CampaignRecord, RoundRecord
from winnow.tasks.answer.sentences.answer_lines import headline, subject
from winnow.tasks.answer.sentences.margin import leaves_margin
from winnow.tasks.campaign.look import Look
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.queries.held_out import scored_words
from winnow.tasks.queries.status import CampaignStatus, campaign_status
from winnow.tasks.queries.views import ask
from winnow.tasks.text.phrases import list_of, rounded
from winnow.tasks.text.printable import escaped, one_line

VIEW_VARIABLE = "WINNOW_VIEW_URL"
"""Environment variable with the URL of `winnow view`, for links."""

MOST_ROWS = 50
"""Maximum number of candidates in the table; `winnow query NAME leaderboard` shows all."""

_COLUMNS = (
    "candidate",
    "status",
    "estimate",
    "lower",
    "upper",
    "scored",
    "unscored",
    "output_tokens",
    "seconds",
)


def artifact_key(campaign: str, what: str) -> str:
    """Key of a campaign's artifact: lowercase letters, digits and dashes, as Prefect requires."""
    slug = re.sub(r"[^a-z0-9]+", "-", campaign.lower())
    # Different names can have the same slug, so a digest of a changed name is appended.
    mark = "" if slug == campaign else f"-{sha256(campaign.encode()).hexdigest()[:6]}"
    return f"winnow-{slug.strip('-')}{mark}-{what}"


def ending(look: Look, storage: str) -> str:
    """Status of a campaign after its run, and commands that show or continue it; one sentence per line.

    Args:
        look: The campaign.
        storage: URL of its database, without a password.
    """
    status = campaign_status(look, in_full=True)
    lines = [_status_line(status), one_line(" ".join(status.headline_sentences()))]
    if page := page_address(look.record.name):
        lines.append(f"page: {page}")
    lines.append(
        f"report: winnow report {look.record.name} --html {look.record.name}.html {storage_option(storage)}"
    )
    if (resume := resume_command(status, storage)) is not None:
        lines.append(f"continue: {resume}")
    return "\n".join(lines)


def status_line(look: Look) -> str:
    """The status of a campaign as one line of plain text."""
    return _status_line(campaign_status(look))


def page_address(campaign: str) -> str | None:
    """URL of a campaign's page; None if the URL of `winnow view` is not set."""
    base = os.environ.get(VIEW_VARIABLE, "").rstrip("/")
    return f"{base}/campaign?{urlencode({'campaign': campaign})}" if base else None


def progress(session: Session, campaign: CampaignRecord) -> tuple[float, str]:
    """Percentage of the budget spent, 100 after the campaign has ended, and the status line."""
    status = campaign_status(Look(session, campaign))
    grid = status.totals["grid"]
    shares = [each.share for each in status.budgets]
    if status.budget is None and grid:
        shares.append(status.totals["comparisons"] / grid)
    has_ended = status.is_settled and status.state != "waiting"
    percent = 100.0 if has_ended else min(100.0 * max(shares, default=0.0), 100.0)
    return percent, _status_line(status, escaped)


def leaderboard(look: Look) -> tuple[str, str, dict[str, str]]:
    """The leading candidates as a JSON table, the table's title, and their names by row.

    Prefect's pages interpret cells as Markdown, so names are escaped in the table. The third part has the
    names unescaped, for the artifact's metadata.
    """
    found = list(ask(look, "leaderboard"))
    rows = [_row(row) for row in found[:MOST_ROWS]]
    decision = outcome_records.latest_decision(look.session, look.record.id)
    finished = 0 if decision is None else decision.round_number + 1
    cut = f"; the first {MOST_ROWS} of {len(found)} candidates" if len(found) > MOST_ROWS else ""
    names = {f"candidate {number}": row["candidate"] for number, row in enumerate(found[:MOST_ROWS], 1)}
    return json.dumps(rows), f"{escaped(look.record.name)} after {finished} rounds{cut}", names


def _row(row: dict[str, object]) -> dict[str, object]:
    shown = {name: _cell(row[name]) for name in _COLUMNS}
    if row.get("held_out"):  # the estimate does not include held-out scores
        shown["scored"] = scored_words(row)
    return {"best": "best" if row["best"] else "", **shown}


def _cell(value: object) -> object:
    if isinstance(value, str):
        return escaped(value)  # Prefect's pages interpret cells as Markdown
    return float(rounded(value)) if isinstance(value, float) else value


def _status_line(status: CampaignStatus, shown: Callable[[str], str] = one_line) -> str:
    """The status of a campaign as one line; `shown` converts names, for example by escaping."""
    leader = status.answer.of_best
    is_unfit = status.answer.outcome == "none" and status.answer.constraints
    none = "no candidate meets the constraints" if is_unfit else "no best candidate yet"
    word = "named" if leaves_margin(status.answer) else "best"
    best = none if leader is None else f"{word} {shown(list_of(status.answer.listed))}"
    if status.answer.baseline is not None:
        best = shown(subject(status.answer))
    elif status.answer.listed_estimate is not None:
        best += f" {rounded(status.answer.listed_estimate)}"
    if status.answer.listed_held_out is not None:
        best += f" (held out {rounded(status.answer.listed_held_out)})"
    budgets = ", ".join(str(each) for each in status.budgets)
    return f"{shown(status.name)}: {headline(status.answer, status.state)}, {best}; {budgets}"


PACE = 5.0
"""Minimum seconds between two updates."""

SHARE = 0.01
"""Maximum share of the time that updates take; slow updates are made less often."""

FAREWELL = 10.0
"""Maximum seconds of waiting for the last update."""

KEYS = {"progress": "progress", "table": "leaderboard", "markdown": "page"}
"""Type of an artifact -> end of its key."""

LOGGER = logging.getLogger("winnow.prefect")


def server_is_the_users() -> bool:
    """Whether Prefect's server is the user's own, not a temporary one, whose pages no one can see."""
    from prefect.settings import Settings

    # A temporary server is set only inside this process, so newly read settings do not contain it.
    return Settings().api.url is not None


class Artifacts(NullCallback):
    """A callback that publishes a campaign on Prefect's pages."""

    def __init__(self) -> None:
        self._wake = threading.Event()
        self._has_news = False
        self._is_over = False
        self._has_warned = False
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
                percent, line = progress(session, self._campaign.record)
                table, title, names = leaderboard(Look(session, self._campaign.record))
                status = status_line(Look(session, self._campaign.record))
            self._log.info(status)
            self._show("progress", percent, line)
            self._show("table", table, title, names)
            if page := page_address(self._campaign.record.name):
                self._show(
                    "markdown", f"[{page}]({page})", f"the page of {escaped(self._campaign.record.name)}"
                )
        except Exception as error:
            # An error of the server must not end the campaign.
            self._warn(error)

    def _show(
        self, type_: str, data: float | str, description: str, metadata: dict[str, str] | None = None
    ) -> None:
        from prefect.client.schemas.actions import ArtifactCreate

        from winnow.flows.prefect_support.client import put_artifact

        shown = ArtifactCreate(
            type=type_,
            key=artifact_key(self._campaign.record.name, KEYS[type_]),
            data=data,
            description=description,
            metadata_=metadata,
            flow_run_id=self._run_id,
        )
        self._ids[type_] = put_artifact(self._ids.get(type_), shown)

    def _warn(self, error: Exception) -> None:
        if not self._has_warned:
            self._has_warned = True
            LOGGER.warning(
                "Prefect's pages do not show the campaign: %s; it continues",
                str(error) or type(error).__name__,
                extra={"event": "artifacts_failed"},
            )


WINNOW = logging.getLogger("winnow")


class RunLog:
    """Send lines about a run, and Winnow's log records of all threads, to Prefect's server."""

    def __init__(self, run_id: UUID) -> None:
        from prefect.logging.handlers import APILogHandler

        self._handler = APILogHandler()
        self._handler.setLevel(logging.INFO)
        self._handler.addFilter(_OfRun(run_id))
        # A separate logger, so that these lines do not appear on a terminal that already shows progress.
        self._logger = logging.Logger("winnow.run", logging.INFO)
        self._logger.addHandler(self._handler)
        WINNOW.addHandler(self._handler)

    def info(self, line: str) -> None:
        """Log a line for this run only."""
        self._logger.info("%s", line)

    def close(self) -> None:
        """Send the remaining lines, and stop sending log records."""
        WINNOW.removeHandler(self._handler)
        self._handler.flush()


class _OfRun(logging.Filter):
    """A filter that adds the flow run's id to each record, and passes every record."""

    def __init__(self, run_id: UUID) -> None:
        super().__init__()
        self._run_id = str(run_id)

    def filter(self, record: logging.LogRecord) -> bool:
        """See `logging.Filter`."""
        record.flow_run_id = self._run_id
        return True
