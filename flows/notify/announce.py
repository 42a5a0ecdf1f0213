"""Notify a campaign's webhooks of the outcome of its run; errors here do not end the run."""

import logging
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from winnow.flows.notify.outbox import Outbox, delivering
from winnow.storage.errors import LeaseHeld, LeaseLost, StorageError
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.campaign import Campaign
from winnow.tasks.queries.status import CampaignStatus, campaign_status
from winnow.tasks.spec.sections.execution import WebhookSpec
from winnow.tasks.text.printable import one_line

LOGGER = logging.getLogger("winnow.notify")


@contextmanager
def announcing(campaign: Campaign) -> Generator[None, None, None]:
    """Notify a campaign's webhooks of the outcome of its run, when the block is left.

    A run that is stopped by hand, or that finds its campaign taken over, sends nothing.
    """
    with delivering() as outbox:
        begun = _begun(campaign)
        for complaint in unset_variables(begun.webhooks):
            LOGGER.warning("%s", complaint, extra={"event": "notify_failed"})
        try:
            yield
        except (LeaseHeld, LeaseLost):
            raise
        except Exception as error:
            _announce(begun, error, outbox)
            raise
        _announce(begun, None, outbox)


def unset_variables(webhooks: Sequence[WebhookSpec]) -> list[str]:
    """A sentence for each webhook whose URL variable is not set here."""
    return [
        f"{webhook.url} is not set: no notification is sent there when the campaign ends"
        for webhook in webhooks
        if _address(webhook) == ""
    ]


@dataclass(frozen=True, slots=True)
class _Begun:
    """Facts about a run, read at its start, because the database may be what fails."""

    campaign: Campaign
    webhooks: tuple[WebhookSpec, ...] = ()
    known: tuple[CampaignStatus, CampaignRecord] | None = None
    """The campaign's status and record; None without webhooks."""


def _begun(campaign: Campaign) -> _Begun:
    webhooks = tuple(
        WebhookSpec.model_validate(each) for each in campaign.record.execution["execution"]["notify"]
    )
    if webhooks:
        with suppress(StorageError), campaign.look() as look:  # the run says what is wrong with the database
            return _Begun(campaign, webhooks, (campaign_status(look), look.record))
    return _Begun(campaign)


def _announce(begun: _Begun, error: Exception | None, outbox: Outbox) -> None:
    if not begun.webhooks:
        return
    from winnow.flows.notify.messages import as_body, events_in, message_at_end  # most runs notify nobody

    try:
        message = message_at_end(begun.campaign, begun.known, error)
        for webhook in begun.webhooks:
            url = _address(webhook)
            if message is not None and url and not set(webhook.events).isdisjoint(events_in(message)):
                outbox.send(webhook, url, as_body(message, webhook.form))
    except Exception as trouble:
        LOGGER.warning(
            "no notification was sent about the end of %s: %s",
            begun.campaign.name,
            one_line(str(trouble) or type(trouble).__name__),
            extra={"event": "notify_failed"},
        )


def _address(webhook: WebhookSpec) -> str:
    """The address of a webhook; empty if its variable is not set."""
    if not webhook.url.startswith("$"):
        return webhook.url
    return os.environ.get(webhook.url[1:], "").strip()
