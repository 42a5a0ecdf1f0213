"""The best candidate and its closest rival on new examples like those of the benchmark.

A benchmark is finite, and "the best on these 150 examples" says nothing of the 151st. If its examples are a
random sample of those that matter, the differences of two candidates on the examples that both were scored
on are a sample too, and their mean has an interval. Which two candidates are looked at follows from the same
scores: so the interval holds for all pairs of candidates at once, at the price of a union bound. The proof is
for a sample of fixed size, and how many examples were scored for both depends on earlier scores;
`tests/tasks/test_new_examples.py` measures that it does no harm where examples are drawn uniformly. Where a
selector chooses them by what it predicts, they are no sample: nothing is said unless all were scored.

The interval bets on one difference after the other. Files are often sorted, by task or by difficulty, and on
what comes first the one candidate may be the better one: so the differences are put in an order by chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from winnow.storage.queries.objective import paired as paired_views
from winnow.tasks.answer.earlier_campaigns import Earlier
from winnow.tasks.spec.selector_traits import CHOOSES_EXAMPLES
from winnow.tasks.text.canonical_json import digest

if TYPE_CHECKING:
    from winnow.algorithms.state.arrays import FloatArray

LEVEL = 0.05
"""Error probability of the interval, over all pairs of candidates."""
LEAST = 30
"""Examples scored for both; of fewer, the interval would say next to nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beyond:
    """A comparison of the best candidate with its closest rival on new examples like the benchmark's."""

    winner: str
    """The best candidate; of the m best, the last of them; of a gate, who has the highest estimate."""
    rival: str
    """Of a gate, the baseline."""
    n: int
    """Examples that both were scored on."""
    left_out: int
    """Their comparisons without an outcome; of duels, those of the two with each other."""
    is_sample: bool
    """Whether those are a random sample of the benchmark's, or all of them."""
    joined: str | None = None
    """The one of them that was chosen after scores on these examples had been seen: to it they are no random
    sample, whatever they are to the others."""
    alike: int = 0
    """Number of examples that put a prompt to the winner which an earlier example put already."""
    earlier: Earlier | None = None
    """A campaign begun earlier that has outcomes of other candidates or by another judge on such examples."""
    difference: float | None
    """Mean difference on those, in [-1, 1]; for duels, in [0, 1], the share that the winner won. None where
    there are too few examples or they are no sample."""
    lower: float | None
    upper: float | None


def beyond_of(
    session: Session,
    campaign_id: int,
    *,
    winner: str,
    rival: str,
    n_candidates: int,
    n_examples: int,
    selector: str,
    duels: bool,
    joined: str | None = None,
    lacks_texts: bool = False,
    earlier: Earlier | None = None,
) -> Beyond:
    """Compare two candidates on the examples that both were scored on.

    Args:
        session: Reads the results.
        campaign_id: The id of the campaign.
        winner: Name of the best candidate, as `Beyond` has it.
        rival: Name of its rival, as `Beyond` has it.
        n_candidates: K; the interval holds for all K (K - 1) / 2 pairs at once.
        n_examples: Number of examples of the benchmark.
        selector: Name of the selector that asked for the examples.
        duels: Whether candidates met in duels; an example then counts once, by the mean of its duels.
        joined: The one of the two that joined once the campaign had begun, if one did.
        lacks_texts: Whether examples were left out for want of a stored text: who has one on which of them
            follows from scores.
        earlier: See `Beyond`.
    """
    import numpy as np  # only a campaign that has ended asks, and only where its answer is told in full

    from winnow.algorithms.bounds.mean_interval import mean_interval

    if duels:
        values = paired_views.duel_outcomes(session, campaign_id, winner, rival)
        n_asked, n_prompts = paired_views.prompts_of_duels(session, campaign_id, winner, rival)
    else:
        scores = paired_views.score_differences(session, campaign_id, winner, rival)
        values = [each.difference for each in scores]
        prompts = [each.prompt_id for each in scores if each.prompt_id is not None]
        n_asked, n_prompts = len(prompts), len(set(prompts))
    found = np.array(values, dtype=np.float64)
    left_out = paired_views.unscored(session, campaign_id, winner, rival, duels=duels)
    is_drawn = draws_examples(selector) and not lacks_texts
    is_sample = len(found) == n_examples or is_drawn
    if len(found) < LEAST or not is_sample or joined is not None:
        return Beyond(
            winner=winner,
            rival=rival,
            n=len(found),
            left_out=left_out,
            is_sample=is_sample,
            joined=joined,
            difference=None,
            lower=None,
            upper=None,
        )
    alpha = LEVEL / (n_candidates * (n_candidates - 1) / 2)
    scale, shift = (1.0, 0.0) if duels else (2.0, -1.0)
    lower, upper = mean_interval((by_chance(found) - shift) / scale, alpha)
    return Beyond(
        winner=winner,
        rival=rival,
        n=len(found),
        left_out=left_out,
        is_sample=True,
        alike=n_asked - n_prompts,
        earlier=earlier,
        difference=float(found.mean()),
        lower=scale * lower + shift,
        upper=scale * upper + shift,
    )


def by_chance(values: "Sequence[float] | FloatArray") -> "FloatArray":
    """Values in an order that has nothing to do with them, nor with where they stood, and is always the same.

    What bets on one value after the other holds for independent draws in such an order alone.
    """
    import numpy as np

    # Of JSON, written out: there may be a hundred thousand of them.
    places = sorted(range(len(values)), key=lambda place: digest(f'["order",{place}]'))
    return np.asarray(values, dtype=np.float64)[places]


def draws_examples(selector: str) -> bool:
    """Whether a selector is known to draw examples uniformly from those that are left."""
    from winnow.algorithms.registry import SELECTORS

    is_ours = any(selector in names for names in SELECTORS.values())
    return is_ours and selector not in CHOOSES_EXAMPLES
