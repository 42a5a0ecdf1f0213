"""How many prompts are rendered before anything runs, and which."""

import pytest

from winnow.tasks.data.datasets import Example
from winnow.tasks.data.sandboxed_templates import compile_template, render
from winnow.tasks.data.trial_renders import MOST, MOST_SECONDS, try_templates
from winnow.tasks.errors import TemplateError


def examples(n, **special):
    """So many short ones; `at_5="long text"` sets the text of the example at 5."""
    texts = {int(name.removeprefix("at_")): text for name, text in special.items()}
    return [Example(key=f"e{i}", fields={"input": texts.get(i, "ok")}, targets=()) for i in range(n)]


def recording():
    tried = []
    return tried, lambda example: tried.append(example.key)


def still():
    return 0.0


def test_few_prompts_are_all_rendered():
    tried, template = recording()
    assert try_templates([template] * 3, examples(40), still) == 120
    assert sorted(set(tried)) == sorted(f"e{i}" for i in range(40))


def test_of_many_a_bounded_number_is_rendered_the_first_the_last_and_the_longest_among_them():
    rows = examples(MOST, at_12345="x" * 50)
    first, one = recording()
    second, two = recording()
    assert try_templates([one, two], rows, still) == MOST + 6
    assert {f"e{MOST - 1}", "e0", "e12345"} <= set(first) & set(second)
    assert len(set(first)) > MOST / 3
    again, template = recording()
    try_templates([template, lambda _: None], rows, still)
    assert again == first


def test_it_takes_a_bounded_time():
    seconds = iter(range(1000))
    tried, template = recording()
    assert try_templates([template], examples(100), lambda: float(next(seconds))) == MOST_SECONDS + 1
    assert len(tried) == MOST_SECONDS + 1


@pytest.mark.parametrize("at", ["at_0", f"at_{MOST}"])
def test_one_that_cannot_be_rendered_is_found_there(at):
    template = compile_template("{{ 1 / (input | length - 3) }}", ["input"], "prompts[0].template")
    rows = examples(MOST + 1, **{at: "bad"})
    with pytest.raises(TemplateError, match="by zero"):
        try_templates([lambda row: render(template, row.fields, row.key)], rows, still)
