"""`winnow.open` and `winnow.Campaign`: results databases, for programs and notebooks."""

from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from winnow.algorithms.state.plugin_registry import object_at
from winnow.flows.api.call_checks import require_text, require_url
from winnow.flows.reports.default_database import reading
from winnow.flows.reports.summary import status_of, summary_lines
from winnow.storage.engine.database import shown_url
from winnow.storage.objectives import traits_of
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.sentences.answer_lines import headline
from winnow.tasks.campaign.look import Look
from winnow.tasks.errors import WinnowError
from winnow.tasks.plugins.extras import require
from winnow.tasks.queries import frames
from winnow.tasks.text.phrases import rounded

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

    from winnow.tasks.objectives.route.exporting import ExportedPolicy

EXPORT_POLICY = "winnow.tasks.objectives.route.exporting:export_policy"
"""Import path of the function that exports the policy of a route campaign."""


class Printer(Protocol):
    """The part of IPython's pretty printer that is used here."""

    def text(self, text: str) -> None:
        """Append text to the output."""


class Results:
    """The campaigns of a results database; opened read-only, except to resume or export a campaign.

        db = winnow.open("sqlite:///winnow.db")
        db.campaigns()
        db["sum-prompts"].leaderboard()

    Every call reads the database again, so results of a running campaign are up to date.

    Args:
        storage: URL of the database.

    Raises:
        SpecError: If the URL is not a str.
        StorageError: If the database cannot be read.
    """

    def __init__(self, storage: str) -> None:
        require_url(storage)
        self._storage = storage
        self.sql("SELECT 1")  # raises now if the database cannot be read

    def __repr__(self) -> str:
        return f"<Results of {shown_url(self._storage)}>"

    def campaigns(self) -> "pd.DataFrame":
        """One row per campaign with its status and cost, oldest first."""
        return frames.campaigns(self._storage)

    def series(self, name: str) -> "pd.DataFrame":
        """One row per campaign of a schedule, oldest first.

        Args:
            name: Name of the series: the campaign's name in the scheduled file.
        """
        return frames.series(self._storage, name)

    def sql(self, statement: str) -> "pd.DataFrame":
        """Result of a SQL SELECT statement; see `winnow.tasks.queries.frames.sql_frame`."""
        return frames.sql_frame(self._storage, statement)

    def __iter__(self) -> Iterator[str]:
        """The names of the campaigns, oldest first."""
        with reading(self._storage) as session:
            return iter([record.name for record in campaign_records.readable_campaigns(session)[0]])

    def __getitem__(self, name: str) -> "Campaign":
        """The campaign of this name.

        Raises:
            CampaignNotFound: If the database has no such campaign.
        """
        with reading(self._storage) as session:
            campaign_records.get_campaign(session, name)
        return Campaign(self._storage, name)


