"""Templates: strict about names, deaf to what values say, bounded in what they produce."""

import contextlib
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.tasks.data import sandboxed_templates as templates
from winnow.tasks.data.sandboxed_templates import MAX_CHARACTERS, compile_template, render
from winnow.tasks.data.template_grammar import FILTERS
from winnow.tasks.errors import TemplateError

FIELDS = {
    "input": "hi",
    "n": 3,
    "choices": ["a", "b"],
    "meta": {"x": 1, "_y": 2, "rows": [{"text": "<t>"}]},
    "missing": None,
    "context": "c",
}


def rendered(source, fields=FIELDS):
    return render(compile_template(source, fields), fields, "k7")


def refusal(source, fields=FIELDS):
    with pytest.raises(TemplateError) as caught:
        render(compile_template(source, fields, "prompts[0].template"), fields, "k7")
    assert caught.value.path == "prompts[0].template"
    return caught.value.message


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ input }}=\n", "hi=\n"),
        ("{% for c in choices %}{{ loop.index }}{{ c }}{{ '' if loop.last else ',' }}{% endfor %}", "1a,2b"),
        ("{{ choices | join(', ') }} {{ choices | tojson }}", 'a, b ["a", "b"]'),
        ("{{ meta.rows | tojson }}", '[{"text": "<t>"}]'),
        ("{{ meta.rows | map(attribute='text') | join }}{{ meta['_y'] }}", "<t>2"),
        ("{% if n % 2 == 1 and n * 2 > 5 %}{{ input.upper() }}{% else %}no{% endif %}", "HI"),
        ("{{ input[:1] ~ input[-1] }}{{ input | replace('h', 'H') }}", "hiHi"),
        ("{% for k, v in meta.items() if k == 'x' %}{{ k }}{{ v }}{% endfor %}", "x1"),
        ("{% for x in ['A', -1] %}{{ x }}{% endfor %}{# remark #}", "A-1"),
        ("{{ missing | default('none', true) }}{{ context }}", "nonec"),
        ("{% raw %}{{ input }}{% endraw %}", "{{ input }}"),
    ],
)  # fmt: skip
def test_a_template_prints_branches_and_loops(source, text):
    assert rendered(source) == text


@given(
    st.text()
    | st.sampled_from(["{{ 7 * 7 }}", "{% for x in y %}", "{# gone #}", "{{ input }}", "\x00\ud800\u202e"])
)
def test_values_are_data_and_never_evaluated(text):
    assert rendered("[{{ input }}]", {"input": text}) == f"[{text}]"


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("\n\n{{ inptu }}", "line 3 of the template: unknown variable 'inptu'; did you mean 'input'?"),
        ("{{ input }", "unexpected '}'; close {{ with }}, as in {{ input }}"),
        ("{{ target }}", "the target is never shown to a model; remove {{ target }}"),
        ("a\n{{ input", "line 2 of the template: unexpected end of template"),
        ("{% if %}", "line 1 of the template: Expected an expression"),
        ("{{ input | uper }}", "unknown filter 'uper'; did you mean 'upper'? available: abs"),
        ("{{ input is strng }}", "unknown test 'strng'; did you mean 'string'?"),
        ("{{ input.__class__ }}", ".__class__ is not allowed"),
        ("{{ input.format(1) }}", "unknown method 'format'"),
        ("{{ choices.append(1) }}", "unknown method 'append'"),
        ("{{ 10**9 }}", "** is not allowed"),
        ("{{ range(9) }}", "range() is not allowed"),
        ("{{ cycler }}", "unknown variable 'cycler'"),
        ("{{ choices[0]() }}", "only a method of a value may be called"),
        ("{{ [input, input] }}", "a list can contain only constants"),
        ("{{ {'a': 1} }}", "a mapping in braces is not allowed"),
        ("{% set a = input %}", "{% set %} is not allowed"),
        ("{% set a %}{{ input }}{% endset %}", "{% set %} is not allowed"),
        ("{% macro f() %}{{ f() }}{% endmacro %}", "{% macro %} is not allowed"),
        ("{% include '/etc/passwd' %}", "{% include %} is not allowed"),
        ("{% import 'x' as x %}", "{% import %} is not allowed"),
        ("{% extends 'x' %}", "{% extends %} is not allowed"),
        ("{% for c in choices recursive %}{{ loop(c) }}{% endfor %}", "a recursive loop is not allowed"),
        ("{% for a in choices %}" * 3 + "{% endfor %}" * 3, "loops can be nested at most 2 deep"),
        ("{{ " + "(" * 5_000 + "}}", "nested too deeply"),
        ("{% if n %}" * 300 + "{% endif %}" * 300, "nested too deeply"),
        ("{{ " + "-" * 5_000 + "1 }}", "nested too deeply"),
    ],
)  # fmt: skip
def test_what_is_not_allowed_is_refused_before_any_example_is_seen(source, sentence):
    with pytest.raises(TemplateError) as caught:
        compile_template(source, {*FIELDS, "target"}, "prompts[0].template")
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("prompts[0].template: ")


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("{{ meta.nothing }}", "has no attribute 'nothing'"),
        ("{{ missing }}", "a value to print is null; write {{ name | default('', true) }}"),
        ("{{ choices | map('first') | join }}{{ missing | join }}", "not iterable"),
        ("{{ input.upper }}", "a builtin_function_or_method cannot be printed; call the method"),
        ("{{ choices | map('upper') }}", "a generator cannot be printed"),
        ("{{ input['__class__'] }}", "unsafe"),
        ("{{ meta.rows | map(attribute='__class__') | join }}", "unsafe"),
        ("{{ input | map('attr', '__class__') | join }}", "No filter named 'attr'"),
        ("{{ 1 // (n - 3) }}", "by zero"),
        ("{{ input | truncate(1) }}", "expected length >= 3, got 1"),
        ("{{ input | dictsort }}", "'str' object has no attribute 'items'"),
        ("{% for x in missing %}{% endfor %}", "'NoneType' object is not iterable"),
        ("{% for x in meta.nothing %}{% endfor %}", "has no attribute 'nothing'"),
    ],
)
def test_a_failure_names_the_example(source, sentence):
    assert refusal(source).startswith("example 'k7': ")
    assert sentence in refusal(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'a' * 1000000000 }}",
        "{{ choices * 100000000 }}",
        "{{ '%999999999d' % n }}",
        "{{ long | replace('', long) }}",
        "{{ long | list | join(long) }}",
        "{{ rows | map('join', long) | join }}",
        "{% for a in long %}{% for b in long %}{{ long }}{% endfor %}{% endfor %}",
        "{{ long ~ long }}" * 60,
    ],
)
def test_a_template_that_multiplies_is_stopped_before_it_eats_the_memory(source):
    fields = FIELDS | {"long": "x" * 10_000, "rows": [["a"] * 50] * 100}
    template = compile_template(source, fields)
    tracemalloc.start()
    try:
        with pytest.raises(
            TemplateError, match=r"longer than 1000000 characters|needs numbers on both sides"
        ):
            render(template, fields)
        assert tracemalloc.get_traced_memory()[1] < 20 * MAX_CHARACTERS
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in long %}{% for b in long %}{% endfor %}{% endfor %}",
        "{% for a in long %}{% for b in long if b == 'y' %}{{ b }}{% endfor %}{% endfor %}",
        "{% for a in long %}{% for b in long %}{{ loop.length == 0 or '' }}{% endfor %}{% endfor %}",
        "{% for a in long %}{{ 'x' if a | upper | lower | upper == 'y' }}{% endfor %}" * 100,
    ],
)
def test_a_template_that_loops_for_long_is_stopped(monkeypatch, source):
    monkeypatch.setattr(templates, "MAX_STEPS", 2_000)
    fields = {"long": "x" * 1_000}
    with pytest.raises(TemplateError, match="takes more than 2000 steps; loop over less"):
        render(compile_template(source, fields), fields)


