"""Store and run campaigns from the command line, and return exit codes.

Functions that run a round import its modules themselves, so that the answer of a decided campaign is printed
without delay.
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
from winnow.tasks.setup.missing_models import (
    ALLOW_MISSING,
    missing_words,
    unstructured_words,
    with_models_there,
)
from winnow.tasks.setup.open_campaign import as_stored, change_campaign, open_campaign, resolved
from winnow.tasks.setup.unintended_settings import unchanging_prompts
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.stored_spec import ONLY

if TYPE_CHECKING:
    from winnow.flows.run.trial import Trial
    from winnow.tasks.engines.pool.pool import EnginePool


class Launch:
    """A campaign's database, and slow preparations that run during the campaign's checks."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._database: Database | None = None
        self._records: dict[str, CampaignRecord | None] = {}
        self._trial_file: Path | None = None
        self._pool: EnginePool | None = None

    def recall(self, spec: CampaignSpec) -> JsonView | None:
        """Open the database if it exists, and start preparations unless the campaign is settled.

        Implements `tasks.setup.load.Recall`.

        Returns:
            The stored definition of the campaign; None if the campaign is not stored.
        """
        record, is_settled = None, False
        with suppress(StorageError):
            record = self._find_record(spec)
            is_settled = record is not None and status_now(self._campaign(spec, record)).is_settled
        if not is_settled:
            if spec.reuse != ONLY:
                self._stack.enter_context(early_server())
            self._stack.enter_context(_imports(spec))
        return None if record is None else record.spec

    def _find_record(self, spec: CampaignSpec) -> CampaignRecord | None:
        if not may_be_there(spec.storage):
            return None
        self._database = self._stack.enter_context(existing(spec.storage))
        with self._database.reading() as session:
            recall_digests(session)
            self._records[spec.name] = found = campaign_records.find_campaign(session, spec.name)
        return found

    def store(
        self, checked: ResolvedCampaign, series: str | None = None, say: Callable[[str, str], None] = notice
    ) -> Campaign:
        """Store a campaign that is about to run, unless it is already stored.

        Args:
            checked: The campaign.
            series: Name of the series that a schedule's campaign belongs to; None without a schedule.
            say: Called with the name of an event and a sentence: if a new campaign's examples were changed on
                reading, if a prompt uses none of their fields, if models are unavailable, if servers ignore
                structured output, or if the budget is lowered.

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
                f"the definition lowers the budget of campaign '{after.name}' from now on: "
                f"{', '.join(lowered)}; if the definition is outdated, raise its stopping.budget",
            )
        return Campaign(
            database=database,
            storage=spec.storage,
            record=after,
            checked=as_stored(database, after, found.checked),
            pool=self._pool,
        )

    def try_out(
        self, checked: ResolvedCampaign, n: int, *, keeps: bool = True, without: str = ALLOW_MISSING
    ) -> "Trial":
        """Let every candidate answer some examples without storing a campaign; see `trial.try_out`.

        Args:
            checked: The campaign.
            n: Number of examples.
            keeps: Whether a missing SQLite file is created now. If False, `store` creates it later, with the
                outputs of this trial.
            without: How to begin without missing models, for the error message.

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
        found = with_models_there(checked, None, without=without).checked
        self._pool = self._stack.enter_context(engine_pool(found))
        if keeps or may_be_there(checked.spec.storage):
            database, _ = self._opened(checked.spec)
            remember(checked.spec.storage)
            return try_out(database, found, n, self._pool)
        self._trial_file = Path(self._stack.enter_context(TemporaryDirectory())) / "tried.db"
        with closing(open_database(f"sqlite:///{self._trial_file}")) as database:
            ensure_schema(database)
            return try_out(database, found, n, self._pool)

    def _opened(self, spec: CampaignSpec) -> tuple[Database, CampaignRecord | None]:
        """Open the database and create its tables if necessary; return it and the stored campaign or None."""
        if self._database is None:
            if self._trial_file is not None:
                _copy_if_missing(self._trial_file, spec.storage)
            self._database = self._stack.enter_context(closing(open_database(spec.storage)))
            if ensure_schema(self._database):
                return self._database, None
        if spec.name not in self._records:
            with self._database.reading() as session:
                self._records[spec.name] = campaign_records.find_campaign(session, spec.name)
        return self._database, self._records[spec.name]

    def _campaign(self, spec: CampaignSpec, record: CampaignRecord) -> Campaign:
        assert self._database is not None, "the record was read from the database"
        return Campaign(database=self._database, storage=spec.storage, record=record)


def _copy_if_missing(source: Path, storage: str) -> None:
    """Copy a SQLite file to a database that does not exist; if this fails, outputs are generated again."""
    if may_be_there(storage):
        return
    path = Path(storage.partition(":///")[2].partition("?")[0])
    with suppress(OSError), path.open("xb") as file:
        file.write(source.read_bytes())


@contextmanager
def launching() -> Generator[Launch, None, None]:
    """Yield a `Launch`, whose database and preparations are closed at the end of the block."""
    with ExitStack() as stack:
        yield Launch(stack)


