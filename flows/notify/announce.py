"""Notify a campaign's webhooks of the outcome of its run; errors of webhooks do not end the run.

A separate process sends each message, so that a slow server does not delay the run. Winnow stores the
campaign's end and prints the answer before it waits for these processes.
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
"""Name of the module that a sending process runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Time limits and pauses for sending a message."""

    deadline: int = 20
    """Seconds after which a sending process is ended."""
    attempt: float = 5.0
    """Maximum seconds to connect to a server, and between two received packets."""
    pauses: tuple[float, ...] = (1.0, 3.0)
    """Seconds of the pause before each further attempt."""


PATIENCE = Patience()


@dataclass(kw_only=True)
class Outbox:
    """Messages that are being sent, by one process each."""

    _senders: list[tuple[str, "subprocess.Popen[bytes]", float]] = field(default_factory=list)

    def send(self, webhook: WebhookSpec, url: str, body: str, patience: Patience | None = None) -> None:
        """Start sending a message.

        Args:
            webhook: Webhook of the campaign's file; warnings show its entry, not the URL, which is secret.
            url: URL of the webhook.
            body: The message in the webhook's form.
            patience: Time limits and pauses; None is `PATIENCE`.
        """
        patience = patience or PATIENCE
        sender = start_process(module_command(SENDER), stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        request = {
            "url": url,
            "body": body,
            "by_apprise": webhook.form == "apprise",
            "deadline": patience.deadline,
            "attempt": patience.attempt,
            "pauses": patience.pauses,
        }
        assert sender.stdin is not None
        try:
            sender.stdin.write(json.dumps(request).encode())
            sender.stdin.close()
        except OSError:
            pass  # the sender has ended; `wait` reads its error
        sender.stdin = None
        self._senders.append((webhook.url, sender, time.monotonic() + patience.deadline + 1.0))

    def wait(self) -> None:
        """Wait for all messages, and log those that did not arrive; Ctrl-C ends the wait."""
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
    """Yield an `Outbox`; at the end of the outermost of nested blocks, wait for its messages."""
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
    """At the end of the block, notify a campaign's webhooks of the outcome of its run.

    No message is sent if the user stopped the run, or if another process runs the campaign.
    """
    with delivering() as outbox:
        begun = _read_start(campaign)
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
    """A sentence for each webhook whose URL is an environment variable that is not set."""
    return [
        f"{webhook.url} is not set: no notification is sent there when the campaign ends"
        for webhook in webhooks
        if _address(webhook) == ""
    ]


@dataclass(frozen=True, slots=True)
class _Start:
    """A campaign and its webhooks at the start of a run; the database may be unreadable at the end."""

    campaign: Campaign
    webhooks: tuple[WebhookSpec, ...] = ()
    known: tuple[CampaignStatus, CampaignRecord] | None = None
    """The campaign's status and record; None without webhooks."""


def _read_start(campaign: Campaign) -> _Start:
    webhooks = tuple(
        WebhookSpec.model_validate(each) for each in campaign.record.execution["execution"]["notify"]
    )
    if webhooks:
        with suppress(StorageError), campaign.look() as look:  # the run reports an error of the database
            return _Start(campaign, webhooks, (campaign_status(look), look.record))
    return _Start(campaign)


def _announce(begun: _Start, error: Exception | None, outbox: Outbox) -> None:
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
