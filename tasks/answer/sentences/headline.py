"""The headline of an answer: two or three sentences, shown first everywhere.

They name the candidate to use and its mean; while this is open, how much better another one can be; the
confidence and the cost; and what is unknown. Each sentence follows from the outcome and its claim. Claims
with conditions use the full words of the line "confidence".
"""

from collections.abc import Sequence

from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.json_types import JsonView
from winnow.storage.objectives import traits_of
from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.new_examples import LEVEL, Beyond
from winnow.tasks.answer.sentences.claim import certainty, with_open_ties
from winnow.tasks.answer.sentences.clauses import estimated, on_examples, on_part, on_scored
from winnow.tasks.answer.sentences.excess import excess_clause, not_excluded
from winnow.tasks.answer.sentences.gate import WORDS, gate_certainty
from winnow.tasks.answer.sentences.margin import is_ahead_of_all, leaves_margin
from winnow.tasks.text.phrases import amount, count_of, ends, list_of, percentage, points, risk_of, rounded

MOST_MEASURED = 3
"""Maximum number of candidates that a sentence names with a result."""

NOTHING_SOLVED = "No candidate was shown to solve anything: every score is 0."


def headline_sentences(answer: Answer, totals: JsonView) -> list[str]:
    """The sentences of the headline.

    Args:
        answer: The current answer.
        totals: Number of `answered` comparisons so far, and of comparisons in the full `grid`.
    """
    first, sure = _found(answer)
    open_ = "" if answer.outcome == "waiting" else not_excluded(answer)
    said = [first, open_[:1].upper() + open_[1:], f"{sure}{'; ' if sure else ''}{_cost(answer, totals)}"]
    return [_sentence(each) for each in (*said, _unknown(answer)) if each]


IF_SAMPLE = "if these are a random sample of the examples that you will see in production"
"""Condition of the clause on new examples."""


def _found(answer: Answer) -> tuple[str, str]:
    """The candidate to use with its value, and the confidence, as two clauses."""
    if answer.is_unsolved:
        return NOTHING_SOLVED, "Read some outputs and targets before you conclude anything"
    if (address := traits_of(answer.objective).headline) is not None:
        own: tuple[str, str] = object_at(address)(answer)
        return own
    if answer.baseline is not None:
        return _compared(answer), _plain(gate_certainty(answer))
    bound = "" if answer.outcome == "waiting" else excess_clause(answer)
    if bound and answer.outcome == "undecided" and (best := answer.of_best) is not None:
        return f"{best.name} leads{_mean(answer)}; {bound}", f"No winner yet: {_why_open(answer)}"
    return f"{_use(answer)}{'; ' if bound else ''}{bound}", _sure(answer)


def _sentence(text: str) -> str:
    """Add a full stop to a text, unless it has one."""
    return text if text.endswith(".") else f"{text}."


def _plain(claim: str) -> str:
    """A claim as a sentence, without the leading word for its kind."""
    for kind, words in (("heuristic: ", "Not proven: "), ("exact: ", "")):
        if claim.startswith(kind):
            claim = words + claim.removeprefix(kind)
    return claim[:1].upper() + claim[1:]


def _use(answer: Answer) -> str:
    best = answer.of_best
    match answer.outcome:
        case None:
            return (
                f"Not finished: {best.name} leads so far{_mean(answer)}" if best else "Nothing is known yet"
            )
        case "waiting":
            wanted = 0 if answer.people is None else answer.people.wanted
            return f"Waiting for {count_of(wanted, 'judgment')} by annotators"
        case "failed":
            return "No answer: every candidate was dropped"
        case "none" if answer.constraints:
            return "No candidate meets the constraints"
        case "none":
            return "No candidate is preferred over, or even with, every other"
        case "undecided":
            among = list_of(answer.contenders)
            leads = f"; {best.name} leads{_mean(answer)}" if best else ""
            return f"No winner yet among {among}{leads}"
        case _:
            return _named(answer)


def _named(answer: Answer) -> str:
    """The candidates to use: the winner, a cheaper one, the m best, or the tied ones."""
    if answer.chosen is not None:
        return f"Use {answer.chosen}, which costs less than {answer.best}"
    if not answer.is_guaranteed:
        return f"{list_of(answer.listed)} did best{_mean(answer)}"
    if answer.top:
        tied = f"; {list_of(answer.tied)} share the last places" if answer.tied else ""
        if leaves_margin(answer):
            return f"Use {list_of(answer.top, most=len(answer.top))}{tied}"
        return f"The best are {list_of(answer.top, most=len(answer.top))}{tied}"
    if answer.tied and leaves_margin(answer):
        return _within(answer)
    if answer.tied:
        return f"Use any of {list_of(answer.tied)}, which {_same(answer)}"
    return f"Use {answer.best}{_mean(answer)}"


def _same(answer: Answer) -> str:
    """What candidates tied at one value share."""
    if traits_of(answer.objective).compares_pairs or not (found := _mean(answer)):
        return f"share the first place{_mean(answer)}"
    return f"have the same {found.removeprefix(': ')}"


