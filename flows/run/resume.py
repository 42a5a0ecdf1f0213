"""Run a stored campaign with or without Prefect, and resume unfinished campaigns one after the other."""

import traceback
from collections.abc import Callable, Sequence

from winnow.flows import exit_codes
from winnow.flows.notify.announce import announcing, delivering
from winnow.flows.prefect_support.masked_urls import mask
from winnow.flows.reports.summary import campaign_line, is_known_settled, status_now
from winnow.flows.run.callbacks import using_callback
from winnow.flows.run.progress import progress_display
from winnow.flows.run.signals import Interrupts
from winnow.flows.run.trust_prompt import Trust, require_stored_trust
from winnow.storage.engine.database import Database
from winnow.storage.errors import LeaseHeld, StorageError
from winnow.tasks.campaign.campaign import Campaign, find_in
from winnow.tasks.data.garbage_collection import not_collecting
from winnow.tasks.errors import SpecError, WinnowError
from winnow.tasks.queries.status import each_status

Reporter = Callable[[str], None]

FROM_GOOD_TO_BAD = (
    exit_codes.DECIDED,
    exit_codes.UNDECIDED,
    exit_codes.WORSE,
    exit_codes.USAGE,
    exit_codes.ERROR,
    exit_codes.FORCED,
)


def unfinished_campaigns(database: Database, series: str | None = None) -> tuple[list[str], list[str]]:
    """Names of unfinished campaigns that no process runs, oldest first, and sentences on unreadable ones.

    Args:
        database: The results database.
        series: Name of a series, to return only its campaigns; None for all. Unreadable campaigns of all
            series are reported.
    """
    with database.reading() as session:
        found, unreadable = each_status(session)
    unfinished = [
        record.name
        for record, status in found
        if (series is None or record.series == series) and not status.is_settled and status.state != "running"
    ]
    return unfinished, unreadable


def resume_each(
    database: Database,
    storage: str,
    names: list[str],
    interrupts: Interrupts,
    say: Reporter,
    trust: Trust,
    unreadable: Sequence[str] = (),
) -> int:
    """Run campaigns one after the other, and report each in a line; an error does not stop the others.

    Args:
        database: The results database.
        storage: URL of the database.
        names: Names of the campaigns.
        interrupts: Requests to stop; after a request, no further campaign is started.
        say: Called with each line.
        trust: How missing permissions are given.
        unreadable: A sentence for each campaign that cannot be read; such campaigns count as failed.

    Returns:
        The worst exit code of the campaigns.
    """
    for sentence in unreadable:
        say(sentence)
    worst = exit_codes.ERROR if unreadable else exit_codes.DECIDED
    with delivering():
        for name in names:
            try:
                code, line = _resume(find_in(database, storage, name), interrupts, trust)
            except StorageError as error:  # the campaign was deleted, or the database cannot be read
                code, line = exit_codes.ERROR, f"{name}: failed: {error}"
            say(line)
            worst = max(worst, code, key=FROM_GOOD_TO_BAD.index)
            if interrupts.asked:
                return exit_codes.FORCED
    return worst


def _resume(campaign: Campaign, interrupts: Interrupts, trust: Trust) -> tuple[int, str]:
    name = campaign.name
    try:
        if status_now(campaign).answer.is_of_program:
            why = "its scores come from a function of a program; run that program again to continue"
            return exit_codes.DECIDED, f"{name}: skipped: {why}"
        require_stored_trust(campaign, trust)
        run_flow(campaign, interrupts)
    except LeaseHeld as held:
        return exit_codes.DECIDED, str(held)  # another process has resumed it
    except (WinnowError, StorageError) as error:
        if not is_known_settled(campaign):  # an error after the end is not a failure of the campaign
            code = exit_codes.USAGE if isinstance(error, SpecError) else exit_codes.ERROR
            return code, f"{name}: failed: {error}"
    except Exception as error:
        # A bug, which must not prevent the other campaigns from running.
        traceback.print_exc()
        return exit_codes.ERROR, f"{name}: failed: {error!r}"
    return exit_codes.exit_code(status_now(campaign)), campaign_line(campaign)


def run_flow(campaign: Campaign, interrupts: Interrupts, *, shown: bool = True) -> None:
    """Run a stored campaign as a Prefect flow, and notify its webhooks.

    Args:
        campaign: The campaign.
        interrupts: Requests to stop.
        shown: Whether progress is written to standard error.

    Raises:
        WinnowError: If Prefect's server does not answer or has no record of the run; stored results are kept.
    """
    with announcing(campaign):
        _run_flow(campaign, interrupts, shown=shown)


def run_plainly(campaign: Campaign, interrupts: Interrupts, *, shown: bool = True) -> None:
    """Run a stored campaign without Prefect, and notify its webhooks; see `run_flow`."""
    from winnow.flows.run.plain_run import run_campaign, using_campaign

    with (
        announcing(campaign),
        progress_display(interrupts, shown=shown, recorded=False) as callback,
        using_callback(callback),
        using_campaign(campaign),
    ):
        run_campaign(campaign.storage, campaign.name)


def _run_flow(campaign: Campaign, interrupts: Interrupts, *, shown: bool) -> None:
    # Imported here, because the import of Prefect takes more than a second, and reads its settings.
    with not_collecting():
        from httpx import HTTPError
        from prefect import tags
        from prefect.exceptions import MissingResult, ObjectNotFound

        from winnow.flows.prefect_support.client import CAMPAIGN_TAG, TAG
        from winnow.flows.run.flow import run_campaign
        from winnow.flows.run.plain_run import using_campaign

    try:
        with (
            progress_display(interrupts, shown=shown) as callback,
            using_callback(callback),
            using_campaign(campaign),
            tags(TAG, CAMPAIGN_TAG),
        ):
            run_campaign(mask(campaign.storage), campaign.name)
    except MissingResult:
        # The server already had the end of the run, because its first answer was lost. The second answer has
        # no result, but the database has it.
        return
    except (HTTPError, ObjectNotFound) as error:
        if is_known_settled(campaign):
            return  # only the server's record is missing
        what = "has no record of this run; resume"
        if isinstance(error, HTTPError):
            what = f"does not answer ({error}); restart it if it is yours, then resume"
        raise WinnowError(f"Prefect's server {what} (stored results are safe)") from error
