"""OpenTelemetry spans for a campaign's run and its rounds."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Span

from winnow.algorithms.decision import Decision
from winnow.storage.records.record_types import CampaignRecord, RoundRecord
from winnow.tasks.candidates.candidates import Candidate

CAMPAIGNS = trace.get_tracer("winnow.campaign")


@contextmanager
def campaign_span(campaign: CampaignRecord) -> Generator[None, None, None]:
    """The span of one run of a campaign, from the time its lease is held."""
    attributes = {"winnow.campaign": campaign.name, "winnow.objective": campaign.objective}
    with CAMPAIGNS.start_as_current_span("campaign", attributes=attributes):
        yield


@contextmanager
def round_span(campaign: CampaignRecord, round_: RoundRecord) -> Generator[Span, None, None]:
    """The span of a round once it is planned; calls of engines are spans inside it."""
    attributes: dict[str, str | int] = {
        "winnow.campaign": campaign.name,
        "winnow.round": round_.number,
        "winnow.comparisons": len(round_.examples),
    }
    with CAMPAIGNS.start_as_current_span("round", attributes=attributes) as span:
        yield span


def tell_decision(span: Span, candidates: Sequence[Candidate], decision: Decision) -> None:
    """Set a round's decision as attributes of its span."""
    if not span.is_recording():
        return
    span.set_attribute("winnow.stop", decision.stop)
    span.set_attribute("winnow.reason", decision.reason)
    if decision.best is not None:
        span.set_attribute("winnow.best", candidates[decision.best].name)
