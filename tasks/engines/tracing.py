"""OpenTelemetry spans of engine calls, with its attributes for generative models.

Without the SDK nothing is recorded, and a span takes about ten microseconds.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind

from winnow.tasks.engines.protocol import Answer, Completion, ModelRef

ENGINES = trace.get_tracer("winnow.engines")


@contextmanager
def engine_call(model: ModelRef, n_requests: int) -> Generator[Span, None, None]:
    """Open the span of a batch of requests to one model, loading included.

    An error sets the span's status.
    """
    operation = "chat" if model.chat else "text_completion"
    with ENGINES.start_as_current_span(
        f"{operation} {model.name}",
        kind=SpanKind.CLIENT,
        attributes={
            "gen_ai.operation.name": operation,
            "gen_ai.request.model": model.model,
            "gen_ai.provider.name": model.provider,
            "winnow.model": model.name,
            "winnow.requests": n_requests,
        },
    ) as span:
        yield span


def record_usage(span: Span, answers: Sequence[Answer]) -> None:
    """Set a call's token counts and failures as attributes of its span, if the span is recorded."""
    if not span.is_recording():
        return
    texts = [each for each in answers if isinstance(each, Completion)]
    span.set_attribute("gen_ai.usage.input_tokens", sum(each.input_tokens for each in texts))
    span.set_attribute("gen_ai.usage.output_tokens", sum(each.output_tokens for each in texts))
    span.set_attribute("winnow.failures", len(answers) - len(texts))
