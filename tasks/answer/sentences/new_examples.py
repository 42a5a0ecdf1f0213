"""Sentences on new examples and on held-out examples."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from winnow.storage.objectives import traits_of
from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.new_examples import LEAST, LEVEL, Beyond
from winnow.tasks.answer.sentences.clauses import IF, MIXED, Line, which_is_open
from winnow.tasks.text.phrases import count_of, ends, list_of, percent, rounded

if TYPE_CHECKING:
    from winnow.tasks.objectives.best_mean.holdout.results import HeldOut, HeldOutValue


ON_NEW = "new examples"
"""Label of lines on new examples like those of the benchmark."""


def beyond_lines(answer: Answer) -> list[Line]:
    """Lines on new examples like those of the benchmark.

    - If `answer.beyond` is set: which candidates could be the best, if derived, and the winner against an
      opponent.
    - If it is None in a campaign with groups or constraints that has a winner or ties: one line that nothing
      is computed, unless the scores of held-out examples are complete.
    - Otherwise: empty.
    """
    found = answer.beyond
    if found is None:
        return _left_open(answer)
    return [*_best_there(answer, found), (ON_NEW, _of_pair(answer, found))]


def _best_there(answer: Answer, found: Beyond) -> list[Line]:
    """The line on which candidates could be the best on new examples.

    Empty if this is not derived, or if the line on the pair implies it.
    """
    if found.could_be_best is None:
        return []
    n, left = len(answer.candidates), found.could_be_best
    if len(left) == n and (n == 2 or found.difference is None):
        return []  # the line on the pair implies it
    if len(left) == n:
        said = f"which candidate is best there is not known: each of the {n} can be"
    elif found.is_better:
        said = f"{left[0]} is better than every other candidate there"
    elif len(left) == 1:
        said = f"no candidate is better there than {left[0]}"
    else:
        said = f"the best of the {n} candidates there is {_either(left)}"
    unjudged = ""
    if found.unjudged:
        are = "were" if len(found.unjudged) > 1 else "was"
        unjudged = (
            f". {list_of(found.unjudged)} {are} dropped or added after scores were seen, so nothing is "
            f"known of {'them' if len(found.unjudged) > 1 else 'it'}"
        )
    sure = "" if len(left) == n else f" ({_sure_of_all(answer, found)})"
    return [(ON_NEW, f"{said}{sure}{unjudged}")]


def _either(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _sure_of_all(answer: Answer, found: Beyond) -> str:
    """The confidence of a statement about all candidates, in words."""
    if answer.is_mixed:
        return f"this guarantees nothing: {MIXED}"
    drawn = "examples" if found.clusters is None else "clusters of examples"
    sure = (
        f"{percent(LEVEL)} confidence, if the benchmark's {drawn} are a random sample of the {drawn} that "
        "you will see in production"
    )
    sure += _no_larger(found)
    if found.unscored:
        sure += f" and {IF['missing-at-random']}"
    return sure + _seen_before(found)


def _no_larger(found: Beyond) -> str:
    """The assumption of clustered intervals about cluster sizes, in words."""
    return "" if found.clusters is None else ", with no cluster larger than the largest here"


def _of_pair(answer: Answer, found: Beyond) -> str:
    """Sentence on the winner and its opponent on new examples."""
    pair = f"{found.winner} and {found.rival}"
    is_more = found.could_be_best is not None and len(found.could_be_best) < len(answer.candidates)
    nothing = "no further estimate" if is_more else "no estimate"
    needs = "how much better" if found.is_better else f"the difference between {pair}"
    if found.joined is not None:
        return f"{nothing}: {found.joined} was added after scores on these examples were seen"
    if not found.is_sample:
        return f"{nothing}: the examples scored for both {pair} were chosen and are not a random sample"
    if found.difference is None or found.lower is None or found.upper is None:
        if found.clusters is not None:
            return (
                f"{nothing}: with dataset.cluster, {pair} have to be scored on all examples, which have to "
                f"be in at least {LEAST} clusters"
            )
        if found.n < LEAST:
            there = "is" if found.n == 1 else "are"
            return (
                f"{needs} is not estimated: that needs at least {LEAST} randomly drawn examples scored for "
                f"both {pair}; there {there} {found.n}{_left_out(found)}"
            )
        return (
            f"{nothing}: only {count_of(found.n, 'example')} scored for both {pair} are a random sample"
            f"{_left_out(found)}"
        )
    between = "between {} and {}".format(*ends(found.lower, found.upper))
    are_duels = traits_of(answer.objective).compares_pairs
    even = 0.5 if are_duels else 0.0
    if are_duels:
        share = rounded(found.difference)
        said = f"{found.winner} is preferred over {found.rival} in {share} of duels ({between})"
    else:
        said = f"{found.winner} scores {rounded(found.difference, '+')} against {found.rival} ({between})"
    count = count_of(found.n, "example")
    if found.clusters is not None:
        count += f" in {found.clusters:,} clusters"
    open_ = which_is_open(found.lower, found.upper, even)
    if open_ and found.could_be_best == (found.winner,):
        open_ = "; this interval includes 0 because, unlike the line before, it holds for all pairs together"
    return f"{said}{open_}. {_sure_of_pairs(answer, found, count)}{_left_out(found)}{_alike(found)}"


def _left_open(answer: Answer) -> list[Line]:
    if answer.outcome not in ("winner", "tied") or (answer.groups is None and not answer.constraints):
        return []
    if answer.held_out is not None and answer.held_out.is_complete:
        return []  # the held-out examples have the winner's result
    where = "groups are compared" if answer.groups is not None else "constraints have to be met"
    return [(ON_NEW, f"nothing is computed for them if {where}")]


def _left_out(found: Beyond) -> str:
    if not found.left_out:
        return ""
    one = found.left_out == 1
    comparisons = (
        "1 comparison without an outcome is"
        if one
        else f"{found.left_out:,} comparisons without an outcome are"
    )
    return f"; {comparisons} left out"


def _alike(found: Beyond) -> str:
    if not found.alike:
        return ""
    return (
        f". {found.alike:,} of these examples repeat the prompt of an earlier example; if these rows were "
        "copied instead of drawn, the interval is too narrow"
    )


def _sure_of_pairs(answer: Answer, found: Beyond, count: str) -> str:
    """The confidence of the interval of two candidates, as a sentence."""
    if answer.is_mixed:
        return f"This guarantees nothing: {MIXED}"
    compared = "candidates and the baseline" if answer.baseline is not None else "pairs of candidates"
    sure = (
        f"{percent(LEVEL)} confidence for all {compared} together, if "
        f"{'these' if found.n != 1 else 'this'} {count} {'are' if found.n != 1 else 'is'} a random sample of "
        f"the examples that you will see in production{_no_larger(found)}"
    )
    if found.left_out:
        sure += f" and {IF['missing-at-random']}"
    return sure + _seen_before(found)


def _seen_before(found: Beyond) -> str:
    """Clause on an earlier campaign that showed scores on these examples, or empty."""
    if found.earlier is None:
        return ""
    return (
        "; it guarantees nothing if candidates or the judge were changed or chosen after seeing results of "
        f"campaign {found.earlier.campaign}, which has outcomes on {found.earlier.examples:,} of the "
        f"{found.earlier.of:,} examples scored here"
    )


def held_out_lines(answer: Answer) -> list[Line]:
    """Lines on the winner's held-out results, alone and against the runner-up.

    Empty without results.
    """
    found = answer.held_out
    if found is None or found.winner is None:
        return []
    if not found.is_complete:
        return [("held out", _unfinished(answer, found))]
    return [
        ("held out", _mean(answer, found)),
        *(("held out", _value(answer, found, each)) for each in found.values),
        *_difference(answer, found),
    ]


def _unfinished(answer: Answer, found: "HeldOut") -> str:
    done = f"{found.told:,} of the {found.n_examples:,} examples that selection does not use"
    if answer.outcome is None:
        return f"{done} are scored for {found.winner} so far"
    why = "" if answer.limit is None else f", then {answer.limit.sentence}"
    return f"not known: {done} are scored for {found.winner}{why}; {_curse(found)}"


def _mean(answer: Answer, found: "HeldOut") -> str:
    if found.mean is None or found.lower is None or found.upper is None:
        return f"not known: none of the {found.n_examples:,} comparisons has an outcome"
    where = f"on the {found.n_examples:,} examples that selection did not use"
    left_out = _not_compared(found.n_examples - found.scored)
    between = "on new examples like these between {} and {}".format(*ends(found.lower, found.upper))
    not_here = "; the held-out mean has no such bias" if _is_fresh(answer, found) else ""
    said = f"{rounded(found.mean)} {where}{left_out}; {between}{_sure(answer, found)}"
    return f"{said}; {_curse(found)}{not_here}"


def _value(answer: Answer, found: "HeldOut", value: "HeldOutValue") -> str:
    """The winner's mean of a constraint's metric on held-out examples, in words."""
    if value.mean is None:
        return f"{value.constraint}: not known, none of the {found.n_examples:,} comparisons has a value"
    left_out = _not_compared(found.n_examples - value.valued)
    between = "on new examples like these between {} and {}".format(*ends(value.lower, value.upper))
    sure = _with_the_mean(answer, found)
    return f"{value.constraint}: {rounded(value.mean)} on these{left_out}; {between}{sure}"


def _difference(answer: Answer, found: "HeldOut") -> list[Line]:
    if found.difference is None or found.difference_lower is None or found.difference_upper is None:
        return []
    left_out = _not_compared(found.n_examples - found.both_scored)
    by, least, most, word = found.difference, found.difference_lower, found.difference_upper, "ahead by"
    if by < 0.0:
        by, least, most, word = -by, -most, -least, "behind by"
    rival = f"{found.runner_up}, the highest of the others in selection"
    said = f"{rounded(by, '+')} against {rival}, on the same examples{left_out}"
    between = "between {} and {}".format(*ends(least, most))
    sure = _with_the_mean(answer, found)
    open_ = which_is_open(least, most)
    return [(word, f"{said}; on new examples like these {between}{sure}{open_}")]


def _with_the_mean(answer: Answer, found: "HeldOut") -> str:
    """The confidence of an interval that holds together with that of the mean.

    If the mean's interval has no confidence, neither has this one, for the same reason.
    """
    is_sure = not answer.is_mixed and _is_fresh(answer, found)
    return " (together with the interval above)" if is_sure else _sure(answer, found)


def _is_fresh(answer: Answer, found: "HeldOut") -> bool:
    """Whether no compared candidate can have been chosen after seeing held-out scores."""
    return found.joined is None and not found.went_on and answer.earlier is None


def _sure(answer: Answer, found: "HeldOut") -> str:
    if answer.is_mixed:
        return f" (this guarantees nothing: {MIXED})"
    if found.joined is not None:
        return (
            f" (this guarantees nothing: {found.joined} was added after scores on these examples were seen)"
        )
    if found.went_on:
        return (
            " (this guarantees nothing: selection went on to other finalists after scores on these examples "
            "were seen)"
        )
    if answer.earlier is not None:
        return (
            " (this guarantees nothing if candidates, the judge or a setting were changed after seeing "
            f"results of campaign {answer.earlier.campaign}, which has outcomes on "
            f"{answer.earlier.examples:,} of these examples)"
        )
    from winnow.tasks.objectives.best_mean.holdout.results import LEVEL as OF_BOTH

    more = len(found.values) or int(found.difference is not None)
    drawn, larger = "examples", ""
    if found.clusters is not None:
        drawn = "clusters of examples"
        larger = f", with no cluster larger than the largest of the {found.clusters:,} held-out clusters"
    which = ("this interval holds", "this interval and the next both hold")[min(more, 1)]
    if more > 1:
        which = f"this interval and the next {more} all hold"
    return (
        f" ({which} with probability {percent(OF_BOTH)}, if the {drawn} of the dataset were drawn "
        f"at random from the {drawn} that you will see in production{larger})"
    )


def _not_compared(count: int) -> str:
    if not count:
        return ""
    return f" ({count:,} without an outcome: excluded here, and counted as the worst case in the interval)"


def _curse(found: "HeldOut") -> str:
    return (
        f"the mean above is on the examples used to select {found.winner}, so it tends to be too high for "
        "new ones (the winner's curse)"
    )
