"""Spans of OpenTelemetry for a campaign's run and for each of its rounds; see `engines.pool.tracing`."""

from collections.abc import Generator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Span

from winnow.algorithms.decision import Decision
from winnow.storage.records.values import RoundRecord
from winnow.tasks.campaign.session import CampaignSession

TRACER = trace.get_tracer("winnow.campaign")


@contextmanager
def campaign_span(campaign: CampaignSession) -> Generator[None, None, None]:
    """The span of one run of a campaign, from the moment on at which its lease is held."""
    attributes = {"winnow.campaign": campaign.record.name, "winnow.objective": campaign.record.objective}
    with TRACER.start_as_current_span("campaign", attributes=attributes):
        yield


@contextmanager
def round_span(campaign: CampaignSession, round_: RoundRecord) -> Generator[Span, None, None]:
    """The span of a round once it is planned; calls of engines are spans inside it."""
    attributes: dict[str, str | int] = {
        "winnow.campaign": campaign.record.name,
        "winnow.round": round_.number,
        "winnow.comparisons": len(round_.examples),
    }
    with TRACER.start_as_current_span("round", attributes=attributes) as span:
        yield span


def tell_decision(span: Span, campaign: CampaignSession, decision: Decision) -> None:
    """Put onto a round's span what was decided after it."""
    if not span.is_recording():
        return
    span.set_attribute("winnow.stop", decision.stop)
    span.set_attribute("winnow.reason", decision.reason)
    if decision.best is not None:
        span.set_attribute("winnow.best", campaign.checked.candidates[decision.best].name)
