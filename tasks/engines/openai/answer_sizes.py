"""How long an answer may be: whoever answers at greater length is broken or hostile."""

from collections.abc import Sequence

from winnow.tasks.engines.protocol import Request

KIB = 1 << 10
MIB = 1 << 20

ESCAPED = 6
"""Bytes of a character that JSON spells in ASCII, such as \\u00e9; two such stand for one beyond U+FFFF."""


def bytes_for(tokens: int) -> int:
    """The longest body of an answer of so many tokens: 1 KiB for each, and 1 MiB for all else."""
    return tokens * KIB + MIB


def bytes_for_batch(requests: Sequence[Request]) -> int:
    """The longest message with the answers to requests, choices and their probabilities among them."""
    return MIB + sum(bytes_for(request.sampling.max_tokens) + _of_choices(request) for request in requests)


def _of_choices(request: Request) -> int:
    texts = (*request.sampling.choices, *request.continuations)
    return sum(2 * ESCAPED * len(each) + KIB for each in texts)
