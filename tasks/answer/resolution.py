"""Power of a campaign on new examples, computed before it runs."""

from dataclasses import dataclass

from winnow.storage.objectives import traits_of
from winnow.tasks.answer.new_examples import LEVEL
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.spec.selector_traits import GATE
from winnow.tasks.text.phrases import amount, count_of, percentage, points, risk_of

TYPICAL_DISAGREEMENT = 0.18
"""Share of the examples on which exactly one of the best two candidates is right.
Median over choices of 2 to 20 close candidates on ten real tables; see docs/common-sizes.md.
"""

TARGETS = 0.02, 0.01
"""Differences for which the needed number of examples is reported; the first that the benchmark cannot show
is used.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The smallest difference that can be shown, and the examples for a smaller one."""

    examples: int
    candidates: int
    disagreement: float
    """Share of the examples on which exactly one of the two candidates is right."""
    least: float | None
    """Smallest difference that can be shown; None if no difference can be shown."""
    target: float | None
    """A smaller difference whose number of examples is reported; None if no number is reported."""
    needed: int | None
    """Approximate number of examples that show the smaller difference; None if unknown."""


def resolution_of(n_examples: int, n_candidates: int, disagreement: float) -> Resolution:
    """The resolution of a benchmark whose scores are 0 and 1."""
    from winnow.algorithms.new_examples import examples_needed, least_difference

    least = least_difference(n_examples, n_candidates, LEVEL, disagreement)
    smaller = (each for each in TARGETS if each <= disagreement and (least is None or each < least))
    target = next(smaller, None)
    needed = None if target is None else examples_needed(target, n_candidates, LEVEL, disagreement)
    return Resolution(
        examples=n_examples,
        candidates=n_candidates,
        disagreement=disagreement,
        least=least,
        target=target,
        needed=needed,
    )


def has_resolution(checked: ResolvedCampaign) -> bool:
    """Whether a campaign searches for the single best mean over single examples.

    Gates, groups, constraints, `top_m` above 1 and clusters of examples are excluded.
    """
    spec = checked.spec
    finds_best = traits_of(spec.objective).scores_a_benchmark and spec.selector.name != GATE
    is_plain = spec.groups is None and not spec.constraints and spec.selector.params.get("top_m", 1) == 1
    return finds_best and is_plain and spec.dataset.cluster is None and len(checked.candidates) > 1


def expected_resolution(checked: ResolvedCampaign) -> str | None:
    """Sentence on a campaign's power on new examples, for a typical disagreement.

    None if the campaign makes no claim about new examples; see `has_resolution`.
    """
    if not has_resolution(checked):
        return None
    found = resolution_of(checked.n_selection_examples, len(checked.candidates), TYPICAL_DISAGREEMENT)
    return resolution_words(found)


def resolution_words(found: Resolution) -> str:
    """Sentence on the difference below which new examples will probably show nothing.

    It is that of an exact sign test of two candidates with scores of 0 and 1, scored on all examples.
    """
    given = f"with {count_of(found.examples, 'example')} and {count_of(found.candidates, 'candidate')}"
    shown = "probably no difference will be shown on new examples"
    if found.least is not None:
        below = points(round(found.least, 3))
        shown = f"a difference below {below} will probably not be shown on new examples"
    more = ""
    if found.target is not None:
        needed = "more than 10 million"
        if found.needed is not None:
            needed = f"about {amount(_two_digits(found.needed))}"
        more = f"; {points(found.target)} would need {needed} examples"
    return (
        f"{given}, {shown}{more} ({risk_of(LEVEL)}, if two candidates disagree on "
        f"{percentage(found.disagreement, 0)} of the examples)"
    )


def _two_digits(number: int) -> int:
    return int(float(f"{number:.2g}"))
