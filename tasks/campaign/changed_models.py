"""When a served model counts as changed, and which changes matter.

A gateway can use another model than the requested one; most gateways report its name with the answer.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy.orm import Session

from winnow.algorithms.bounds.binomial import larger_share_p_value
from winnow.storage.records import canaries as canary_records
from winnow.storage.records.canaries import canaries_behind, names_served, texts_before
from winnow.storage.records.record_types import CampaignRecord, CanaryRecord
from winnow.tasks.spec.stored_spec import ONLY

When = Literal["before", "during", "after"]

N_PROMPTS = 16
"""Number of canary prompts per model.
A small campaign uses only the first of them, see `contacts.n_prompts`.
"""

LEVEL = 0.01
"""Upper bound, for each contact, on the probability of reporting an unchanged server as changed."""

MOST_SHOWN = 4
"""Maximum number of reported model names in a sentence."""


def count_changed(before: Sequence[str | None], after: Sequence[str | None]) -> int:
    """Number of answers that differ; 0 if one of the contacts has no answers."""
    return sum(old != new for old, new in zip(before, after, strict=True)) if before and after else 0


def has_changed(noise: int, changed: int, n: int) -> bool:
    """Whether more of n answers changed than a server's own noise and chance explain.

    Args:
        noise: Number of answers that differed between two requests to the same server.
        changed: Number of answers that differ now.
        n: Number of answers.
    """
    return larger_share_p_value(noise, changed, n) < LEVEL


def other_names(before: CanaryRecord | None, server: str, served_as: str | None) -> tuple[str, str] | None:
    """A server's names for the model before and now; None unless they differ.

    Names of different servers are not compared: each can have its own name for the same model.
    """
    if before is None or before.server != server or before.served_as is None or served_as is None:
        return None
    return None if before.served_as == served_as else (before.served_as, served_as)


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryChange:
    """A change of a served model, detected by its canary answers or its reported name."""

    model: str
    """The campaign's name for the model."""
    server: str
    """Base URL of the contacted server."""
    found_at: dt.datetime
    when: When
    """Time of the contact that detected the change.
    "before": the campaign's first contact, so before all its requests. "during": a later contact of the
    campaign. "after": a contact of another campaign since.
    """
    changed: int
    """Number of canary answers that differ."""
    prompts: int
    """Number of canary prompts whose answers were compared."""
    names: tuple[str, str] | None = None
    """The server's names for the model before and now; None unless they are known to differ."""
    texts_before: int
    """Number of the campaign's outputs that are, or may be, by the earlier model.
    These are the outputs after an earlier canary, and those without a canary that were generated before the
    change was detected.
    """

    @property
    def mixes(self) -> bool:
        """Whether outputs before and after are compared as those of one model."""
        return self.when != "after" and self.texts_before > 0

    @property
    def sentence(self) -> str:
        """The effect of the change on the campaign's answer, as a sentence."""
        server, since = f"the server of {self.model} ({self.server})", f"{self.found_at:%Y-%m-%d %H:%M} UTC"
        if self.names is None:
            found = (
                f"{server} answers {self.changed} of {self.prompts} canary prompts differently since {since}"
            )
        else:
            before, now = self.names
            found = f"{server} reports the model name {now!r} since {since}, and reported {before!r} before"
        if self.when == "after":
            return f"{found}: this answer is about the model before the change"
        if self.texts_before == 0:
            return f"{found}: no output from before is used here"
        return (
            f"{found}: {self.texts_before} outputs of this campaign are from the model before the change, "
            "all others from the model after it; a campaign under another name requests all outputs again"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralNames:
    """A server that reported several model names for the outputs of one model."""

    model: str
    """The campaign's name for the requested model."""
    texts: Mapping[str, int]
    """Number of the campaign's outputs, by reported model name."""

    @property
    def mixes(self) -> bool:
        """Whether outputs of several models are compared as those of one model: True."""
        return True

    @property
    def sentence(self) -> str:
        """The effect of several names on the campaign's answer, as a sentence."""
        by_number = sorted(self.texts.items(), key=lambda each: -each[1])
        shares = [f"{n:,} by {name!r}" for name, n in by_number[:MOST_SHOWN]]
        if (more := len(by_number) - MOST_SHOWN) > 0:
            shares.append(f"the rest by {more:,} more")
        return (
            f"several models wrote the outputs of {self.model} that are used here, according to their "
            f"server: {', '.join(shares)}. Set `model` to one of them, or restrict the server to one; a "
            "campaign under another name with reuse: campaign requests all outputs again"
        )


ServerChange = CanaryChange | SeveralNames


def server_changes(session: Session, campaign: CampaignRecord) -> list[ServerChange]:
    """Find the served models of a campaign, judges included, that are several models.

    Detected changes come first, in the order of detection, then models with several names. Servers without
    canary answers and outputs without a reported model name are ignored. For a campaign that uses only stored
    outputs and contacts no server, the servers that generated them are checked.
    """
    asked: dict[str, list[CanaryRecord]] = {}
    for canary in _met(session, campaign):
        asked.setdefault(canary.model, []).append(canary)
    found = [
        (change.id, _change(session, campaign.id, own, change))
        for model, own in asked.items()
        for change in canary_records.changes(session, [model], since=own[0].id)
    ]
    told = {model: names_served(session, campaign.id, model) for model in asked}
    several = [
        SeveralNames(model=asked[model][0].name, texts=texts)
        for model, texts in told.items()
        if len(texts) > 1
    ]
    return [*(change for _, change in sorted(found, key=lambda each: each[0])), *several]


def _met(session: Session, campaign: CampaignRecord) -> list[CanaryRecord]:
    met = {each.id: each for each in canary_records.canaries(session, campaign.id)}
    if campaign.execution.get("reuse") == ONLY:
        met |= {each.id: each for each in canaries_behind(session, campaign.id)}
    return [met[number] for number in sorted(met)]


def _change(
    session: Session, campaign_id: int, own: list[CanaryRecord], change: CanaryRecord
) -> CanaryChange:
    if change.id == own[0].id:
        when: When = "before"
    else:
        when = "during" if change.id <= own[-1].id else "after"
    reference = canary_records.last_reference(session, change.model, before=change.id)
    return CanaryChange(
        model=own[0].name,
        server=change.server,
        found_at=change.created_at,
        when=when,
        changed=change.changed,
        prompts=len(change.texts) if reference is None else min(len(change.texts), len(reference.texts)),
        names=other_names(reference, change.server, change.served_as),
        texts_before=texts_before(session, campaign_id, own[0].name, change),
    )
