"""Templates of whatever text, rendered with whatever fields."""

import json

import pytest
from cases import JSON_VALUES, NASTY_TEXT, kept, settles
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries

from winnow.tasks.data.sandboxed_templates import compile_template, render
from winnow.tasks.data.template_grammar import FILTERS, METHODS

NAMES = ("input", "a", "b", "items")
FIELDS = {"input": "what is 1 + 1?", "a": [1, 2.5, "x", None], "b": {"k": "v", "n": {"m": 3}}, "items": -7}


def case(source, fields=None):
    """Compile and render."""
    fields = FIELDS if fields is None else fields
    return render(compile_template(source, tuple(fields), "prompts[0].template"), fields, "e1")


NUMBERS = st.sampled_from(
    ["0", "1", "-1", "3", "10**9", "999999999999", "1e308", "0.1", "nan", "True", "none"]
)
LITERALS = NUMBERS | st.sampled_from(
    ["'x'", "'%s'", "'{0.__class__}'", "[1, 'a']", "(1, 2)", "''", "'a' * 3"]
)
VALUES = st.deferred(
    lambda: (
        st.sampled_from(NAMES)
        | LITERALS
        | st.builds("{}.{}".format, VALUES, st.sampled_from(["k", "n", "__class__", "format", "upper()"]))
        | st.builds("{}[{}]".format, VALUES, VALUES)
        | st.builds("{}[{}:{}]".format, VALUES, NUMBERS, NUMBERS)
        | st.builds("({} {} {})".format, VALUES, OPERATORS, VALUES)
        | st.builds("{} | {}".format, VALUES, st.sampled_from(sorted(FILTERS)))
        | st.builds("{} | {}({})".format, VALUES, st.sampled_from(sorted(FILTERS)), ARGUMENTS)
        | st.builds("{}.{}({})".format, VALUES, st.sampled_from(sorted(METHODS)), ARGUMENTS)
        | st.builds("({} if {} else {})".format, VALUES, VALUES, VALUES)
        | st.builds(
            "({} is {})".format, VALUES, st.sampled_from(["defined", "number", "divisibleby 0", "sameas a"])
        )
    )
)
OPERATORS = st.sampled_from(
    ["+", "-", "*", "/", "//", "%", "**", "~", "in", "==", "<", "and", "or", "not in"]
)
ARGUMENTS = st.lists(
    VALUES | st.builds("{}={}".format, st.sampled_from(["attribute", "n", "k"]), VALUES), max_size=3
).map(", ".join)
TEMPLATES = st.deferred(
    lambda: st.lists(
        st.builds("{{{{ {} }}}}".format, VALUES)
        | st.builds("{{% for x in {} %}}{}{{% endfor %}}".format, VALUES, TEMPLATES)
        | st.builds("{{% if {} %}}{}{{% else %}}-{{% endif %}}".format, VALUES, TEMPLATES)
        | NASTY_TEXT,
        max_size=3,
    ).map("".join)
)


@pytest.mark.parametrize("path", kept("templates"), ids=lambda path: path.name)
def test_templates_that_are_kept_settle(path):
    settles(case, path.read_bytes().decode("utf-8", "surrogateescape"))


@tries(20)
@given(TEMPLATES)
def test_whatever_is_written_as_a_template_settles(source):
    settles(case, source)


@tries(15)
@given(TEMPLATES, st.dictionaries(st.sampled_from(NAMES) | NASTY_TEXT, JSON_VALUES, max_size=4))
def test_whatever_it_is_given_a_template_settles(source, fields):
    settles(case, source, fields)


@tries(10)
@given(JSON_VALUES)
def test_every_json_value_is_printed_or_refused(value):
    found = settles(case, "{{ input | tojson }}", {"input": value})
    if isinstance(found, str):
        assert json.dumps(json.loads(found)) == json.dumps(value)
