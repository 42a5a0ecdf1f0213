"""Runs of stored campaigns from the command line: preparation, flow and exit codes.

Functions that run a round import its modules themselves, so that a decided campaign answers quickly.
"""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from winnow.flows import exit_codes
from winnow.flows.notify.announce import delivering
from winnow.flows.prefect_support.server import (
    PrefectServerFailed,
    early_server,
    has_own_server,
    prefect_server,
)
from winnow.flows.reports.default_database import may_be_there, remember
from winnow.flows.reports.summary import is_known_settled, print_summary, status_now
from winnow.flows.run.log_format import notice
from winnow.flows.run.logging_callback import log_answer
from winnow.flows.run.signals import Interrupts
from winnow.flows.run.trust_prompt import Trust, approving, require_stored_trust
from winnow.storage.admin.schema import ensure_schema, existing
from winnow.storage.engine.database import Database, open_database, shown_url, storage_option
from winnow.storage.errors import StorageError, StorageUnavailable
from winnow.storage.json_types import JsonView
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import leases
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.budget import lowered_limits
from winnow.tasks.campaign.campaign import Campaign
from winnow.tasks.campaign.lease import is_gone, now, this_process, watch
from winnow.tasks.campaign.program_plugins import require_plugins
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.candidates.model_refs import refuse_missing_function
from winnow.tasks.data.file_digests import recall_digests
from winnow.tasks.queries.status import campaign_status, told_in_full
from winnow.tasks.setup.check import require_extras
from winnow.tasks.setup.likely_mistakes import unchanging_prompts
from winnow.tasks.setup.missing_models import missing_words, unstructured_words, with_models_there
from winnow.tasks.setup.open_campaign import as_stored, change_campaign, open_campaign, resolved
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.stored_spec import ONLY

if TYPE_CHECKING:
    from winnow.flows.run.trial import Trial
    from winnow.tasks.engines.pool.pool import EnginePool


