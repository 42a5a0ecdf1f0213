"""Estimate the number of comparisons that would settle an undecided answer.

A selector observes the stored rounds again. Copies of it then continue on plausible scores until they stop;
see `algorithms.champion.continuations`. The result is an estimate, not a bound. On real tables of 100 to
1,000 examples half of the estimates are between 0.94 and 1.16 times the actual number; docs/common-sizes.md
has all results.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from winnow.storage.queries import campaign_views
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import rounds as round_records
from winnow.tasks.campaign.kept_rules import TIES
from winnow.tasks.campaign.look import Look
from winnow.tasks.spec.selector_traits import ENDS_WITH_TIES

if TYPE_CHECKING:
    from winnow.algorithms.champion.continuations import Observed
    from winnow.algorithms.champion.selector import Champion

MOST_PAIRS, MOST_TOLD, MOST_OPEN = 5_000_000, 200_000, 300_000
"""Sizes above which an estimate would take too long: candidates x examples, comparisons so far, and
comparisons to come."""
MOST_ROUNDS = 300
"""Approximate number of rounds of a continuation that makes all comparisons; smaller rounds would take
longer.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Comparisons until no other candidate can be better, or why they are unknown."""

    comparisons: int | None = None
    """Median over simulated continuations; None without an estimate."""
    fewest: int | None = None
    """Lower end of the range that contains a share `SHARE` of the continuations."""
    most: int | None = None
    because: str | None = None
    """The reason for no estimate, as a clause; None with an estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep(Estimate):
    """Estimated comparisons to settle a campaign, with the leader and its opponent."""

    leading: str
    rival: str | None
    """The closest opponent of the leading candidate; None if unknown."""
    gap: float | None
    """The observed mean of the leader minus that of the opponent; None if unknown."""


def estimate_of(look: Look, *, n_open: int, n_examples: int, held_out: Collection[int]) -> Estimate:
    """Estimate the comparisons until a campaign that compares plain means is settled.

    Args:
        look: The campaign, which a budget has ended.
        n_open: Number of candidates in question.
        n_examples: Number of examples that the selector can use.
        held_out: Positions of the examples that the selector cannot use.
    """
    import numpy as np

    from winnow.algorithms.champion.continuations import remaining
    from winnow.algorithms.errors import AlgorithmError

    spec = look.record.spec
    name, params = spec["selector"]["name"], spec["selector"]["params"]
    if name not in ENDS_WITH_TIES:
        return Estimate(because=f"the selector {name} is not simulated")
    if params.get("prefer") == "cost":
        return Estimate(because="the search for the cheapest candidate is not simulated")
    n_told = campaign_views.totals(look.session, look.record.id)["comparisons"]
    sizes = len(look.names) * n_examples, n_told, n_open * n_examples
    if any(size > most for size, most in zip(sizes, (MOST_PAIRS, MOST_TOLD, MOST_OPEN), strict=True)):
        return Estimate(because="the campaign is too large to be simulated")
    try:
        selector, observed = _replayed(look, n_open, n_examples, held_out)
    except AlgorithmError:
        return Estimate(because="the stored rounds cannot be replayed")
    rng = np.random.default_rng([n_told, n_examples])  # the same campaign gives the same estimate
    found = remaining(selector, observed, rng)
    if not found.is_settled:
        return Estimate(because="missing scores would probably leave it open even if all else were scored")
    return Estimate(comparisons=found.comparisons, fewest=found.fewest, most=found.most)


def _replayed(
    look: Look, n_open: int, n_examples: int, held_out: Collection[int]
) -> "tuple[Champion, Observed]":
    """Replay the stored rounds on a selector; return both it and the scores.

    The selector has no budget. It has no history either, so its wealths differ slightly from those of a
    campaign with a history.
    """
    import numpy as np

    from winnow.algorithms.champion.continuations import Observed
    from winnow.algorithms.protocols import Batch
    from winnow.algorithms.registry import create_selector
    from winnow.tasks.campaign.replay import observe

    spec, session, campaign_id = look.record.spec, look.session, look.record.id
    stopping, first_rounds = spec["stopping"], campaign_records.first_rounds(session, campaign_id)
    selector = cast(
        "Champion",
        create_selector(
            spec["selector"]["name"],
            n_arms=sum(each == 0 for each in first_rounds),
            n_examples=n_examples,
            batch_size=max(spec["batch_size"], n_open * n_examples // MOST_ROUNDS),
            delta=stopping["delta"],
            epsilon=float(stopping["epsilon"]),
            max_unscored=spec["fail_on_error"],
            **{TIES: stopping.get(TIES, "resolve"), **spec["selector"]["params"]},
        ),
    )
    selector.leave_out_intervals()
    place = np.full(n_examples + len(held_out), -1)
    place[[position for position in range(len(place)) if position not in held_out]] = np.arange(n_examples)
    shape = len(first_rounds), n_examples
    observed = Observed(np.full(shape, np.nan), np.zeros(shape, dtype=np.bool_))
    for told in round_records.told_rounds(session, campaign_id):
        arms, examples = np.array(told.arms, dtype=np.int64), place[np.array(told.examples, dtype=np.int64)]
        outcomes = np.array([np.nan if each is None else each for each in told.outcomes], dtype=np.float64)
        of_selection = examples >= 0
        arms, examples, outcomes = arms[of_selection], examples[of_selection], outcomes[of_selection]
        joined = sum(each <= told.number for each in first_rounds) - selector.n_arms
        if joined > 0:
            selector.add_arms(joined)
        observe(selector, look.record, told.number, Batch(arms, examples), outcomes)
        observed.scores[arms, examples], observed.asked[arms, examples] = outcomes, True
    return selector, observed
