"""What the scores of several texts for one example come to: one number in [0, 1] for the example."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, fsum

from winnow.tasks.spec.sections.generate_config import SamplesSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredText:
    """One of the texts, and what the judge said of it."""

    text: str
    score: float
    """In [0, 1]."""
    answer: str | None = None
    """What the judge read from it; None where that is the whole text."""
    no_answer: bool = False
    preference: float | None = None
    """How much a judge that chooses likes it; of `best-of` alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """What the texts come to."""

    score: float
    """In [0, 1]."""
    shown: int
    """Position of the text that stands for them."""
    answer: str
    """How it came about."""


def reduced(samples: SamplesSpec, texts: Sequence[ScoredText]) -> Reduced:
    """What the texts come to as a spec says; their order decides nothing but which one is shown."""
    if samples.reduce == "majority":
        return _majority(texts)
    if samples.reduce == "best-of":
        return _best_of(texts)
    scores = [each.score for each in texts]
    told = f"{samples.reduce} of {', '.join(f'{score:g}' for score in scores)}"
    if samples.k is None:
        return Reduced(score=min(1.0, fsum(scores) / len(scores)), shown=0, answer=told)
    return Reduced(score=pass_at(samples.k, scores), shown=scores.index(max(scores)), answer=told)


def pass_at(k: int, scores: Sequence[float]) -> float:
    """The mean, over all ways to take k of the n scores, of the highest of the k.

    Of scores 0 and 1 of which c are 1 it is 1 - C(n - c, k) / C(n, k): the unbiased estimator of pass@k of
    Chen et al., "Evaluating large language models trained on code" (2021). Of any scores it is unbiased for
    the expected highest score of k texts.

    Args:
        k: From 1 to n.
        scores: In [0, 1], n of them.
    """
    n = len(scores)
    # The i-th lowest is the highest of the k in C(i - 1, k - 1) of the ways.
    weighted = (score * comb(i, k - 1) for i, score in enumerate(sorted(scores)))
    return min(1.0, fsum(weighted) / comb(n, k))


def _best_of(texts: Sequence[ScoredText]) -> Reduced:
    """The score of the text that is preferred; of several that are preferred alike, the mean of theirs."""
    preferences = [-1.0 if each.preference is None else each.preference for each in texts]
    most = max(preferences)
    liked = [position for position, preference in enumerate(preferences) if preference == most]
    score = min(1.0, fsum(texts[position].score for position in liked) / len(liked))
    told = f"best of {', '.join(f'{preference:g}' for preference in preferences)}"
    return Reduced(score=score, shown=liked[0], answer=told)


def _majority(texts: Sequence[ScoredText]) -> Reduced:
    """The score of the answer that most texts give; of several such answers, the mean of their scores.

    Texts that hold no answer do not vote; where none holds one, it is the mean of all.
    """
    votes: dict[str, list[int]] = {}
    for position, each in enumerate(texts):
        if not each.no_answer:
            votes.setdefault(each.text.strip() if each.answer is None else each.answer, []).append(position)
    if not votes:
        score = min(1.0, fsum(each.score for each in texts) / len(texts))
        return Reduced(score=score, shown=0, answer=f"none of {len(texts)} holds an answer")
    most = max(map(len, votes.values()))
    won = {answer: positions for answer, positions in votes.items() if len(positions) == most}
    voters = [position for positions in won.values() for position in positions]
    score = min(1.0, fsum(texts[position].score for position in voters) / len(voters))
    first, *others = won
    tie = f", as many as {len(others)} other" if others else ""
    return Reduced(score=score, shown=won[first][0], answer=f"{first} ({most} of {len(texts)}{tie})")
