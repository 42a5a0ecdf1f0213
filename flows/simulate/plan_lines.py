"""Lines of 80 columns with the expected size, price and time of a campaign."""

import textwrap
from collections.abc import Sequence

from winnow.tasks.answer.resolution import resolution_words
from winnow.tasks.answer.status_lines import repeat_lines
from winnow.tasks.engines.list_prices import CURRENCY, source_of_prices
from winnow.tasks.simulation.forecast.ceiling import MOST_PROMPTS, Ceiling
from winnow.tasks.simulation.forecast.plan import POWER, Plan
from winnow.tasks.simulation.forecast.pricing import Amounts
from winnow.tasks.text.phrases import amount, count_of, list_of, percentage

WIDTH = 80
KEY_WIDTH = 15
UNKNOWN_PRICE = (
    "unknown: add execution.prices for every model; for models on your devices, add execution.price_per_hour "
    "and give --rate"
)
UNKNOWN_HOURS = "unknown: a model has no stored outputs; give the requests per second with --rate"


def plan_lines(plan: Plan) -> list[str]:
    """Lines with the expected costs of a run, and the gaps that it can detect."""
    title = f"{plan.name}: forecast of a run; no request was sent"
    return _lines(title, _expected_lines(plan))


def ceiling_lines(ceiling: Ceiling) -> list[str]:
    """Lines with the maximum costs of a run, and the costs that are unknown."""
    title = f"{ceiling.name}: upper bound for a run; no request was sent"
    return _lines(title, _maximum_lines(ceiling))