def _imports(spec: CampaignSpec) -> AbstractContextManager[None]:
    """Import vLLM in the background if the campaign uses it, until the block ends."""
    from winnow.tasks.campaign.placement import imports_once

    return imports_once(spec, at_once=True)


def change_stored_campaign(campaign: Campaign, overrides: list[str], trust: Trust) -> None:
    """Change settings of a stored campaign; most settings are fixed.

    Raises:
        SpecError: If a setting is invalid, or needs a permission that was not given.
        IdentityChanged: If a given setting is fixed.
        StorageError: If the database cannot be used, or another process runs the campaign.
    """
    change_campaign(campaign, overrides, approving(trust))


def retry_unscored(campaign: Campaign, reason: str | None, trust: Trust) -> None:
    """Plan the failed outputs of a stored campaign again, those of one reason if given, and say how many.

    Raises:
        SpecError: If the campaign accepts no later scores, or a limit of its budget is spent.
        StorageError: If the database cannot be used, or another process runs the campaign.
    """
    from winnow.tasks.setup.retries import plan_retry

    require_resumable(campaign, trust)
    notice("retry_planned", f"campaign '{campaign.name}': {plan_retry(campaign, reason).sentence}")


def run_stored_campaign(campaign: Campaign, trust: Trust | None = None, *, is_brief: bool = True) -> int:
    """Run a stored campaign until it ends or is interrupted; print its answer and return the exit code.

    At the end, this waits for unanswered webhooks for a limited time.

    Args:
        campaign: The campaign.
        trust: Permissions to check; None if the campaign's file has just been approved.
        is_brief: Whether a terminal shows only the headline and a few lines of the answer.
    """
    with delivering():
        return _run_stored_campaign(campaign, trust, is_brief=is_brief)


def _run_stored_campaign(campaign: Campaign, trust: Trust | None, *, is_brief: bool) -> int:
    if (code := _print_answer(campaign, is_brief=is_brief)) is not None:
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
        # The campaign can be settled despite a storage error: by another process that took it over, or by
        # this run if the database failed at its very end.
        if not (isinstance(error, StorageError) and is_known_settled(campaign)):
            unknown = isinstance(error, StorageUnavailable)
            what = "interrupted; check its status, and continue" if unknown else "stopped early; continue"
            notice("stopped_early", f"{what} with: {hint}")
            raise
    if (code := _print_answer(campaign, is_brief=is_brief)) is not None:
        return code
    notice("stopped_before_the_end", f"stopped before the end; continue with: {hint}")
    return exit_codes.FORCED if interrupts.asked else exit_codes.ERROR


def require_resumable(campaign: Campaign, trust: Trust | None) -> None:
    """Refuse a stored campaign that cannot be resumed here.

    Args:
        campaign: The campaign.
        trust: Permissions to check; None if the campaign's file has just been approved.

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
    """Run a stored campaign until it ends or is stopped; print only its progress, if `shown`.

    Prefect records the run if models can get requests, or if the user has a Prefect server.

    Raises:
        KeyboardInterrupt: In the main thread, if the campaign was stopped at once.
        PrefectServerFailed: If no Prefect server is available; no round was run then.
    """
    from winnow.flows.run.resume import run_flow, run_plainly

    if not (has_own_server() or _needs_models(campaign)):
        with interrupts.caught():
            run_plainly(campaign, interrupts, shown=shown)
        return
    from winnow.flows.run.head_start import head_start

    with _imports(campaign.spec), head_start(campaign), prefect_server(), interrupts.caught():
        from winnow.flows.prefect_support.client import mark_crashed_runs  # not before Prefect's settings

        mark_crashed_runs(campaign.database)
        run_flow(campaign, interrupts, shown=shown)


def _needs_models(campaign: Campaign) -> bool:
    """Whether the campaign can send requests to a model."""
    if campaign.record.execution.get("reuse") != ONLY:
        return True
    try:
        return bool(resolved(campaign).models_to_ask)
    except Exception:  # the run reports the error
        return True


def run_unfinished_campaigns(storage: str, trust: Trust) -> int:
    """Resume all unfinished campaigns, and print a line for each; return the worst exit code.

    A campaign that needs permissions that were not given does not run; its line reports this.
    """
    from winnow.flows.run.resume import resume_each, unfinished_campaigns

    with existing(storage) as database:
        names, unreadable = unfinished_campaigns(database)
        if not names and not unreadable:
            print(f"nothing to resume: no campaign in {shown_url(storage)} is unfinished")
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


def _print_answer(campaign: Campaign, *, is_brief: bool) -> int | None:
    """Print the answer of a settled campaign and return its exit code; None if it is not settled."""
    with campaign.look() as look:
        status = campaign_status(look)
        if not status.is_settled:
            return None
        status = told_in_full(look, status)
    print_summary(status, campaign.storage, is_brief=is_brief)
    log_answer(status)
    return exit_codes.exit_code(status)


def require_free(campaign: Campaign) -> None:
    """Refuse a campaign that another process runs, before any server is started.

    Raises:
        LeaseHeld: If another process runs the campaign.
    """
    watch(campaign.database, campaign.record.id, now=now())
    with campaign.database.reading() as session:
        leases.require_free(session, campaign.record.id, this_process(), is_gone=is_gone)
