"""The stored outputs that a campaign may use instead of new ones.

`reuse: all` takes any text of the same key, whichever campaign paid for it; `{max_age: 7d}` only those that
were not older when the round was planned; `campaign` only the campaign's own; `none` makes every request
again in every round. A text is never taken from a server that has changed since (see `canaries`), nor from
another campaign where nobody can say whether it has. `only` takes whatever is stored, asks no server, and
makes no text of a candidate: a pair without one has no outcome.

Whatever the rule, a round that was interrupted finds the texts that were committed for it. So a rule that
keeps texts apart does so by their keys. It is a matter of execution: it may change from one run to the next,
for what was compared is stored and stays, and each text says which round paid for it and with which canary.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from winnow.storage.records import canaries as canary_records
from winnow.storage.records import generations as generation_records
from winnow.storage.records.record_types import RoundRecord, StoredText
from winnow.tasks.campaign.canaries.contacts import served_model
from winnow.tasks.campaign.missing_texts import PlannedGeneration
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.engines.known_providers import REMOTE
from winnow.tasks.spec.sections.execution import MaxAge, Reuse
from winnow.tasks.text.canonical_json import sha256


def reusable_texts(
    session: Session,
    campaign: CampaignSession,
    round_: RoundRecord,
    planned: Sequence[PlannedGeneration],
) -> tuple[list[PlannedGeneration], dict[str, StoredText]]:
    """The planned generations with the keys of their texts, and the stored outputs among these by key.

    Where a text may not be taken any more, its key is followed by another one, and that by the next: the
    first without such a text is where the new text is stored, for this campaign and for later ones.
    """
    reuse = campaign.checked.spec.reuse
    kept_apart = _kept_apart(reuse, campaign.record.name, round_.number)
    keyed = [_with_key(each, kept_apart, campaign.contacts.epoch(each.model.name)) for each in planned]
    texts: dict[str, StoredText] = {}
    open_ = [i for i, each in enumerate(keyed) if each.unasked is None]
    while open_:
        found = generation_records.texts_by_key(session, [keyed[i].key for i in open_])
        refused = _refused(session, campaign, round_, [keyed[i] for i in open_ if keyed[i].key in found])
        texts |= {key: text for key, text in found.items() if key not in refused}
        open_ = [i for i in open_ if keyed[i].key in refused]
        for i in open_:
            keyed[i] = _rekeyed(keyed[i], sha256({"after": keyed[i].key}))
    return keyed, texts


def stored_texts(
    session: Session, planned: Sequence[PlannedGeneration]
) -> tuple[list[PlannedGeneration], dict[str, StoredText]]:
    """The same under `only`: any stored output is taken, and no server is asked whether it has changed.

    For a served model that has changed, the latest text is taken.
    """
    epochs = {each.model.name: _latest_epoch(session, each) for each in planned}
    keyed = list(planned)
    texts: dict[str, StoredText] = {}
    open_ = [i for i, each in enumerate(keyed) if each.unasked is None]
    for epoch in range(max(epochs.values(), default=0), -1, -1):
        among = {i: _with_key(planned[i], {}, epoch) for i in open_ if epoch <= epochs[planned[i].model.name]}
        found = generation_records.texts_by_key(session, [each.key for each in among.values()])
        for i, each in among.items():
            if each.key in found:
                keyed[i] = each
        texts |= found
        open_ = [i for i in open_ if keyed[i].key not in texts]
    return keyed, texts


def _latest_epoch(session: Session, planned: PlannedGeneration) -> int:
    """The number of times that a model was found to have changed; 0 if it is not served."""
    if planned.model.provider not in REMOTE:
        return 0
    known = canary_records.last_reference(session, served_model(planned.model, planned.fingerprint))
    return 0 if known is None else known.epoch


def _kept_apart(reuse: Reuse, name: str, number: int) -> dict[str, str | int]:
    if reuse == "campaign":
        return {"campaign": name}
    return {"campaign": name, "round": number} if reuse == "none" else {}


def _with_key(planned: PlannedGeneration, kept_apart: dict[str, str | int], epoch: int) -> PlannedGeneration:
    """The planned generation, under another key where its text is kept apart or its model has changed."""
    if not (kept_apart or epoch):
        return planned
    return _rekeyed(planned, sha256({"key": planned.key, "epoch": epoch, **kept_apart}))


def _rekeyed(planned: PlannedGeneration, key: str) -> PlannedGeneration:
    return replace(planned, key=key, request_key=planned.request_key or planned.key)


def _refused(
    session: Session,
    campaign: CampaignSession,
    round_: RoundRecord,
    stored: Sequence[PlannedGeneration],
) -> set[str]:
    """The keys of stored outputs that the campaign may not take."""
    reuse = campaign.checked.spec.reuse
    unknown = [each.key for each in stored if campaign.contacts.is_unknown(each.model.name)]
    refused = set(unknown) - _own_or_since(session, campaign, unknown, None)
    if isinstance(reuse, MaxAge):
        others = [each.key for each in stored if not campaign.contacts.is_unknown(each.model.name)]
        refused |= set(others) - _own_or_since(session, campaign, others, round_.planned_at - reuse.age)
    return refused


def _own_or_since(
    session: Session, campaign: CampaignSession, keys: Sequence[str], since: dt.datetime | None
) -> set[str]:
    return generation_records.own_or_since(session, keys, campaign_id=campaign.record.id, since=since)
