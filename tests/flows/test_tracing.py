"""Spans of a campaign, its rounds and the calls of engines, as OpenTelemetry's own SDK records them."""

import pytest
import scripted_engines
from campaigns import winnow
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from scored_campaigns import write_scored

from winnow.tasks.engines import tracing as engine_tracing
from winnow.tasks.engines.pool.request_scheduler import Replicas, RequestGroup, RequestScheduler
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.objectives import runner as campaign_tracing

pytestmark = pytest.mark.usefixtures("plain_runs")


@pytest.fixture
def recorded(monkeypatch):
    """What is recorded; the tracers alone are exchanged, since a process has but one provider for good."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(campaign_tracing, "CAMPAIGNS", provider.get_tracer("test"))
    monkeypatch.setattr(engine_tracing, "ENGINES", provider.get_tracer("test"))
    return exporter


def test_a_run_is_a_span_of_rounds_and_these_of_calls(recorded, tmp_path, monkeypatch):
    for name in ("knows", "guesses"):
        scripted_engines.provide(monkeypatch, name)
    write_scored(tmp_path, ["knows", "guesses"], {"name": "champion"})
    assert winnow(tmp_path, "run", "campaign.yaml").returncode == 0
    spans = recorded.get_finished_spans()
    (campaign,) = [span for span in spans if span.name == "campaign"]
    assert dict(campaign.attributes) == {"winnow.campaign": "survivor", "winnow.objective": "best-mean"}
    rounds = [span for span in spans if span.name == "round"]
    assert [span.attributes["winnow.round"] for span in rounds] == list(range(len(rounds)))
    assert {span.parent.span_id for span in rounds} == {campaign.context.span_id}
    assert (rounds[-1].attributes["winnow.best"], rounds[-1].attributes["winnow.stop"]) == (
        "knows/plain",
        True,
    )
    calls = [span for span in spans if span.name.startswith("text_completion ")]
    assert {span.parent.span_id for span in calls} <= {span.context.span_id for span in rounds}
    assert {span.attributes["gen_ai.provider.name"] for span in calls} == {"knows", "guesses"}
    asked = sum(span.attributes["winnow.requests"] for span in calls)
    assert asked == sum(span.attributes["gen_ai.usage.output_tokens"] for span in calls)
    assert asked == sum(span.attributes["winnow.comparisons"] for span in rounds)


def test_calls_that_are_made_in_threads_belong_to_the_round_too(recorded):
    class Slots:
        seconds = {}  # noqa: RUF012

        def keys(self, *, placed):
            return ()

        def reserve(self, *_, **__):
            return True

        def cancel(self, key):
            pass

    def ask(group, engine, is_ready, came):
        with engine_tracing.ENGINES.start_as_current_span("call"):
            return []

    with campaign_tracing.CAMPAIGNS.start_as_current_span("round"):
        scheduler = RequestScheduler(
            ask=ask,
            slots=(slots := Slots()),
            replicas=Replicas(slots),
            failed=(),
            later=(),
            aside=True,
            beside=True,
            joins=False,
            spreads=False,
        )
        for key in ("a", "b"):
            scheduler.add(
                RequestGroup(model=ModelRef(name=key, provider="p", model="m"), requests=()), key, 1
            )
        assert sorted(scheduler.outcomes()) == [(0, []), (1, [])]
    *calls, whole = recorded.get_finished_spans()
    assert [span.parent.span_id for span in calls] == [whole.context.span_id] * 2


def test_without_an_sdk_nothing_is_recorded():
    with engine_tracing.ENGINES.start_as_current_span("call") as span:
        engine_tracing.record_usage(span, ["what is no answer would be looked at"])
    assert not span.is_recording()