class Launch:
    """The database of an approved campaign, and slow preparations that run during its checks."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._database: Database | None = None
        self._begun: dict[str, CampaignRecord | None] = {}
        self._tried: Path | None = None
        self._pool: EnginePool | None = None

    def recall(self, spec: CampaignSpec) -> JsonView | None:
        """Open the database, if it exists, and start preparations for a campaign that is not decided.

        Implements `tasks.setup.load.Recall`.
        """
        record, is_settled = None, False
        with suppress(StorageError):
            record = self._recalled(spec)
            is_settled = record is not None and status_now(self._campaign(spec, record)).is_settled
        if not is_settled:
            if spec.reuse != ONLY:
                self._stack.enter_context(early_server())
            self._stack.enter_context(_imports(spec))
        return None if record is None else record.spec

    def _recalled(self, spec: CampaignSpec) -> CampaignRecord | None:
        if not may_be_there(spec.storage):
            return None
        self._database = self._stack.enter_context(existing(spec.storage))
        with self._database.reading() as session:
            recall_digests(session)
            self._begun[spec.name] = found = campaign_records.find_campaign(session, spec.name)
        return found

    def store(
        self, checked: ResolvedCampaign, series: str | None = None, say: Callable[[str, str], None] = notice
    ) -> Campaign:
        """Store a campaign that is about to run, unless it is already stored.

        Args:
            checked: The campaign.
            series: Name that a new campaign shares with the others that its schedule begins.
            say: Receives the name of an event and a sentence. Called if a new campaign's examples were
                changed on reading, a prompt shows none of their fields, some models are unavailable, servers
                ignore a structure, or the budget is lowered.

        Raises:
            IdentityChanged: If a campaign of this name began with another definition.
            ModelsMissing: If a model that the campaign requires is unavailable.
            StorageError: If the database cannot be used.
            ExtraMissing: If the campaign's engines need packages that are not installed here.
        """
        require_extras(checked)
        spec = checked.spec
        database, before = self._opened(spec)
        found = with_models_there(checked, None if before is None else before.spec)
        after = open_campaign(database, found.checked, series, before)
        remember(spec.storage)
        if before is None:
            for remark in checked.dataset.remarks:
                say("examples_read", f"campaign '{after.name}': {remark}")
            for mistake in unchanging_prompts(checked):
                say("prompt_unchanging", f"check: {mistake.path}: {mistake.sentence}")
        if found.missing:
            say("models_missing", f"campaign '{after.name}' continues without {missing_words(found.missing)}")
        if found.unstructured:
            say("structure_ignored", unstructured_words(found.unstructured))
        if before is not None and (lowered := lowered_limits(before, after)):
            say(
                "budget_lowered",
                f"campaign '{after.name}' has a lower budget from now on, as its definition says: "
                f"{', '.join(lowered)}; raise stopping.budget there if it is an older one",
            )
        return Campaign(
            database=database,
            storage=spec.storage,
            record=after,
            checked=as_stored(database, after, found.checked),
            pool=self._pool,
        )

    def try_out(self, checked: ResolvedCampaign, n: int, *, keeps: bool = True) -> "Trial":
        """Have every candidate answer some examples without storing a campaign, as `trial.try_out` does.

        Unless `keeps` is set, a missing SQLite file is created only by `store`, with these outputs.

        Raises:
            SpecError: If the campaign's judge does not score single outputs by itself.
            ModelsMissing: If a model that the campaign requires is unavailable.
            StorageError: If the database cannot be used.
            ExtraMissing: If the campaign's engines need packages that are not installed here.
        """
        from winnow.flows.run.trial import require_scores, try_out
        from winnow.tasks.campaign.session import engine_pool

        require_scores(checked.spec)
        require_extras(checked)
        found = with_models_there(checked, None).checked
        self._pool = self._stack.enter_context(engine_pool(found))
        if keeps or may_be_there(checked.spec.storage):
            database, _ = self._opened(checked.spec)
            remember(checked.spec.storage)
            return try_out(database, found, n, self._pool)
        self._tried = Path(self._stack.enter_context(TemporaryDirectory())) / "tried.db"
        with closing(open_database(f"sqlite:///{self._tried}")) as database:
            ensure_schema(database)
            return try_out(database, found, n, self._pool)

    def _opened(self, spec: CampaignSpec) -> tuple[Database, CampaignRecord | None]:
        """The database with all tables, and the stored campaign of this name."""
        if self._database is None:
            if self._tried is not None:
                _copy_unless_there(self._tried, spec.storage)
            self._database = self._stack.enter_context(closing(open_database(spec.storage)))
            if ensure_schema(self._database):
                return self._database, None
        if spec.name not in self._begun:
            with self._database.reading() as session:
                self._begun[spec.name] = campaign_records.find_campaign(session, spec.name)
        return self._database, self._begun[spec.name]

    def _campaign(self, spec: CampaignSpec, record: CampaignRecord) -> Campaign:
        assert self._database is not None, "the record was read from it"
        return Campaign(database=self._database, storage=spec.storage, record=record)


def _copy_unless_there(source: Path, storage: str) -> None:
    """Copy a SQLite file to a missing one; if this fails, outputs are generated again."""
    if may_be_there(storage):
        return
    path = Path(storage.partition(":///")[2].partition("?")[0])
    with suppress(OSError), path.open("xb") as file:
        file.write(source.read_bytes())


@contextmanager
def launching() -> Generator[Launch, None, None]:
    """The preparations of a campaign, from the approval of its file to the end of the block that runs it."""
    with ExitStack() as stack:
        yield Launch(stack)


def _imports(spec: CampaignSpec) -> AbstractContextManager[None]:
    """Import vLLM in the background for a campaign that will continue, until the block ends."""
    from winnow.tasks.campaign.placement import imports_once

    return imports_once(spec, at_once=True)


def change_stored_campaign(campaign: Campaign, overrides: list[str], trust: Trust) -> None:
    """Change settings of a stored campaign; only some settings can change.

    Raises:
        SpecError: If a setting is invalid, or needs more than was allowed.
        IdentityChanged: If a given setting cannot change.
        StorageError: If the database cannot be used, or another process runs the campaign.
    """
    change_campaign(campaign, overrides, approving(trust))


def run_stored_campaign(campaign: Campaign, trust: Trust | None = None, *, is_brief: bool = True) -> int:
    """Run a stored campaign to its end or an interruption, print its answer and return the exit code.

    Then wait for unanswered webhooks for a limited time. `trust` is None if the campaign's file has just been
    approved. If `is_brief`, a terminal shows only the headline and a few lines of the answer.
    """
    with delivering():
        return _run_stored_campaign(campaign, trust, is_brief=is_brief)


def _run_stored_campaign(campaign: Campaign, trust: Trust | None, *, is_brief: bool) -> int:
    if (code := _answered(campaign, is_brief=is_brief)) is not None:
        return code
    require_resumable(campaign, trust)
    interrupts = Interrupts()
    hint = campaign.resume_command
    try:
        run_to_the_end(campaign, interrupts)
    except KeyboardInterrupt:
        notice("stopped_by_force", f"\nstopped by force; continue with: {hint}")
        return interrupts.exit_code
    except PrefectServerFailed:
        raise  # no round was run
    except BaseException as error:
        # Whoever took the campaign over may be done with it already, and so may this run be where the
        # database broke at its very end.
        if not (isinstance(error, StorageError) and is_known_settled(campaign)):
            unknown = isinstance(error, StorageUnavailable)
            what = "broken off; see where it stands, and continue" if unknown else "stopped early; continue"
            notice("stopped_early", f"{what} with: {hint}")
            raise
    if (code := _answered(campaign, is_brief=is_brief)) is not None:
        return code
    notice("stopped_before_the_end", f"stopped before the end; continue with: {hint}")
    return exit_codes.FORCED if interrupts.asked else exit_codes.ERROR


def require_resumable(campaign: Campaign, trust: Trust | None) -> None:
    """Refuse a stored campaign that may not be resumed, or cannot be resumed here.

    `trust` is None if the campaign's file has just been approved.

    Raises:
        SpecError: If the campaign needs permissions that were not given, or objects that exist only in a
            Python program.
        LeaseHeld: If another process runs the campaign.
    """
    if trust is not None:
        require_stored_trust(campaign, trust)
    for number, model in enumerate(campaign.record.spec.get("models", ())):
        refuse_missing_function(str(model.get("provider")), f"models[{number}]")
    require_plugins(campaign.record)
    require_free(campaign)


def run_to_the_end(campaign: Campaign, interrupts: Interrupts, *, shown: bool = True) -> None:
    """Run a stored campaign until it ends or is stopped; show nothing except its progress.

    Prefect records the run if models get requests or the user has a Prefect server.

    Raises:
        KeyboardInterrupt: If the campaign was stopped at once, in the main thread.
        PrefectServerFailed: If no Prefect server is available; then no round was run.
    """
    from winnow.flows.run.resume import run_flow, run_plainly

    if not (has_own_server() or _asks_models(campaign)):
        with interrupts.caught():
            run_plainly(campaign, interrupts, shown=shown)
        return
    from winnow.flows.run.head_start import head_start

    with _imports(campaign.spec), head_start(campaign), prefect_server(), interrupts.caught():
        from winnow.flows.prefect_support.client import mark_crashed_runs  # not before Prefect's settings

        mark_crashed_runs(campaign.database)
        run_flow(campaign, interrupts, shown=shown)


def _asks_models(campaign: Campaign) -> bool:
    """Whether the campaign has a model that can receive requests."""
    if campaign.record.execution.get("reuse") != ONLY:
        return True
    try:
        return bool(resolved(campaign).models_to_ask)
    except Exception:  # the run finds it again, and tells it
        return True


def run_unfinished_campaigns(storage: str, trust: Trust) -> int:
    """Resume all unfinished campaigns with a line for each; return the worst exit code.

    A campaign that needs permissions that were not given is skipped; its line reports this.
    """
    from winnow.flows.run.resume import resume_each, unfinished_campaigns

    with existing(storage) as database:
        names, unreadable = unfinished_campaigns(database)
        if not names and not unreadable:
            print(f"nothing to resume: no campaign of {shown_url(storage)} was left unfinished")
            return exit_codes.DECIDED
        interrupts = Interrupts()
        hint = f"winnow resume --all {storage_option(storage)}"
        try:
            with prefect_server(), interrupts.caught():
                from winnow.flows.prefect_support.client import mark_crashed_runs

                mark_crashed_runs(database)
                code = resume_each(database, storage, names, interrupts, print, trust, unreadable)
        except KeyboardInterrupt:
            notice("stopped_by_force", f"\nstopped by force; continue with: {hint}")
            return interrupts.exit_code
    if interrupts.asked:
        notice("stopped_before_the_end", f"stopped before the end; continue with: {hint}")
    return code


def _answered(campaign: Campaign, *, is_brief: bool) -> int | None:
    """Print the answer of a settled campaign and return its exit code; None for other campaigns."""
    with campaign.look() as look:
        status = campaign_status(look)
        if not status.is_settled:
            return None
        status = told_in_full(look, status)
    print_summary(status, campaign.storage, is_brief=is_brief)
    log_answer(status)
    return exit_codes.exit_code(status)


def require_free(campaign: Campaign) -> None:
    """Refuse a campaign that another process runs, before starting any server.

    Raises:
        LeaseHeld: If another process runs it.
    """
    watch(campaign.database, campaign.record.id, now=now())
    with campaign.database.reading() as session:
        leases.require_free(session, campaign.record.id, this_process(), is_gone=is_gone)
