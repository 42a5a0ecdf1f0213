"""The demo's evaluation examples and the texts its models learn from."""

import re
from collections import Counter
from itertools import islice

import jinja2
import pytest

from winnow.infra.demo.data import EXAMPLES_PER_TASK, evaluation_examples, training_texts
from winnow.infra.demo.problems import NOUNS, TASKS
from winnow.infra.demo.prompts import TEMPLATES, render
from winnow.infra.demo.recipes import CONTEXT, RECIPES

EVENLY = dict.fromkeys(TASKS, 1.0)
PROMPT = re.compile(r"(?P<task>\w+) (?P<input>.*) (?P<style>=|steps:|reversed:)")
AMOUNTS = {"a": 1, "an": 1, "two": 2, "three": 3, "four": 4, "five": 5}


def is_right(task, question, answer):
    """Whether `answer` is right, worked out from the question alone."""
    if task == "sum":
        first, second = map(int, question.split("+"))
        return answer == str(first + second)
    if task == "letter":
        return answer == question[1]
    if task == "count":
        total = sum(AMOUNTS[thing.split()[0]] for thing in question.split(", "))
        words = (
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
        )
        words += " sixteen seventeen eighteen nineteen twenty"
        return answer in (str(total), words.split()[total])
    return answer in NOUNS and answer != question and Counter(answer) == Counter(question)


@pytest.fixture(scope="module")
def texts():
    return list(islice(training_texts(3, EVENLY), 20_000))


def test_there_are_as_many_different_examples_of_every_task():
    examples = evaluation_examples()
    assert Counter(example.task for example in examples) == dict.fromkeys(TASKS, EXAMPLES_PER_TASK)
    assert len({(example.task, example.input) for example in examples}) == len(examples)
    assert len({example.id for example in examples}) == len(examples)


def test_the_examples_are_the_same_on_every_call():
    assert evaluation_examples() == evaluation_examples()


def test_every_target_is_right():
    for example in evaluation_examples():
        assert example.target
        assert all(is_right(example.task, example.input, target) for target in example.target), example


def test_every_noun_with_the_scrambled_letters_is_a_target():
    for example in evaluation_examples():
        if example.task == "unscramble":
            assert set(example.target) == {noun for noun in NOUNS if sorted(noun) == sorted(example.input)}


def test_no_training_text_asks_an_evaluation_question(texts):
    asked = {PROMPT.fullmatch(text.prompt).group("task", "input") for text in texts}
    examples = {(example.task, example.input) for example in evaluation_examples()}
    assert len(asked) > 5_000
    assert not asked & examples


def test_training_teaches_right_answers_in_every_task_and_style(texts):
    seen = Counter()
    for text in texts:
        task, question, style = PROMPT.fullmatch(text.prompt).groups()
        assert is_right(task, question, text.answer.rpartition(">")[2]), text
        assert (style == "=") == (">" not in text.answer), text
        seen[task, style] += 1
    assert len(seen) == len(TASKS) * len(TEMPLATES)
    assert min(seen.values()) > 1_000


def test_training_texts_follow_the_mix_and_the_seed():
    only_sums = list(islice(training_texts(1, {"sum": 1.0, "letter": 0.0}), 50))
    assert all(text.prompt.startswith("sum ") for text in only_sums)
    assert only_sums == list(islice(training_texts(1, {"sum": 1.0, "letter": 0.0}), 50))
    assert only_sums != list(islice(training_texts(2, {"sum": 1.0, "letter": 0.0}), 50))


def test_every_text_fits_a_checkpoint(texts):
    assert max(len(text.prompt) + len(text.answer) for text in texts) < CONTEXT


def test_training_reads_the_prompt_that_the_campaign_sends():
    for style, template in TEMPLATES.items():
        sent = jinja2.Template(template).render(task="sum", input="1+2")
        assert render(style, "sum", "1+2") == sent


def test_recipes_differ_in_name_and_weigh_known_tasks_only():
    assert len({recipe.name for recipe in RECIPES}) == len(RECIPES) >= 4
    assert all(set(recipe.mix) <= set(TASKS) for recipe in RECIPES)
