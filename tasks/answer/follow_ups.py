"""Further results of an answer: new examples, running costs, and the next step."""

from dataclasses import asdict

from winnow.storage.objectives import traits_of
from winnow.tasks.answer.earlier_campaigns import changed_since, earlier_on_same_question, held_out_positions
from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.new_examples import Beyond, Question, beyond_of
from winnow.tasks.answer.next_step import Estimate, NextStep, estimate_of
from winnow.tasks.answer.opponents import closest_pair
from winnow.tasks.answer.unit_costs import RunningCost, running_costs
from winnow.tasks.campaign.look import Look
from winnow.tasks.data.clusters import stored_clusters
from winnow.tasks.spec.judge_tree import spares

MOST_RUNNING = 4
"""Maximum number of candidates whose running costs are shown."""


def beyond_the_benchmark(look: Look, answer: Answer) -> Beyond | None:
    """Compare the best candidate and its closest opponent on new examples.

    None for other objectives than best-mean and best-duel, without an outcome or an opponent, with held-out
    results, and with groups or constraints.
    """
    if not traits_of(answer.objective).looks_for_best or answer.outcome is None:
        return None
    if answer.held_out is not None and answer.held_out.told:
        return None  # held-out results are unbiased, although the two candidates were chosen by scores
    if answer.groups is not None or answer.constraints:
        return None  # a plain mean over new examples would not be the compared value, or not all of it
    pair = closest_pair(answer)
    if pair is None:
        return None
    question = Question(
        session=look.session,
        campaign_id=look.record.id,
        names=look.names,
        n_examples=answer.n_examples,
        selector=look.record.spec["selector"]["name"],
        is_duel=traits_of(answer.objective).compares_pairs,
        baseline=answer.baseline,
        joined=frozenset(name for each in answer.additions for name in each.names),
        dropped=frozenset(each.name for each in answer.dropped),
        clusters=stored_clusters(look.session, look.record),
        spares=spares(look.record.spec),
        lacks_texts=answer.lacks_texts,
        earlier=changed_since(look),
    )
    finds_best = answer.baseline is None and answer.top_m == 1 and not question.is_duel
    return beyond_of(question, *pair, finds_best=finds_best)


def running_of(look: Look, answer: Answer) -> tuple[RunningCost, ...]:
    """Running costs of the best candidate and the runner-up, or of tied candidates.

    Empty for gates and routes, which have no such pair.
    """
    if answer.baseline is not None or traits_of(answer.objective).is_stream or answer.best is None:
        return ()
    others = answer.tied or ([answer.runner_up.name] if answer.runner_up is not None else [])
    names = list(dict.fromkeys([answer.best, *others]))
    return running_costs(look, names[:MOST_RUNNING])


def next_step_of(look: Look, answer: Answer) -> NextStep | None:
    """Estimate what would settle a search for the best mean whose budget is spent.

    None if the campaign has another question, ended for another reason, or has no error probability, because
    nothing would settle it then.
    """
    is_open = answer.outcome == "undecided" and answer.reason == "budget"
    is_search = traits_of(answer.objective).scores_a_benchmark and answer.baseline is None
    is_settled = answer.only_held_out_left or bool(answer.lacking) or len(answer.contenders) < 2
    if not (is_search and is_open) or is_settled or answer.delta is None or answer.best is None:
        return None
    rival = answer.runner_up
    found = None if rival is None else rival.difference
    behind = None if found is None or found.against != answer.best else found.estimate
    return NextStep(
        leading=answer.best,
        rival=None if rival is None else rival.name,
        gap=None if behind is None else 0.0 - behind,
        **asdict(_estimate(look, answer)),
    )


def _estimate(look: Look, answer: Answer) -> Estimate:
    if answer.constraints:
        return Estimate(because="a search among candidates that meet constraints is not simulated")
    if answer.groups is not None:
        return Estimate(because="a comparison of means of groups is not simulated")
    if spares(look.record.spec):
        return Estimate(because="a race that spares verdicts on equal outputs is not simulated")
    if answer.is_mixed:
        return Estimate(because="a server changed its model, so the scores are of two models")
    return estimate_of(
        look,
        n_open=len(answer.contenders),
        n_examples=answer.n_examples,
        held_out=held_out_positions(look),
    )


def same_questions(look: Look, answer: Answer) -> tuple[str, ...]:
    """Earlier campaigns whose error probabilities add to that of this answer.

    Empty unless the answer is proven.
    """
    return earlier_on_same_question(look) if answer.claim.kind == "proven" else ()
