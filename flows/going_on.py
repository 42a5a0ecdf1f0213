"""Going on with campaigns that are begun, not settled and held by nobody, one after the other."""

import traceback
from collections.abc import Callable

from winnow.flows import exits
from winnow.flows.campaign_lines import campaign_line
from winnow.flows.interrupts import Interrupts
from winnow.flows.progress import progress_display
from winnow.flows.reading import reading
from winnow.flows.storage_urls import hide
from winnow.flows.trusting import Trust, require_stored_trust
from winnow.flows.watching import watched_by
from winnow.flows.zombies import tags_of_this_process
from winnow.storage import campaign_records
from winnow.storage.errors import LeaseHeld, StorageError
from winnow.tasks.errors import SpecError, WinnowError
from winnow.tasks.status import CampaignStatus, campaign_status

Say = Callable[[str], None]

FROM_GOOD_TO_BAD = (exits.DECIDED, exits.UNDECIDED, exits.USAGE, exits.ERROR, exits.FORCED)


def unfinished_campaigns(storage: str, family: str | None = None) -> list[str]:
    """Campaigns, perhaps of one family alone, that running again would bring further; oldest first."""
    with reading(storage) as session:
        return [
            record.name
            for record in campaign_records.campaigns(session)
            if (family is None or record.family == family)
            and is_left_unfinished(campaign_status(session, record))
        ]


def is_left_unfinished(status: CampaignStatus) -> bool:
    """Whether a campaign has more to do and nobody does it."""
    return not status.is_settled and status.state != "running"


def go_on_with_all(storage: str, names: list[str], interrupts: Interrupts, say: Say, trust: Trust) -> int:
    """Run campaigns one after the other, with a line for each; none stops the others by failing.

    Args:
        storage: URL of the results database.
        names: The campaigns.
        interrupts: Who may ask to stop; then no further one is begun.
        say: Takes each line.
        trust: What they may do.

    Returns:
        The worst of their exit codes.
    """
    worst = exits.DECIDED
    for name in names:
        code, line = _go_on(storage, name, interrupts, trust)
        say(line)
        worst = max(worst, code, key=FROM_GOOD_TO_BAD.index)
        if interrupts.asked:
            return exits.FORCED
    return worst


def _go_on(storage: str, name: str, interrupts: Interrupts, trust: Trust) -> tuple[int, str]:
    try:
        require_stored_trust(storage, name, trust)
        run_flow(storage, name, interrupts)
    except LeaseHeld as held:
        return exits.DECIDED, str(held)  # somebody else was faster
    except (WinnowError, StorageError) as error:
        code = exits.USAGE if isinstance(error, SpecError) else exits.ERROR
        return code, f"{name}: failed: {error}"
    except Exception as error:
        # A bug, which must not keep the other campaigns from going on.
        traceback.print_exc()
        return exits.ERROR, f"{name}: failed: {error!r}"
    return exit_code(status_of(storage, name)), campaign_line(storage, name)


def status_of(storage: str, name: str, *, in_full: bool = False) -> CampaignStatus:
    """Where a campaign stands; see `campaign_status`."""
    with reading(storage) as session:
        return campaign_status(session, campaign_records.get_campaign(session, name), in_full=in_full)


def exit_code(status: CampaignStatus) -> int:
    """How a command ends that ran a campaign up to here."""
    if not status.is_settled:
        return exits.ERROR
    match status.answer.outcome:
        case "winner" | "tied" | "policy" | "decided":
            return exits.DECIDED
        case "failed":
            return exits.ERROR
        case _:
            return exits.UNDECIDED


def gate_code(status: CampaignStatus, code: int) -> int:
    """How the command ends that holds candidates against a baseline, given how running the campaign ended.

    It is 4 as soon as some candidate is shown to be worse, and 0 once all are shown to be no worse.
    """
    if code not in (exits.DECIDED, exits.UNDECIDED):
        return code
    answer = status.answer
    if not answer.is_guaranteed:
        return exits.UNDECIDED
    if answer.named("worse"):
        return exits.WORSE
    shown = len(answer.named("no-worse", "better"))
    return exits.DECIDED if shown == len(answer.candidates) - 1 else exits.UNDECIDED


def run_flow(storage: str, name: str, interrupts: Interrupts) -> None:
    """Run a stored campaign's flow, with its progress on standard error.

    Raises:
        WinnowError: If Prefect's server is gone; what the campaign has stored by then stays.
    """
    # Imported here: Prefect takes more than a second, and reads its settings when it is imported.
    from httpx import HTTPError
    from prefect import tags

    from winnow.flows.campaign import run_campaign

    try:
        with progress_display(interrupts) as watcher, watched_by(watcher), tags(*tags_of_this_process()):
            run_campaign(hide(storage), name)
    except HTTPError as error:
        raise WinnowError(
            f"Prefect's server does not answer any more ({error}); start it again if it is yours, then go "
            "on: nothing that was stored is lost"
        ) from error