def _within(answer: Answer) -> str:
    """The candidates tied within epsilon; if their means are exact, with the others' distance to the best."""
    margin, best = points(answer.epsilon), answer.of_best
    means = {each.name: each.estimate for each in answer.candidates if each.name in answer.tied}
    known = {name: mean for name in answer.tied if (mean := means[name]) is not None}
    if traits_of(answer.objective).compares_pairs or len(known) < len(means) or best is None:
        return f"Use any of {list_of(answer.tied)}, which are within {margin} of the best"
    if not answer.is_known(*known):
        each_ = [f"{name} ({estimated(answer)} {rounded(mean)})" for name, mean in known.items()]
        return f"Use any of {list_of(each_)}, which are within {margin} of the best"
    level = _highest(answer)
    highest = known[level[0]]
    result = f"{estimated(answer)} {rounded(highest)} {on_scored(answer)}"
    lower = [
        f"{name} is {_points_lower(highest - mean)} lower ({rounded(mean)})"
        for name, mean in known.items()
        if mean < highest
    ]
    first = (
        f"Use {level[0]}: {result}"
        if len(level) == 1
        else f"Use any of {list_of(level)}, which have the same {result}"
    )
    if not lower:
        return first
    return f"{first}. {list_of(lower)}, within the {margin} that you accept (stopping.epsilon)"


def _highest(answer: Answer) -> list[str]:
    """The tied candidates with the highest mean."""
    means = {each.name: each.estimate or 0.0 for each in answer.candidates if each.name in answer.tied}
    return [name for name in answer.tied if means[name] == max(means.values())]


def _points_lower(difference: float) -> str:
    """A difference in points, rounded as scores are."""
    return points(float(rounded(difference)))


def _mean(answer: Answer) -> str:
    """The best candidate's result, as the end of a sentence; empty if unknown."""
    best = answer.of_best
    if best is None or best.estimate is None or (answer.tied and answer.listed_estimate is None):
        return ""
    found, between = rounded(best.estimate), ""
    if best.lower is not None and best.upper is not None and not answer.is_known(best.name):
        between = "{} to {}".format(*ends(best.lower, best.upper))
    shown = f"{found} ({between})" if between else found
    if traits_of(answer.objective).compares_pairs:
        return f": it wins {shown} of its duels with its strongest opponent"
    if answer.outcome is None:
        return f", {estimated(answer)} {shown}"
    if between and answer.scored is not None:
        return f": {on_part(answer, best.estimate, between)}"
    return f": {estimated(answer)} {shown} {on_scored(answer)}"


def _why_open(answer: Answer) -> str:
    """The reason why a campaign ended without an answer."""
    return answer.limit.sentence if answer.limit else _plain(certainty(answer)).removeprefix("Undecided: ")


def _sure(answer: Answer) -> str:
    claim, n = answer.claim, len(answer.candidates) - len(answer.dropped)
    if answer.outcome == "undecided" and answer.limit is not None:
        return f"Nothing is proven: {answer.limit.sentence}"
    has_margin = answer.outcome == "tied" and bool(answer.epsilon)
    is_plain = (
        answer.outcome in ("winner", "tied")
        and (not has_margin or answer.is_known(*answer.tied))
        and answer.is_guaranteed
        and not (answer.is_mixed or answer.constraints or answer.chosen or claim.assumptions)
        and answer.top_m == 1
        and n > 1
        and not traits_of(answer.objective).compares_pairs
    )
    if not is_plain:
        return f"{_plain(certainty(answer))}{_by_plugin(answer)}"
    whom = f"the {n} candidates that were not dropped" if answer.dropped else f"{n} candidates"
    is_exact = claim.kind == "exact" or claim.delta is None
    risk = " (exact)" if is_exact else f" ({risk_of(claim.delta or 0.0)})"
    if is_ahead := bool(answer.epsilon) and is_ahead_of_all(answer):
        risk = f" ({risk_of(max(claim.delta or 0.0, answer.delta or 0.0))})"  # differences have delta, too
    left = f" that {'was' if n == 2 else 'were'} not dropped" if answer.dropped else ""
    is_of_all = answer.judged is None and (has_margin or (_mean(answer) and answer.scored is None))
    there = "there" if is_of_all else on_examples(answer)
    is_all_known = has_margin and len(answer.tied) == n
    is_level = answer.outcome == "tied" and not has_margin
    if is_level or with_open_ties(answer) or (is_all_known and len(_highest(answer)) > 1):
        said = f"No other of {whom} has a higher {estimated(answer)} {there}{risk}"
    elif is_ahead:
        others = "the other candidate" if n == 2 else f"each of the other {n - 1} candidates"
        said = f"Better {there} than {others}{left}{risk}"
    elif answer.epsilon and not is_all_known:
        whom = f"the {n} candidates{left}"
        said = f"None of {whom} is better {there} by more than {points(answer.epsilon)}{risk}"
    else:
        said = f"Best of {whom} {there}{risk}"
    return f"{said}{_by_plugin(answer)}"


