"""From the reply to a judgment: a verdict as seen from answer A, or the reason why there is none."""

from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.judges.pairwise.protocol import Judgment, JudgmentCall, Reply
from winnow.tasks.judges.pairwise.verdicts import Read, VerdictFormat

VERDICT_MISSING = "verdict_missing"
PATTERN_TIMEOUT = "pattern_timeout"
NO_PROBABILITIES = "no_probabilities"


def read_reply(call: JudgmentCall, reply: Reply, verdicts: VerdictFormat, read: Read) -> Judgment:
    """The judgment of one call; in swapped judgments the verdict is turned back."""
    text, shown_first, reason = _read(reply, verdicts, read)
    if shown_first is not None and call.presentation_order == "swapped":
        shown_first = 1.0 - shown_first
    return Judgment(
        judge=call.judge,
        presentation_order=call.presentation_order,
        repeat=call.repeat,
        attempt=call.attempt,
        reply=text,
        verdict=shown_first,
        reason=reason,
    )


def _read(reply: Reply, verdicts: VerdictFormat, read: Read) -> tuple[str | None, float | None, str | None]:
    """Text, preference for the answer shown first, reason."""
    if isinstance(reply, GenerationFailure):
        return None, None, reply.reason
    if read == "probabilities":
        verdict = verdicts.expected(reply.choice_logprobs)
        return reply.text, verdict, NO_PROBABILITIES if verdict is None else None
    if read == "choice":
        verdict = verdicts.scores.get(reply.text)
        return reply.text, verdict, VERDICT_MISSING if verdict is None else None
    try:
        verdict = verdicts.in_text(reply.text)
    except TimeoutError:
        return reply.text, None, PATTERN_TIMEOUT
    return reply.text, verdict, VERDICT_MISSING if verdict is None else None
