"""Build the notification about a run's end: its events, and the message as JSON or text."""

import json
from collections.abc import Mapping, Sequence
from typing import Literal

from winnow.storage.errors import StorageError
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.answer.sentences.answer_lines import headline
from winnow.tasks.answer.status_lines import status_lines
from winnow.tasks.campaign.campaign import Campaign
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.schedule_history import edited_since, is_another, previous_winner
from winnow.tasks.queries.status import CampaignStatus, campaign_status, told_in_full
from winnow.tasks.spec.sections.execution import Event
from winnow.tasks.text.printable import one_line, printable

MOST_CHARACTERS = 3_000
"""Maximum length of a text message."""
LONGEST_ERROR = 1_000
"""Maximum length of the error in a message."""

SLACKS_OWN = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
"""Escapes for characters that begin a mention or a link in Slack."""
MENTIONS = str.maketrans({"@": "@\N{WORD JOINER}", "<": "‹", ">": "›"})
"""Replacements for characters that begin a mention or a link in a service of Apprise."""

Message = Mapping[str, object]


WITHOUT_ANSWER: dict[str | None, Event] = {"failed": "failed", "undecided": "undecided", "none": "undecided"}


def events_of(status: CampaignStatus, before: CampaignStatus | None) -> tuple[Event, ...]:
    """The events at the end of a run, the most general first; empty if the campaign can continue.

    Args:
        status: The campaign's status.
        before: Status of the last campaign of the same schedule that had a winner; None without one.
    """
    if not status.is_settled:
        return ()
    if status.state == "waiting":
        return ("waiting",)
    found: list[Event] = [WITHOUT_ANSWER.get(status.answer.outcome, "decided")]
    if before is not None and is_another(before.answer, status.answer):
        found.append("winner-changed")
    if status.answer.baseline is not None and status.answer.is_guaranteed and status.answer.named("worse"):
        found.append("regression")
    return tuple(found)


def message_of(
    status: CampaignStatus,
    campaign: CampaignRecord,
    events: Sequence[Event],
    before: CampaignStatus | None,
    error: Exception | None,
    differing: Sequence[str] = (),
) -> Message:
    """The complete message as JSON values.

    Args:
        status: The campaign's status.
        campaign: The campaign.
        events: Events at the end of the run; at least one.
        before: Status of the last campaign of the same schedule that had a winner; None without one.
        error: The error that ended the run; None without an error.
        differing: Differences between `before` and this campaign; see `schedule_history.differs_in`.
    """
    answer, best = status.answer, status.answer.of_best
    return {
        "events": list(events),
        "campaign": status.name,
        "series": campaign.series,
        "objective": status.objective,
        "headline": headline(answer, status.state),
        "sentences": [printable(each) for each in status.headline_sentences()],
        "error": None if error is None else one_line(str(error) or type(error).__name__)[:LONGEST_ERROR],
        "outcome": answer.outcome,
        "claim": answer.claim.kind,
        "delta": answer.claim.delta,
        "best": best and best.name,
        "winners": sorted(status.answer.winners),
        "estimate": best and best.estimate,
        "lower": best and best.lower,
        "upper": best and best.upper,
        "worse": list(answer.named("worse")),
        "before": None
        if before is None
        else {
            "campaign": before.name,
            "winners": sorted(before.answer.winners),
            "claim": before.answer.claim.kind,
            "differs_in": list(differing),
        },
        "comparisons": status.totals["answered"],
        "lines": [[word, printable(said)] for word, said in status_lines(answer, status.totals)],
    }


def as_body(message: Message, form: Literal["json", "slack", "apprise"]) -> str:
    """The body of a message in a webhook's form; texts contain no active mentions and links."""
    if form == "json":
        return json.dumps(message)
    text = "\n".join(_sentences(message))
    if len(text) > MOST_CHARACTERS:
        text = f"{text[: MOST_CHARACTERS - 1]}…"
    if form == "apprise":
        return text.translate(MENTIONS)
    text = text.translate(SLACKS_OWN)
    return json.dumps({"text": text, "mrkdwn": False, "unfurl_links": False, "unfurl_media": False})


def _sentences(message: Message) -> list[str]:
    name = one_line(str(message["campaign"]))
    if message["error"] is not None:
        return [f"{name}: an error ended the run: {message['error']}"]
    events, before, lines = message["events"], message["before"], message["lines"]
    sentences = message["sentences"]
    assert isinstance(events, list)
    assert isinstance(sentences, list)
    assert isinstance(lines, list)
    said = [f"{name}: {message['headline']}", *filter(None, [" ".join(sentences)])]
    if isinstance(before, dict) and "winner-changed" in events:
        now, then = (_names(found["winners"]) for found in (message, before))
        is_sure = {message["claim"], before["claim"]} <= {"exact", "proven"}
        sure = "" if is_sure else " (not proven of both)"
        edited = (
            f"; not the same since then: {', '.join(before['differs_in'])}" if before["differs_in"] else ""
        )
        said.append(f"winner changed: {now}; before, {then} in {one_line(before['campaign'])}{sure}{edited}")
    return [*said, *(f"{word}: {sentence}" for word, sentence in lines)]


def _names(names: object) -> str:
    assert isinstance(names, list)
    return one_line(", ".join(names))


def message_at_end(
    campaign: Campaign, known: tuple[CampaignStatus, CampaignRecord] | None, error: Exception | None
) -> Message | None:
    """The message about a run's end; None if no event happened.

    Args:
        campaign: The campaign.
        known: Status and record at the start of the run, in case the database cannot be read now.
        error: The error that ended the run; None without an error.

    Raises:
        StorageError: If the database cannot be read, unless `error` and `known` suffice for a message.
    """
    try:
        with campaign.look() as look:
            session, record = look.session, look.record
            status, before = campaign_status(Look(session, record)), previous_winner(Look(session, record))
            events = ("failed",) if error is not None else events_of(status, before)
            if not events:
                return None
            status = told_in_full(Look(session, record), status)
            return message_of(status, record, events, before, error, edited_since(session, before, record))
    except StorageError:
        if error is None or known is None:
            raise
        return message_of(*known, ("failed",), None, error)


def events_in(message: Message) -> list[str]:
    """The events of a message."""
    events = message["events"]
    assert isinstance(events, list)
    return events
