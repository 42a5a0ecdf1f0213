"""Runs of stored campaigns from the command line: what surrounds the flow, and how it ends.

What a round needs is imported by the functions that run one: a campaign that is decided answers at once.
"""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager

from winnow.flows import exit_codes
from winnow.flows.notify.outbox import delivering
from winnow.flows.prefect_support.crashed_runs import mark_crashed_runs
from winnow.flows.prefect_support.server import PrefectServerFailed, early_server, prefect_server
from winnow.flows.reports.open_readonly import reading, remember
from winnow.flows.reports.summary import is_known_settled, print_summary
from winnow.flows.run.log_format import notice
from winnow.flows.run.logging_callback import log_answer
from winnow.flows.run.signals import Interrupts
from winnow.flows.run.trust_prompt import Trust, approving, require_stored_trust
from winnow.storage.admin.schema import ensure_schema, existing
from winnow.storage.engine.database import open_database, shown_url, storage_option
from winnow.storage.errors import StorageError, StorageUnavailable
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import leases
from winnow.tasks.campaign.budget import lowered_limits
from winnow.tasks.campaign.lease import is_gone, now, this_process, watch
from winnow.tasks.campaign.program_plugins import require_plugins
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.campaign.stored_values import stored_spec
from winnow.tasks.candidates.model_refs import refuse_missing_function
from winnow.tasks.queries.status import campaign_status, told_in_full
from winnow.tasks.setup.check import require_extras
from winnow.tasks.setup.load import Approve
from winnow.tasks.setup.missing_models import missing_words, unstructured_words, with_models_there
from winnow.tasks.setup.open_campaign import change_campaign, open_campaign
from winnow.tasks.setup.yaml_file import SpecFile
from winnow.tasks.spec.campaign import CampaignSpec


@contextmanager
def starting_early(approve: Approve) -> Generator[Approve, None, None]:
    """The same approval, after which slow things start beside the checks, until the block ends.

    These are a temporary Prefect server and vLLM's imports. A campaign that is decided needs neither.
    """
    with ExitStack() as coming_up:

        def approve_and_start(file: SpecFile, spec: CampaignSpec) -> None:
            approve(file, spec)
            if not is_known_settled(spec.storage, spec.name):
                coming_up.enter_context(early_server())
                coming_up.enter_context(_imports(spec))

        yield approve_and_start


def imports_for(storage: str, name: str) -> AbstractContextManager[None]:
    """Have vLLM imported for a stored campaign that is about to go on, until the block ends."""
    with reading(storage) as session:
        spec = stored_spec(campaign_records.get_campaign(session, name), storage)
    return _imports(spec)


def _imports(spec: CampaignSpec) -> AbstractContextManager[None]:
    from winnow.tasks.campaign.vllm_imports import imports_once

    return imports_once(spec, at_once=True)


def store_campaign(
    checked: ResolvedCampaign, series: str | None = None, say: Callable[[str, str], None] = notice
) -> None:
    """Store a campaign that is about to run, unless it is stored.

    Args:
        checked: The campaign.
        series: Name that a new campaign shares with the others that its schedule begins.
        say: Takes the name of an event and a sentence, where a new campaign's examples were not read as they
            stand, or it goes on without models that cannot be asked, with servers that ignore a structure, or
            with a lower budget.

    Raises:
        IdentityChanged: If a campaign of this name was begun with another definition.
        ModelsMissing: If a model cannot be asked, and the campaign may not begin without it.
        StorageError: If the database cannot be used.
        ExtraMissing: If its engines need packages that are not installed here.
    """
    require_extras(checked)
    with closing(open_database(checked.spec.storage)) as database:
        ensure_schema(database)
        with database.reading() as session:
            before = campaign_records.find_campaign(session, checked.spec.name)
        found = with_models_there(checked, None if before is None else before.spec)
        after = open_campaign(database, found.checked, series)
    remember(checked.spec.storage)
    if before is None:
        for remark in checked.dataset.remarks:
            say("examples_read", f"campaign '{after.name}': {remark}")
    if found.missing:
        say("models_missing", f"campaign '{after.name}' goes on without {missing_words(found.missing)}")
    if found.unstructured:
        say("structure_ignored", unstructured_words(found.unstructured))
    if before is not None and (lowered := lowered_limits(before, after)):
        say(
            "budget_lowered",
            f"campaign '{after.name}' has a lower budget from now on, as its definition says: "
            f"{', '.join(lowered)}; raise stopping.budget there if it is an older one",
        )


def change_stored_campaign(storage: str, name: str, overrides: list[str], trust: Trust) -> None:
    """Let a stored campaign go on with other settings, of those that may change.

    Args:
        storage: URL of the results database.
        name: The campaign's.
        overrides: The settings, as `key=value`.
        trust: The campaign's permissions.

    Raises:
        SpecError: If a setting is not sound, or needs more than was allowed.
        IdentityChanged: If one may not change.
        StorageError: If the database cannot be used, or another process runs the campaign.
    """
    with existing(storage) as database:
        change_campaign(database, name, overrides, approving(trust))