class Campaign:
    """The current results of one campaign."""

    def __init__(self, storage: str, name: str) -> None:
        self._storage, self._name = storage, name

    def __repr__(self) -> str:
        return f"<Campaign {self._name!r} in {shown_url(self._storage)}>"

    def __str__(self) -> str:
        """The headline and the main lines of the answer, as `winnow run` prints them in a terminal."""
        return self._lines(is_brief=True)

    @property
    def name(self) -> str:
        """The campaign's name."""
        return self._name

    def details(self) -> str:
        """All lines of the answer, as `winnow status` prints them."""
        return self._lines(is_brief=False)

    def _lines(self, *, is_brief: bool) -> str:
        status = status_of(self._storage, self._name, in_full=True)
        return "\n".join(summary_lines(status, self._storage, is_brief=is_brief))

    def _repr_pretty_(self, printer: Printer, _cycle: bool) -> None:
        """Print the answer in IPython."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        """The headline and the leaderboard as HTML, for a notebook."""
        status = status_of(self._storage, self._name, in_full=True)
        title = escape(headline(status.answer, status.state))
        board = self.leaderboard()[["candidate", "estimate", "lower", "upper", "status"]]
        return f"<p><b>{title}</b></p>{board.to_html(index=False, float_format=rounded, na_rep='')}"

    @property
    def answer(self) -> Answer:
        """The current answer: outcome, best candidate, claim, and each candidate's results."""
        return status_of(self._storage, self._name, in_full=True).answer

    def leaderboard(self) -> "pd.DataFrame":
        """One row per candidate, best first."""
        return self.view("leaderboard")

    def comparisons(self, *, candidate: str | None = None, limit: int | None = None) -> "pd.DataFrame":
        """One row per comparison: candidate, example, and the score or the reason why it is missing.

        Args:
            candidate: Name of a candidate, to get only its comparisons; None for all.
            limit: Maximum number of rows; None for all.
        """
        return frames.frame(self._storage, self._name, "comparisons", candidate=candidate, limit=limit)

    def view(self, view: str) -> "pd.DataFrame":
        """The rows of a view of `winnow query`, such as "curve", "coverage" or "costs"."""
        return frames.frame(self._storage, self._name, view)

    def resume(
        self, changes: Mapping[str, object] | None = None, *, progress: bool = False, trust: bool = False
    ) -> "Campaign":
        """Resume the campaign without its file, as `winnow resume` does; see `winnow.run`.

            winnow.open("sqlite:///winnow.db")["sum-prompts"].resume({"stopping.budget": 2000})

        Args:
            changes: New values by dotted key of settings that may change: stopping.budget, execution, tags.
            progress: See `winnow.run`.
            trust: See `winnow.run`.

        Raises:
            SpecError: If a change is invalid or not allowed, or the campaign needs a permission.
            WinnowError: If the campaign cannot continue.
            StorageError: If the database cannot be used, or another process runs the campaign.
        """
        from winnow.flows.api.resume import resume

        resume(self._storage, self._name, changes or {}, progress=progress, trust=trust)
        return self

    def export_policy(self, folder: str | Path) -> "ExportedPolicy":
        """Write a route campaign's learned policy to a folder, for `winnow.Router.load`.

        Returns:
            The number of prompts that the policy learned from. If one candidate may be as good for all
            prompts, also the reason.

        Raises:
            WinnowError: If the campaign's objective is not route, or the folder cannot be written.
            StorageError: If the database cannot be used.
        """
        from winnow.storage.admin.schema import existing
        from winnow.tasks.setup.open_campaign import reopen_campaign

        with existing(self._storage) as database:
            reopened = reopen_campaign(database, self._name, self._storage)
            exported: ExportedPolicy = object_at(EXPORT_POLICY)(database, *reopened, Path(folder))
            return exported

    def plot_lead(self) -> "Figure":
        """The best candidate's lead over each other candidate, with intervals; see `plot_curve`."""
        return self._figure("lead")

    def plot_estimates(self) -> "Figure":
        """The estimate and interval of each candidate, best first; see `plot_curve`."""
        return self._figure("estimates")

    def plot_curve(self) -> "Figure":
        """The leader's estimate and interval against spending, as a Plotly figure.

        Raises:
            ExtraMissing: If Plotly is not installed.
            WinnowError: If the campaign has no results for this figure.
        """
        return self._figure("curve")

    def plot_factors(self) -> "Figure":
        """Parallel coordinates: a line per candidate over model, prompt, sampling and mean.

        See `plot_curve`.
        """
        require("report", "figures")
        from winnow.flows.reports.html.figures.estimates import parallel
        from winnow.tasks.queries.factors import factor_tables

        with reading(self._storage) as session:
            record = campaign_records.get_campaign(session, self._name)
            pairs = traits_of(record.objective).compares_pairs
            found = None if pairs else factor_tables(Look(session, record))
        if found is None or not found.factors or not found.scores:
            raise self._nothing("factors")
        return parallel(found.factors, found.candidates)

    def _figure(self, name: str) -> "Figure":
        require("report", "figures")
        from winnow.flows.reports.html.sections.standard import sections_of

        with reading(self._storage) as session:
            record = campaign_records.get_campaign(session, self._name)
            sections = sections_of(Look(session, record), with_samples=False)
        drawn = next((each.figure for each in sections if each.name == name), None)
        if drawn is None:
            raise self._nothing(name)
        return drawn

    def _nothing(self, figure: str) -> WinnowError:
        return WinnowError(
            f"{self._name} has no results for the figure {figure!r} yet, or its objective has no such "
            f"figure; to see its results, run winnow status {self._name}"
        )

    def report(self, path: str | Path) -> Path:
        """Write the campaign's report as one HTML file, and return its path.

        Raises:
            ExtraMissing: If Plotly is not installed.
            SpecError: If the path is not one.
            WinnowError: If the file cannot be written.
        """
        require_text("path", path, "the path of a file")
        require("report", "a report with figures")
        from winnow.flows.reports.html.page import write_report

        with reading(self._storage) as session:
            record = campaign_records.get_campaign(session, self._name)
            [written] = write_report(Look(session, record), html=Path(path), png=None)
        return written
