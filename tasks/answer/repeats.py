"""Whether a campaign that is run again has the same texts: not where they depend on what is beside them."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from winnow.storage.records.generations import engines_of
from winnow.storage.records.values import CampaignRecord
from winnow.tasks.answer.phrases import Line
from winnow.tasks.engines.providers import REMOTE
from winnow.tasks.spec.stored_spec import judge_entries

STEADY = frozenset({"float32", "batch-invariant"})
"""Words in the identity of an engine whose texts do not depend on what is written beside them."""


def unsteady_engines(session: Session, campaign: CampaignRecord) -> tuple[str, ...]:
    """The engines of a campaign's texts that may write others when they are asked again, by identity.

    Where engines are asked whole calls, those of this machine answer each of these alike. A server answers
    whoever else asks it, and an engine that says nothing of its precision is taken at its worst where texts
    of several rounds were written together.
    """
    spec = campaign.spec
    streams, ahead = spec.get("streaming", True), bool(spec.get("lookahead"))
    models = [*spec.get("models", []), *judge_entries(spec.get("judge", {}))]
    found = engines_of(session, campaign.id, [str(each.get("name")) for each in models])
    return tuple(sorted(each for each in found if _is_unsteady(each, streams=streams, ahead=ahead)))


def _is_unsteady(identity: str, *, streams: bool, ahead: bool) -> bool:
    provider, *words = identity.split(" ")
    if provider in REMOTE:
        return True
    if not streams or STEADY & set(words):
        return False
    return ahead or provider in ("vllm", "transformers")


def repeat_lines(engines: Sequence[str]) -> list[Line]:
    """That a run may not be had again; nothing where all engines are steady."""
    if not engines:
        return []
    whose = ", ".join(engines)
    said = (
        "stored texts always give this answer; a run that is made again, or killed and resumed, may have "
        f"others: what {whose} writes may depend on what is written beside it"
    )
    return [("again", said)]