def run_stored_campaign(storage: str, name: str, trust: Trust | None = None) -> int:
    """Run a stored campaign to its end or an interruption; print its answer; return the exit code.

    Webhooks that have not answered by then are waited for, for a bounded time.

    Args:
        storage: URL of the results database.
        name: The campaign's.
        trust: The campaign's permissions; None where its file has just been approved.
    """
    with delivering():
        return _run_stored_campaign(storage, name, trust)


def _run_stored_campaign(storage: str, name: str, trust: Trust | None) -> int:
    if (code := _answered(storage, name)) is not None:
        return code
    require_resumable(storage, name, trust)
    interrupts = Interrupts()
    hint = f"winnow resume {name} {storage_option(storage)}"
    try:
        run_to_the_end(storage, name, interrupts)
    except KeyboardInterrupt:
        notice("stopped_by_force", f"\nstopped by force; go on with: {hint}")
        return interrupts.exit_code
    except PrefectServerFailed:
        raise  # no round was run
    except BaseException as error:
        # Whoever took the campaign over may be done with it already, and so may this run be where the
        # database broke at its very end.
        if not (isinstance(error, StorageError) and is_known_settled(storage, name)):
            unknown = isinstance(error, StorageUnavailable)
            what = "broken off; see where it stands, and go on" if unknown else "stopped early; go on"
            notice("stopped_early", f"{what} with: {hint}")
            raise
    if (code := _answered(storage, name)) is not None:
        return code
    notice("stopped_before_the_end", f"stopped before the end; go on with: {hint}")
    return exit_codes.FORCED if interrupts.asked else exit_codes.ERROR


def require_resumable(storage: str, name: str, trust: Trust | None) -> None:
    """Refuse a stored campaign that may not go on, or cannot here and now.

    Args:
        storage: URL of the results database.
        name: The campaign's.
        trust: The campaign's permissions; None where its file has just been approved.

    Raises:
        SpecError: If it needs more than was allowed, or what only a program has.
        LeaseHeld: If another process runs it.
    """
    if trust is not None:
        require_stored_trust(storage, name, trust)
    _require_functions(storage, name)
    require_free(storage, name)


def run_to_the_end(storage: str, name: str, interrupts: Interrupts, *, shown: bool = True) -> None:
    """Run a stored campaign until it ends or is asked to stop; progress is all that may be shown.

    Raises:
        KeyboardInterrupt: If it was stopped at once, in the main thread.
        PrefectServerFailed: If there is no Prefect server; then no round was run.
    """
    from winnow.flows.run.head_start import head_start
    from winnow.flows.run.resume import run_flow

    with (
        imports_for(storage, name),
        head_start(storage, name),
        prefect_server(),
        interrupts.caught(),
    ):
        mark_crashed_runs(storage)
        run_flow(storage, name, interrupts, shown=shown)


def run_unfinished_campaigns(storage: str, trust: Trust) -> int:
    """Go on with all campaigns that were left unfinished, a line for each; return the worst exit code.

    One that needs more than was allowed is left as it is, and its line says so.
    """
    from winnow.flows.run.resume import resume_each, unfinished_campaigns

    names = unfinished_campaigns(storage)
    if not names:
        print(f"nothing to go on with: no campaign of {shown_url(storage)} was left unfinished")
        return exit_codes.DECIDED
    interrupts = Interrupts()
    hint = f"winnow resume --all {storage_option(storage)}"
    try:
        with prefect_server(), interrupts.caught():
            mark_crashed_runs(storage)
            code = resume_each(storage, names, interrupts, print, trust)
    except KeyboardInterrupt:
        notice("stopped_by_force", f"\nstopped by force; go on with: {hint}")
        return interrupts.exit_code
    if interrupts.asked:
        notice("stopped_before_the_end", f"stopped before the end; go on with: {hint}")
    return code


def _answered(storage: str, name: str) -> int | None:
    """Print the answer of a campaign that is settled, and return its exit code; None of any other."""
    with reading(storage) as session:
        campaign = campaign_records.get_campaign(session, name)
        status = campaign_status(session, campaign)
        if not status.is_settled:
            return None
        status = told_in_full(session, campaign, status)
    print_summary(status, storage)
    log_answer(status)
    return exit_codes.exit_code(status)


def _require_functions(storage: str, name: str) -> None:
    """Refuse a campaign that only a program can go on with, before anything tells how to go on with it."""
    with reading(storage) as session:
        campaign = campaign_records.get_campaign(session, name)
    for number, model in enumerate(campaign.spec.get("models", ())):
        refuse_missing_function(str(model.get("provider")), f"models[{number}]")
    require_plugins(campaign)


def require_free(storage: str, name: str) -> None:
    """Refuse a campaign that another process runs, before any server is started.

    Raises:
        LeaseHeld: If one does.
    """
    with closing(open_database(storage)) as database:
        with database.reading() as session:
            campaign = campaign_records.get_campaign(session, name)
        watch(database, campaign.id, now=now())
    with reading(storage) as session:
        leases.require_free(session, campaign.id, this_process(), is_gone=is_gone)