def _lines(title: str, sentences: Sequence[tuple[str, str]]) -> list[str]:
    lines = [title]
    for key, sentence in sentences:
        lines += textwrap.wrap(
            sentence,
            WIDTH,
            initial_indent=f"  {key:<{KEY_WIDTH - 2}}",
            subsequent_indent=" " * KEY_WIDTH,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


def _expected_lines(plan: Plan) -> list[tuple[str, str]]:
    held_out = (
        f"; {plan.held_out} more examples are held out for the winner and the runner-up"
        if plan.held_out
        else ""
    )
    sides = f"{plan.candidates} candidates x {plan.examples} examples"
    return [
        ("grid", f"{sides} = {amount(plan.grid)} comparisons{held_out}"),
        ("budget", f"at most {amount(plan.limit)} comparisons, about {plan.batch_size} a round"),
        ("assumed", plan.assumed),
        ("requests", _requests(plan)),
        ("decided", _decided(plan)),
        ("tokens", _tokens(plan)),
        *([("judging", _judging(plan))] if plan.expected.judge_calls else []),
        *_canaries(plan),
        ("price", _price(plan)),
        ("hours", _hours(plan)),
        *_gaps(plan),
        *repeat_lines(plan.unsteady),
    ]


def _gaps(plan: Plan) -> list[tuple[str, str]]:
    if plan.gap_of_grid is None:
        what = "means of groups" if plan.top_m == 1 else f"the {plan.top_m} best candidates"
        return [("gap", f"not computed for {what}")]
    return [("gap", _gap(plan, plan.gap_of_grid)), *_on_new(plan)]


def _maximum_lines(ceiling: Ceiling) -> list[tuple[str, str]]:
    most = ceiling.most
    judging = (
        f"{_about(most.judge_calls)} calls of models that judge or act as autoevaluator, with "
        f"{_about(most.judge_prompt_tokens)} tokens of prompts and {_about(most.judge_reply_tokens)} of "
        "replies, if every first reply can be read"
    )
    price = UNKNOWN_PRICE if most.price is None else f"{_money(most.price)}, {_currency(most)}"
    hours = UNKNOWN_HOURS
    if most.hours is not None:
        hours = f"{_time(most)}, {_whence(ceiling)}; hours and hourly prices are estimates, not maxima"
    return [
        ("size", ceiling.size),
        ("budget", f"at most {amount(ceiling.limit)} {ceiling.unit}"),
        *_pays(ceiling),
        (
            "requests",
            f"{amount(round(most.requests))} outputs of candidates; outputs that the database already has "
            "are reused",
        ),
        (
            "tokens",
            f"{_about(most.prompt_tokens)} of prompts and {_about(most.answer_tokens)} of answers, all as "
            f"long as max_tokens allows, by the most expensive candidates; {_rendered(ceiling)}",
        ),
        *([("judging", judging)] if most.judge_calls else []),
        *_canaries(ceiling),
        ("price", price),
        ("hours", hours),
        ("unforeseen", f"{ceiling.unforeseen}; the run may end before the budget is spent"),
        *repeat_lines(ceiling.unsteady),
    ]


def _pays(ceiling: Ceiling) -> list[tuple[str, str]]:
    """Line on the number of prompts that are needed to show that routing pays, with its assumptions."""
    found = ceiling.exploring
    if found is None:
        return []
    needed = (
        f"more than {amount(MOST_PROMPTS)}" if found.prompts is None else f"about {amount(found.prompts)}"
    )
    sentence = (
        f"{needed} prompts with explore: {found.explore:g} show that routing scores higher than the best "
        f"single candidate, if routing gains {found.gain:g} (assumed) and each candidate is best on the same "
        "number of prompts"
    )
    if found.prompts is None or found.prompts > ceiling.limit:
        sentence += f"; the budget has {amount(ceiling.limit)}, so the answer will probably not show this"
    return [("pays", sentence)]


def _canaries(plan: Plan | Ceiling) -> list[tuple[str, str]]:
    """Line on the canary prompts, which detect changes of served models."""
    if plan.canaries is None:
        return []
    sentence = (
        f"{plan.canaries}, when a run begins, and a second time if the model is new to the database; each "
        "takes about 50 tokens, which count towards limits of tokens and cost, but not in these numbers"
    )
    return [("canaries", sentence)]


def _requests(plan: Plan) -> str:
    requests, comparisons = round(plan.expected.requests), round(plan.comparisons)
    of, what = "", ""
    if requests != comparisons:  # several outputs per example
        of, what = f" for {amount(comparisons)} comparisons", " comparisons"
    return (
        f"{amount(requests)} on average{of} ({_share_of_grid(plan)}), in nine of ten "
        f"runs {amount(plan.fewest)} to {amount(plan.most)}{what}, by {plan.selector} on "
        f"{count_of(plan.runs, 'random order')}; outputs that the database already has are reused"
    )


def _share_of_grid(plan: Plan) -> str:
    held_out = plan.candidates * plan.held_out
    share = percentage(plan.comparisons / (plan.grid + held_out))
    return f"{share} of the grid{' and what is held out' * bool(held_out)}"


def _decided(plan: Plan) -> str:
    winner, close = ("the right winner", "one within {} of it")
    if plan.top_m > 1:
        winner, close = (f"the right {plan.top_m} best", "others within {} of them")
    right = f"{plan.right} of {plan.runs} runs named {winner}"
    if plan.epsilon:
        right += f", or {close.format(f'{plan.epsilon:g}')}"
    if plan.delta is None:
        return f"{right}; without stopping.delta, no error probability is controlled"
    return (
        f"{plan.decided} of {plan.runs} runs within the budget, at error probability {plan.delta:g}; {right}"
    )


def _tokens(plan: Plan) -> str:
    expected, dearest = plan.expected, plan.dearest
    return (
        f"{_about(expected.prompt_tokens)} of prompts and {_about(expected.answer_tokens)} of answers "
        f"({_answers(plan)}); if the most expensive candidates spend the whole budget with the longest "
        f"answers, {_about(dearest.prompt_tokens)} and {_about(dearest.answer_tokens)}; "
        f"{_rendered(plan)}"
    )


def _rendered(plan: Plan | Ceiling) -> str:
    how = f"prompts of {count_of(plan.sampled_examples, 'example')} were rendered"
    if plan.guessed_tokens:
        models = list_of(plan.guessed_tokens)
        how += f"; no tokenizer is available for {models}, so 4 characters count as a token"
    return how


def _judging(plan: Plan) -> str:
    expected, dearest = plan.expected, plan.dearest
    return (
        f"{_about(expected.judge_calls)} calls of models that judge, with "
        f"{_about(expected.judge_prompt_tokens)} tokens of prompts and {_about(expected.judge_reply_tokens)} "
        f"of replies, if every first reply can be read; if the most expensive candidates spend the whole "
        f"budget, {_about(dearest.judge_calls)} calls, {_about(dearest.judge_prompt_tokens)} and "
        f"{_about(dearest.judge_reply_tokens)} tokens"
    )


def _answers(plan: Plan) -> str:
    if not plan.measured:
        return "all as long as max_tokens allows"
    texts = sum(rate.texts for rate in plan.measured.values())
    return f"as long as {amount(texts)} stored outputs of these models; max_tokens for models without any"


def _price(plan: Plan) -> str:
    if plan.expected.price is None:
        return UNKNOWN_PRICE
    dearest = plan.dearest.price
    whole = (
        ""
        if dearest is None
        else f", {_money(dearest)} if the most expensive candidates spend the whole budget"
    )
    return f"{_money(plan.expected.price)}{whole}, {_currency(plan.expected)}"


def _currency(amounts: Amounts) -> str:
    if amounts.currency is None:
        return "in the currency of the file's prices"
    listed = f"; where the file has no prices, list prices of {source_of_prices()}"
    return f"in {amounts.currency}{listed if amounts.currency == CURRENCY else ''}"


def _hours(plan: Plan) -> str:
    if plan.expected.hours is None:
        return UNKNOWN_HOURS
    return f"{_time(plan.expected)}, the whole budget {_time(plan.dearest)}, {_whence(plan)}"


def _whence(plan: Plan | Ceiling) -> str:
    if plan.rate is not None:
        return f"at {plan.rate:g} requests per second"
    return "of engine time, measured on stored outputs of these models, without loading"


def _time(amounts: Amounts) -> str:
    return "?" if amounts.hours is None else f"{amounts.hours:.2g}"


def _money(value: float) -> str:
    """A price as text: three significant digits below 1, else two decimals."""
    return f"{value:.3g}" if value < 1.0 else f"{value:,.2f}"


def _gap(plan: Plan, gap_of_grid: float) -> str:
    exact = f"{gap_of_grid:.4f} on these examples, if all comparisons are made and scores are 0 and 1"
    if plan.limit >= plan.grid:
        return exact
    what = "decided correctly" if plan.delta is not None else "named correctly"
    if plan.gap is None:
        within = "no gap is detectable within the budget"
    else:
        within = f"about {plan.gap:.3f} within the budget"
    return (
        f"{within} ({what} in {POWER:.0%} of runs, if all others are that far behind the best and fail as "
        f"assumed); {exact}"
    )


def _on_new(plan: Plan) -> list[tuple[str, str]]:
    found = plan.on_new_examples
    return [] if found is None else [("new examples", resolution_words(found))]


def _about(value: float) -> str:
    """A number as text, rounded to three significant digits."""
    return amount(float(f"{value:.3g}"))