def _by_plugin(answer: Answer) -> str:
    is_claimed_by_plugin = answer.plugin and answer.is_guaranteed
    return f", according to the third-party selector {answer.plugin}" if is_claimed_by_plugin else ""


def _compared(answer: Answer) -> str:
    """A gate's result for each candidate."""
    parts = []
    for status, word in WORDS.items():
        names = [name for name in answer.named(status) if name != answer.baseline]
        if not names:
            continue
        who, by = f"{list_of(names)} {'is' if len(names) == 1 else 'are'}", points(answer.epsilon)
        if status == "active":
            parts.append(f"still open: {list_of(names)}")
            continue
        if status == "no-worse" and answer.epsilon:
            than = f"not worse than {answer.baseline} by more than {by}"
        elif status == "worse" and answer.epsilon:
            than = f"worse than {answer.baseline} by more than {by}"
        else:
            than = f"{word} than {answer.baseline}"
        parts.append(f"{who} {than}{_risk(answer)}{_measured(answer, names)}")
    return "; ".join(parts) or f"Nothing is known about any candidate except {answer.baseline}"


def _risk(answer: Answer) -> str:
    """The error probability of all results of a gate together, in parentheses; empty if there is none."""
    delta = answer.claim.delta
    is_proven = answer.claim.kind == "proven" and delta is not None and not answer.is_mixed
    return f" ({risk_of(delta or 0.0)})" if is_proven else ""


def _measured(answer: Answer, names: Sequence[str]) -> str:
    """The differences of candidates to the baseline on the examples scored for both, as a clause."""
    found = []
    for name in names[:MOST_MEASURED]:
        if name not in answer.measured:
            continue
        n, difference = answer.measured[name]
        where = f"on {count_of(n, 'example')}"
        if answer.is_known(name, answer.baseline):
            where = f"{on_examples(answer)}, known exactly"
        whose = f"{name} " if len(names) > 1 else ""
        found.append(f"{whose}{rounded(difference, '+')} {where}")
    return f"; measured {', '.join(found)}" if found else ""


def _cost(answer: Answer, totals: JsonView) -> str:
    if answer.certificate is not None:
        what = "human label" if answer.people is None else "labelled example"
        return f"it took {count_of(answer.certificate.labels_used, what)}"
    answered, grid = totals["answered"], totals["grid"]
    if not grid or answered > grid or traits_of(answer.objective).is_stream:
        return f"it took {count_of(answered, 'comparison')}"
    return f"it took {answered:,} of {amount(grid)} comparisons ({percentage(answered / grid)})"


def _unknown(answer: Answer) -> str:
    """The sentences on excluded models and new examples; empty if not computed."""
    left = f"Not compared: {list_of([*answer.left_out])}. " if answer.left_out else ""
    return f"{left}{_new_examples(answer)}".strip()


def _new_examples(answer: Answer) -> str:
    found = answer.beyond
    if answer.is_unsolved or answer.outcome not in ("winner", "tied", "decided"):
        return ""
    if found is None:
        held_out = answer.held_out
        if held_out is not None and held_out.is_complete and held_out.mean is not None:
            there = count_of(held_out.n_examples, "held-out example")
            return f"{held_out.winner} scored {rounded(held_out.mean)} on {there}"
        return ""
    even = 0.5 if traits_of(answer.objective).compares_pairs else 0.0
    is_sound = not (answer.is_mixed or found.earlier or answer.shown or found.left_out or found.alike)
    if found.could_be_best == (found.winner,):  # the interval of a pair can be less conclusive
        better = f"{found.winner} is better than every other candidate"
        said = better if found.is_better else f"No candidate is better than {found.winner}"
        there = f"on new examples as well, {IF_SAMPLE}"
        is_plain = is_sound and not found.unscored and found.clusters is None
        return f"{said} {there} ({risk_of(LEVEL)})" if is_plain else ""
    if found.could_be_best is not None and found.winner not in found.could_be_best:
        return ""  # the lines state that another candidate is better there
    if is_sound and found.lower is not None and found.lower > even:
        there = f"on new examples as well, {IF_SAMPLE}"
        return f"{found.winner} is better than {found.rival} {there} ({risk_of(LEVEL)})"
    if found.upper is not None and found.upper < even:
        return ""
    return f"Not known: {_open_there(answer, found)} on new examples"


def _open_there(answer: Answer, found: Beyond) -> str:
    """What is open on new examples: the best of several candidates, or the order of two."""
    left, n = found.could_be_best, len(answer.candidates)
    if left is None or len(left) < 2 or n == 2:
        return f"whether {found.winner} is better than {found.rival}"
    if len(left) == n:
        return f"which of the {n} candidates is best"
    if len(left) == 2:
        (other,) = (name for name in left if name != found.winner)
        return f"whether {found.winner} is better than {other}"
    if len(left) <= MOST_MEASURED:
        return f"which of {list_of(left)} is best"
    return f"which of {len(left)} of the {n} candidates is best"
