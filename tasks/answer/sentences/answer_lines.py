"""Lines about an answer, derived only from its outcome, claim and statuses."""

import re

from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.objectives import traits_of
from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.new_examples import LEVEL
from winnow.tasks.answer.sentences.claim import certainty
from winnow.tasks.answer.sentences.clauses import (
    ABOUT_ALL,
    IF,
    Line,
    added_lines,
    assumed,
    dropped_lines,
    interval_confidence,
    left_out_lines,
    out_lines,
)
from winnow.tasks.answer.sentences.constraints import constraint_lines
from winnow.tasks.answer.sentences.excess import excess_lines
from winnow.tasks.answer.sentences.gate import gate_headline, gate_lines
from winnow.tasks.answer.sentences.margin import leaves_margin, margin_claim
from winnow.tasks.answer.sentences.new_examples import beyond_lines, held_out_lines
from winnow.tasks.answer.sentences.winner import runner_up_lines, winner_lines
from winnow.tasks.text.phrases import about, count_of, list_of

UNSOLVED = "no candidate was shown to solve anything"

SAME_ASSUMPTIONS = ", under the assumptions of the line confidence"


def people_lines(answer: Answer) -> list[Line]:
    """Lines on the annotators, whose judgments are the scores, and on open judgments.

    Empty without a human judge.
    """
    people = answer.people
    if people is None:
        return []
    lines = []
    if people.annotators:
        whose = "one person" if people.annotators == 1 else f"{people.annotators} people"
        what = "every preference is" if traits_of(answer.objective).compares_pairs else "every score is"
        alike = "from the first to the last judgment, and for every annotator"
        lines.append(
            (
                "judge",
                f"{what} a judgment by an annotator ({whose}); claims are about these judgments, and "
                f"assume the same standard {alike}",
            )
        )
    if people.wanted:
        wanted = count_of(people.wanted, "judgment")
        lines.append(("waiting", f"for {wanted} by annotators"))
    return lines


def headline(answer: Answer, state: str) -> str:
    """State of a campaign in a few words, such as "winner, proven"."""
    found = badge(answer)
    return outcome_words(answer, state) + ("" if found is None else f", {found}")


def outcome_words(answer: Answer, state: str) -> str:
    """The outcome of a campaign in words, or its state if it has not ended.

    Models that were unreachable at the start are named, because the outcome does not cover them. Scores that
    are all 0 are mentioned, too: an answer about them looks like one about candidates that work.
    """
    without = f" without {list_of([*answer.left_out])}" if answer.left_out else ""
    unsolved = f" ({UNSOLVED})" if answer.is_unsolved else ""
    return f"{_outcome_words(answer, state)}{without}{unsolved}"


def _outcome_words(answer: Answer, state: str) -> str:
    if answer.outcome is None:
        return state
    if answer.outcome == "decided":
        return gate_headline(answer)
    if answer.outcome == "winner" and answer.is_own_baseline:
        return "the baseline itself"
    if leaves_margin(answer):
        return margin_claim(answer)
    if answer.outcome == "winner" and answer.top_m > 1 and answer.is_guaranteed:
        left = sum(each.status != "dropped" for each in answer.candidates)
        return "the best" if min(answer.top_m, left) == 1 else f"the {min(answer.top_m, left)} best"
    return answer.outcome


def badge(answer: Answer) -> str | None:
    """Kind of the claim about an answer; None for a baseline and without a claim."""
    if answer.is_own_baseline:
        return None
    return answer.claim.kind if answer.outcome in ("winner", "tied", "policy", "decided") else None


def subject(answer: Answer) -> str:
    """The subject of a headline: the best so far, or the baseline of a comparison."""
    if answer.baseline is not None:
        return f"against {answer.baseline}"
    return list_of(answer.top) or answer.best or "nothing known"


def answer_lines(answer: Answer) -> list[Line]:
    """All lines of an answer: best candidate, results, confidence, new examples."""
    lines = [*_lines(answer), *_plugin_lines(answer), *_judge_lines(answer), *people_lines(answer)]
    lines += [*_stored_lines(answer), *left_out_lines(answer), *_unsolved_lines(answer)]
    lines = _with_shown(lines, answer)
    return _assumed_once(_said_once(lines, answer), answer)


def _with_shown(lines: list[Line], answer: Answer) -> list[Line]:
    """Add to the last line on new examples that outputs were seen before the start."""
    places = [place for place, (word, _) in enumerate(lines) if word == "new examples"]
    if not answer.shown or not places:
        return lines
    seen = (
        f"; outputs on {count_of(answer.shown, 'example')} of these were shown before the campaign began "
        "(winnow try or compare): nothing here holds for new examples if a candidate, the judge or a setting "
        "was changed afterwards"
    )
    return [(word, said + seen if place == places[-1] else said) for place, (word, said) in enumerate(lines)]


def _lines(answer: Answer) -> list[Line]:
    if (address := traits_of(answer.objective).lines) is not None:
        own: list[Line] = object_at(address)(answer)
        return own
    if answer.baseline is not None:
        return [*gate_lines(answer), *beyond_lines(answer)]
    lines = [
        *winner_lines(answer),
        *constraint_lines(answer),
        *runner_up_lines(answer),
        *held_out_lines(answer),
        ("confidence", certainty(answer)),
        *_refuted(answer),
        *_open(answer),
        *excess_lines(answer),
        *_next(answer),
    ]
    lines += [*out_lines(answer), *added_lines(answer), *dropped_lines(answer)]
    return [*lines, *beyond_lines(answer)]


