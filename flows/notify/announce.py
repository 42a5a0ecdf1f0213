"""Notify a campaign's webhooks of the outcome of its run; errors here do not end the run.

A separate process sends each message, so that no server delays the run for long. A campaign's end is stored,
and its answer printed, before messages are waited for.
"""

import json
import logging
import os
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field

from winnow.storage.errors import LeaseHeld, LeaseLost, StorageError
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.campaign import Campaign
from winnow.tasks.processes.child_process import end_process, module_command, start_process
from winnow.tasks.queries.status import CampaignStatus, campaign_status
from winnow.tasks.spec.sections.execution import WebhookSpec
from winnow.tasks.text.printable import one_line

LOGGER = logging.getLogger("winnow.notify")

SENDER = "winnow.flows.notify.sender"
"""The module of a sending process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Limits of sending a message: time and number of attempts."""

    deadline: int = 20
    """Seconds until a sender is ended, in any state."""
    attempt: float = 5.0
    """Seconds to connect to a server, and between two received packets."""
    pauses: tuple[float, ...] = (1.0, 3.0)
    """Seconds before each further attempt."""


PATIENCE = Patience()


@dataclass(kw_only=True)
class Outbox:
    """The messages in transit."""

    _senders: list[tuple[str, "subprocess.Popen[bytes]", float]] = field(default_factory=list)

    def send(self, webhook: WebhookSpec, url: str, body: str, patience: Patience | None = None) -> None:
        """Start sending a message.

        Args:
            webhook: The entry of the campaign's file; warnings name it, not the URL, a secret.
            url: Its address.
            body: The message in the webhook's form.
            patience: Limits on time and attempts; None is `PATIENCE`.
        """
        patience = patience or PATIENCE
        sender = start_process(module_command(SENDER), stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        told = {
            "url": url,
            "body": body,
            "by_apprise": webhook.form == "apprise",
            "deadline": patience.deadline,
            "attempt": patience.attempt,
            "pauses": patience.pauses,
        }
        assert sender.stdin is not None
        try:
            sender.stdin.write(json.dumps(told).encode())
            sender.stdin.close()
        except OSError:
            pass  # it has ended; what it said is read when it is waited for
        sender.stdin = None
        self._senders.append((webhook.url, sender, time.monotonic() + patience.deadline + 1.0))

    def wait(self) -> None:
        """Wait for all messages, and report those that did not arrive; Ctrl-C stops waiting."""
        try:
            while self._senders:
                shown, sender, deadline = self._senders[0]
                _end(shown, sender, deadline)
                self._senders.pop(0)
        finally:
            for _, sender, _ in self._senders:
                end_process(sender)


_outbox: ContextVar[Outbox | None] = ContextVar("outbox", default=None)


@contextmanager
def delivering() -> Generator[Outbox, None, None]:
    """At the end of the outermost of these blocks, wait for the messages sent inside it."""
    if (outer := _outbox.get()) is not None:
        yield outer
        return
    outbox = Outbox()
    token = _outbox.set(outbox)
    try:
        yield outbox
    finally:
        _outbox.reset(token)
        try:
            outbox.wait()
        except KeyboardInterrupt:
            LOGGER.warning("some notifications were not sent: interrupted", extra={"event": "notify_failed"})


def _end(shown: str, sender: "subprocess.Popen[bytes]", deadline: float) -> None:
    said = b""
    try:
        _, said = sender.communicate(timeout=max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        end_process(sender)
    if sender.returncode == 0:
        return
    why = said.decode(errors="replace").strip().rpartition("\n")[2] or "it timed out"
    LOGGER.warning(
        "the webhook %s did not receive the notification: %s; all results are stored",
        shown,
        why,
        extra={"event": "notify_failed", "webhook": shown},
    )


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
    """Facts about a run, read at its start, because the database may be unreadable at its end."""

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
    """The URL of a webhook; empty if its environment variable is not set."""
    if not webhook.url.startswith("$"):
        return webhook.url
    return os.environ.get(webhook.url[1:], "").strip()
