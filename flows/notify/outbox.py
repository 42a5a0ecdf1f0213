"""Outgoing messages to webhooks: a separate process sends each, so that no server delays the run for long.

A campaign's end is stored, and its answer printed, before messages are waited for.
"""

import json
import logging
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from winnow.tasks.processes.child_process import end_process, module_command, start_process
from winnow.tasks.spec.sections.execution import WebhookSpec

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
