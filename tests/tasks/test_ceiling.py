"""The most that campaigns take whose stop is not foreseen, counted by hand."""

import dataclasses
import json
from pathlib import Path

import pytest

from winnow.flows.simulate.plan_lines import ceiling_lines
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.simulation.forecast.ceiling import plan_ceiling, prompts_to_show

PRICES = "execution: {prices: {small: {input: 1.0, output: 10.0}, smaller: {input: 1.0, output: 10.0}}}\n"
GRADER = "{name: grader, provider: transformers, model: checkpoints/small, generate_config: {max_tokens: 20}}"
LLM = f"{{type: llm, template: mt-bench, models: [{GRADER}]}}"


@pytest.fixture
def checked(campaign_file):
    """A campaign of two models, two prompts and two ways of sampling on six examples, with changes."""

    def check(objective, selector, *changes, add=""):
        path = Path(campaign_file("objective: best-mean", f"objective: {objective}", add=add))
        text = path.read_text().replace("{name: ucb-e, params: {a: 1.0}}", selector)
        for replace, by in changes:
            assert replace in text
            text = text.replace(replace, by)
        path.write_text(text)
        return check_campaign_file(str(path))

    return check


def test_duels_take_two_texts_each_but_one_of_each_candidate_for_each_example(checked):
    rules = ("{type: contains}", "{type: rules, scorer: {type: exact}}")
    kept = "fresh_generations: false\n"
    found = plan_ceiling(checked("best-duel", "{name: round-robin}", rules, add=PRICES + kept), rate=2.0)
    # Prompts have 7 or 9 characters; answers 12 tokens of the one model, and 256 of the other.
    assert (found.limit, found.unit, found.most.requests) == (40, "duels", 48)
    assert found.most.prompt_tokens == pytest.approx(48 * (7 + 9) / 2 / 4)
    assert found.most.answer_tokens == 24 * (12 + 256)
    assert found.most.price == pytest.approx((found.most.prompt_tokens + 10 * found.most.answer_tokens) / 1e6)
    assert found.most.hours == pytest.approx(24 / 3600)
    assert found.most.judge_calls == 0
    # Made afresh each time: 80 texts, all of the dearest two.
    assert plan_ceiling(checked("best-duel", "{name: round-robin}", rules)).most.answer_tokens == 80 * 256


def test_models_that_judge_duels_are_shown_both_answers_in_both_orders(checked):
    found = plan_ceiling(checked("best-duel", "{name: round-robin}", ("{type: contains}", LLM))).most
    assert (found.judge_calls, found.judge_reply_tokens) == (80, 80 * 20)
    assert found.judge_prompt_tokens > 80 * 2 * 256
    assert found.price is None


def test_labels_take_all_candidates_and_the_autoevaluator_on_all_that_belongs_to_them(checked):
    section = "certify: {alpha: 0.2, cost: prompt-length, unlabelled_per_label: 1, autoevaluator: "
    section += f'{{model: {GRADER}, prompt: "{{{{ input }}}}"}}}}\n'
    changes = (
        ("{budget: 40, delta: 0.05}", "{budget: 2, delta: 0.1}"),
        ("- {name: warm, temperature: 1.0}", ""),
    )
    found = plan_ceiling(checked("certify", "{name: r-autoeval-plus}", *changes, add=section))
    # Two labelled examples and one more for each; four candidates.
    assert (found.limit, found.unit, found.most.requests) == (2, "labels", 16)
    assert found.most.answer_tokens == 8 * (12 + 256)
    assert (found.most.judge_calls, found.most.judge_prompt_tokens) == (4, pytest.approx(4 * 6 / 4))
    assert found.most.judge_reply_tokens == 4 * 20
    judge = f'{{type: llm, rubric: "Polite?", scale: yes/no, model: {GRADER}}}'
    metric = f"metrics: [{{name: tone, judge: {judge}}}]\n"
    beside = plan_ceiling(checked("certify", "{name: r-autoeval-plus}", *changes, add=section + metric)).most
    # A metric is about the answers to the two labelled examples alone.
    assert beside.judge_calls == 4 + 2 * 4
    assert beside.judge_prompt_tokens > 4 * 6 / 4 + 2 * 4 * 256
    assert beside.requests == found.most.requests
    assert found.unforeseen.endswith("on their losses and on how well the autoevaluator predicts them")
    assert "at most 2 labels are used, 1 unlabelled example belongs to each" in found.size


def test_no_more_labels_are_promised_than_can_be_had_and_no_autoevaluator_is_named_where_none_is(checked):
    section = "certify: {alpha: 0.2, cost: prompt-length}\n"
    found = plan_ceiling(
        checked(
            "certify",
            "{name: r-eval}",
            ("{budget: 40, delta: 0.05}", "{budget: 100, delta: 0.1}"),
            add=section,
        )
    )
    assert found.size.endswith("6 of 6 examples can be labelled (6 are), at most 6 labels are used")
    assert found.unforeseen.endswith("which depends on their losses")
    assert found.size.startswith("8 candidates, tested from the most expensive on: ")
    # Whose names are all told is read by nobody.
    assert found.size.partition(" can be labelled")[0].endswith(" and 3 more; 6 of 6 examples")
    many = dataclasses.replace(found, guessed_tokens=tuple(f"m{number}" for number in range(100)))
    said = " ".join(" ".join(ceiling_lines(many)).split())
    assert "no tokenizer is available for m0, m1, m2, m3, m4 and 95 more, so 4 characters count" in said


def test_every_prompt_that_is_routed_counts_as_if_the_dearest_answered_it(checked, folder):
    rows = ({"id": f"e{each}", "vector": [1.0, float(each)]} for each in range(6))
    (folder / "vectors.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    add = "embedder: {type: precomputed, path: vectors.jsonl}\n"
    changes = ("{budget: 40, delta: 0.05}", "{budget: 4}"), ("batch_size: 8", "batch_size: 4")
    found = plan_ceiling(checked("route", "{name: lin-ucb}", *changes, add=add))
    assert (found.limit, found.unit, found.most.requests) == (4, "prompts", 4)
    assert found.most.answer_tokens == 4 * 256
    assert "which candidate answers which prompt" in found.unforeseen
    assert found.exploring is None
    assert "pays" not in "".join(ceiling_lines(found))


def test_the_prompts_that_an_explored_share_needs_are_told(checked, folder):
    rows = ({"id": f"e{each}", "vector": [1.0, float(each)]} for each in range(6))
    (folder / "vectors.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    add = "embedder: {type: precomputed, path: vectors.jsonl}\nexclude: [{model: small}, {prompt: plain}]\n"
    changes = ("{budget: 40, delta: 0.05}", "{budget: 4}"), ("batch_size: 8", "batch_size: 4")
    found = plan_ceiling(checked("route", "{name: lin-ucb, params: {explore: 0.2}}", *changes, add=add))
    assert 1_000 < found.exploring.prompts < 20_000
    said = " ".join(" ".join(ceiling_lines(found)).split())
    assert (
        f"pays about {found.exploring.prompts:,} prompts with explore: 0.2 show that routing scores" in said
    )
    assert "; the budget has 4, so the answer will probably not show this" in said


def test_the_less_is_explored_and_the_more_candidates_there_are_the_more_prompts_it_takes():
    few, more, many = (
        prompts_to_show(arms, explore=explore, delta=0.05).prompts
        for arms, explore in ((2, 0.2), (2, 0.05), (4, 0.05))
    )
    assert few < more < many
    assert prompts_to_show(2, explore=1.0, delta=0.05).prompts is None  # all is drawn: nothing is gained