def test_steps_are_counted_anew_for_each_example(monkeypatch):
    monkeypatch.setattr(templates, "MAX_STEPS", 2_000)
    template = compile_template("{% for a in ['b'] %}{% for b in long %}{% endfor %}{% endfor %}", ["long"])
    for _ in range(5):
        assert render(template, {"long": "x" * 1_900}) == ""


@pytest.mark.parametrize("source", ["{% for a in long %}{% endfor %}", "{{ long | sort | first }}"])
def test_a_template_that_takes_long_is_stopped(monkeypatch, source):
    seconds = iter(range(0, 1_000, 3))
    monkeypatch.setattr(templates.time, "monotonic", lambda: float(next(seconds)))
    with pytest.raises(TemplateError, match="takes more than 5 s; loop over less"):
        render(compile_template(source, ["long"]), {"long": "xyz"})


@given(
    st.text(alphabet="{}%|[]().,'\" abinput1forsd_truncate", max_size=30),
    st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=5),
)
def test_no_template_and_no_value_ends_in_anything_but_a_sentence(inside, value):
    for source in (inside, "{{ input | " + inside + " }}", "{% for a in input %}" + inside + "{% endfor %}"):
        with contextlib.suppress(TemplateError):
            render(compile_template(source, ["input"]), {"input": value})


FILTER_CALLS = [f"{name}{call}" for name in sorted(FILTERS) for call in ("", "(1)", "('a')", "('a', 'b')")]


@pytest.mark.parametrize("filter_", FILTER_CALLS)
def test_nor_does_any_filter_with_any_argument(filter_):
    for value in ("text", 3, -1.5, [], [1, "a"], {"a": 1}, {"a": {}, "b": None}, True, ""):
        with contextlib.suppress(TemplateError):
            render(compile_template("{{ input | " + filter_ + " }}", ["input"]), {"input": value})


def test_a_prompt_of_the_largest_length_is_rendered():
    assert len(rendered("{{ input }}", {"input": "x" * MAX_CHARACTERS})) == MAX_CHARACTERS
    assert "shorten the template or data" in refusal("{{ input }}!", {"input": "x" * MAX_CHARACTERS})


def test_a_template_knows_its_variables():
    assert compile_template("{% for c in choices %}{{ c }}{{ n }}{% endfor %}", FIELDS).variables == {
        "choices",
        "n",
    }
