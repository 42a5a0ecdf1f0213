"""Which stored outputs a campaign can use instead of generating new ones.

* `all`: every output with the same key, from any campaign.
* `{max_age: 7d}`: outputs that were not older when the round was planned.
* `campaign`: only the campaign's own outputs.
* `none`: no stored outputs; every round repeats every request.
* `only`: any stored output. No server is contacted, and nothing is generated for candidates: a pair without
  an output has no outcome.

An output of a server that has changed since is never used (see `contacts`). An output of another campaign is
not used if it is unknown whether its server has changed.

Under every rule, an interrupted round finds the outputs that were committed for it. To achieve this, rules
separate outputs by their keys. The rule is an execution setting and can change between runs, because
comparisons are stored and each output records its round and canary.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from winnow.storage.records import canaries as canary_records
from winnow.storage.records import generations as generation_records
from winnow.storage.records.record_types import RoundRecord, StoredText
from winnow.tasks.campaign.contacts import served_model
from winnow.tasks.campaign.planned_outputs import PlannedGeneration
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.engines.known_providers import REMOTE
from winnow.tasks.spec.sections.execution import MaxAge, Reuse
from winnow.tasks.text.canonical_json import sha256


def reusable_texts(
    session: Session, campaign: CampaignSession, round_: RoundRecord, planned: Sequence[PlannedGeneration]
) -> tuple[list[PlannedGeneration], dict[str, StoredText]]:
    """Assign keys to planned generations, and find the stored outputs under them.

    If a stored output must not be reused, its key is replaced by a derived one, repeatedly if necessary. The
    new output is stored under the first free key, for this campaign and for later ones.

    Returns:
        The planned generations with their keys, and the stored outputs by key.
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
    """`reusable_texts` under `only`: any stored output, without checking servers.

    For a served model that has changed, the latest output is used.
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
    """Number of detected changes of a model; 0 if the model is not served."""
    if planned.model.provider not in REMOTE:
        return 0
    known = canary_records.last_reference(session, served_model(planned.model, planned.fingerprint))
    return 0 if known is None else known.epoch


def _kept_apart(reuse: Reuse, name: str, number: int) -> dict[str, str | int]:
    if reuse == "campaign":
        return {"campaign": name}
    return {"campaign": name, "round": number} if reuse == "none" else {}


def _with_key(planned: PlannedGeneration, kept_apart: dict[str, str | int], epoch: int) -> PlannedGeneration:
    """Give a planned generation another key, if needed.

    It needs one if its output is kept separate or its model has changed.
    """
    if not (kept_apart or epoch):
        return planned
    return _rekeyed(planned, sha256({"key": planned.key, "epoch": epoch, **kept_apart}))


def _rekeyed(planned: PlannedGeneration, key: str) -> PlannedGeneration:
    return replace(planned, key=key, request_key=planned.request_key or planned.key)


def _refused(
    session: Session, campaign: CampaignSession, round_: RoundRecord, stored: Sequence[PlannedGeneration]
) -> set[str]:
    """Keys of stored outputs that the campaign must not use."""
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
