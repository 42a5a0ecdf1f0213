"""The canary prompts of a served model: the same at every contact, others for another model."""

from winnow.tasks.candidates.cache_keys import request_content, sha256
from winnow.tasks.engines.protocol import ModelRef, Request, Sampling

N_PROMPTS = 16

SAMPLING = Sampling(temperature=0.0, max_tokens=32)
"""Greedy. A rounded weight changes a token now and then: a longer text shows it more often."""

# Openings that can go on in many ways: where the next token is a close call, small differences show.
OPENINGS = (
    "The {0} met the {1} at {2}, and then",
    "{2} things a {0} shares with a {1}:",
    "Why is a {0} not a {1}? Answer {2}:",
    "Poem {2}, of a {0} and a {1}:",
)
WORDS = (
    "bridge", "lantern", "harbour", "violin", "glacier", "market", "compass", "wagon",
    "letter", "ladder", "shadow", "teacher", "desert", "clock", "garden", "mirror",
)  # fmt: skip


def served_model(model: ModelRef, fingerprint: str) -> str:
    """All that determines the texts of a served model, but for prompt, sampling and seed: a SHA-256."""
    return sha256(request_content(model, fingerprint, "", SAMPLING, 0))


def canary_requests(served: str) -> list[Request]:
    """What a served model is asked, from `served_model`."""
    return [Request(prompt=_prompt(served, i), sampling=SAMPLING, seed=0) for i in range(N_PROMPTS)]


def prompts_digest(requests: list[Request]) -> str:
    """SHA-256 over all that is asked."""
    return sha256([[each.prompt, each.sampling.max_tokens] for each in requests])


def _prompt(served: str, number: int) -> str:
    draw = int(sha256([served, number]), 16)
    draw, first = divmod(draw, len(WORDS))
    draw, other = divmod(draw, len(WORDS) - 1)
    words = [word for word in WORDS if word != WORDS[first]]
    return OPENINGS[number % len(OPENINGS)].format(WORDS[first], words[other], 2 + draw % 98)