def _plugin_lines(answer: Answer) -> list[Line]:
    """The line on a claim by a third-party selector, which Winnow has not verified."""
    if answer.plugin is None or not answer.is_guaranteed:
        return []
    said = (
        f"{answer.plugin} is a third-party selector: Winnow has not verified that this is {answer.claim.kind}"
    )
    return [("selector", said)]


def _judge_lines(answer: Answer) -> list[Line]:
    """The line on models that score outputs: all claims are about their scores."""
    if not answer.judges:
        return []
    said = f"verdicts of {list_of(answer.judges)} on outputs, with the prompts and settings of the file"
    for judge, count in answer.silent.items():
        those = "this one is" if count == 1 else "these are"
        what = count_of(count, "comparison")
        said += f"; {judge} gave no readable verdict on {what}; {those} scored by the other judges only"
    return [
        (
            "judge",
            f"scores come from rules and from {said}" if answer.judged_in_part else f"scores are {said}",
        )
    ]


def _stored_lines(answer: Answer) -> list[Line]:
    """The line on comparisons without a stored output, if none can be generated."""
    if answer.stored_texts is None:
        return []
    had, asked = answer.stored_texts
    if had == asked:
        return [("texts", f"all {asked} comparisons use stored outputs; no output was generated")]
    by_plain_mean = answer.certificate is not None and not answer.certificate.is_reliable
    become = "left out of every mean" if by_plain_mean else "assumed to be the worst for the claim"
    return [
        (
            "texts",
            f"only stored outputs are used: {asked - had:,} of {asked:,} comparisons have no output. "
            f"Their scores are {become}; which outputs are stored depends on "
            "other campaigns, so a mean over them does not estimate the mean on all examples",
        )
    ]


def _unsolved_lines(answer: Answer) -> list[Line]:
    """The line on scores that are all 0, usually because outputs are read incorrectly."""
    if not answer.is_unsolved:
        return []
    said = f"all are 0: {UNSOLVED}"
    if answer.allows_all_zero:
        return [("scores", said)]
    remedy = (
        f"read outputs and targets (winnow query {answer.campaign} comparisons), and correct the judge, the "
        "prompts or max_tokens; if the examples are that hard, accept the answer with --allow-all-zero "
        "(execution.allow_all_zero: true)"
    )
    return [("scores", f"{said}; {remedy}")]


def _said_once(lines: list[Line], answer: Answer) -> list[Line]:
    """Keep the confidence of all intervals only in the first line that has it."""
    phrase = interval_confidence(answer)
    first = next((number for number, (_, sentence) in enumerate(lines) if phrase in sentence), 0)
    if ABOUT_ALL not in phrase:  # the phrase is about one interval
        return lines
    return [
        (word, sentence if number <= first else sentence.replace(phrase, ""))
        for number, (word, sentence) in enumerate(lines)
    ]


def _assumed_once(lines: list[Line], answer: Answer) -> list[Line]:
    """Keep the assumptions of a certificate's claim only in the line "confidence".

    They are long, and three lines of a certificate depend on them.
    """
    phrase = "" if answer.certificate is None else assumed(answer, answer.intervals_if)
    whole = re.compile(re.escape(phrase) + "(?! and )")  # only where no further assumption follows
    if not phrase or not any(word == "confidence" and whole.search(sentence) for word, sentence in lines):
        return lines
    return [
        (word, sentence if word == "confidence" else whole.sub(SAME_ASSUMPTIONS, sentence))
        for word, sentence in lines
    ]


def _refuted(answer: Answer) -> list[Line]:
    """The lines on assumptions of the method that the outcomes refuted."""
    sure = LEVEL if answer.delta is None else answer.delta
    return [
        (
            "model",
            f"refuted at error probability {sure:g}: the assumption that {IF[each]}; no result here "
            "assumes it",
        )
        for each in answer.refuted
    ]


def _open(answer: Answer) -> list[Line]:
    """The line on candidates that can still be the best, while the question is open."""
    if answer.is_guaranteed or answer.outcome == "policy" or len(answer.contenders) < 2:
        return []
    return [("open", f"between {list_of(answer.contenders)}")]


def _next(answer: Answer) -> list[Line]:
    """The line on the estimated comparisons that would settle an undecided answer."""
    found = answer.next_step
    if found is None:
        return []
    if found.comparisons is None or found.fewest is None or found.most is None:
        return [("next", f"the number of further comparisons is not estimated: {found.because}")]
    shown = "no other candidate is better"
    if answer.top_m > 1:
        shown = f"no candidate outside of the {answer.top_m} best is better than one of them"
    if answer.epsilon:
        shown += f" by more than {answer.epsilon:g}"
    spread = f"{about(found.fewest)} to {about(found.most)} in 80% of simulated continuations"
    if found.fewest == found.most:
        spread = f"{about(found.most)} in at least 80% of simulated continuations"
    return [
        (
            "next",
            f"about {about(found.comparisons)} more comparisons ({spread}) until it is shown that {shown}: "
            "an estimate, not a claim",
        )
    ]
