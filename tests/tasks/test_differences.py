"""What changed between two definitions is shown key by key, and so that the change can be seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.tasks.setup.definition_changes import SHOWN, Difference, differences

JSON = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("abc"), inner)
        | st.lists(st.fixed_dictionaries({"name": st.sampled_from("xyz"), "b": inner}), max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
def test_nothing_differs_from_itself(value):
    assert differences(value, value) == []


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"a": 1}, {"a": 2}, [("a", "1", "2")]),
        ({"a": {"b": "x"}}, {"a": {"b": "y"}}, [("a.b", "'x'", "'y'")]),
        ({"a": [{"b": 1}, 2]}, {"a": [{"b": 3}, 2]}, [("a[0].b", "1", "3")]),
        ({"a": [1]}, {"a": [1, 2]}, [("a", "[1]", "[1, 2]")]),
        ({"a": 1}, {"b": 1}, [("a", "1", "None"), ("b", "None", "1")]),
        ({"a": None}, {}, []),
        ({"a": {"b": 1}}, {"a": [1]}, [("a", "{'b': 1}", "[1]")]),
        ({"a": {"b": 1}}, {}, [("a", "{'b': 1}", "None")]),
        ({"a": []}, {}, [("a", "[]", "None")]),
        ({"a": [{"name": "x", "b": 1}]}, {"a": [{"name": "x", "b": 2}]}, [("a[x].b", "1", "2")]),
        (
            {"a": [{"name": "x"}, {"name": "y", "b": 1}]},
            {"a": [{"name": "y", "b": 2}, {"name": "z"}]},
            [("a[x]", "{'name': 'x'}", None), ("a[y].b", "1", "2"), ("a[z]", None, "{'name': 'z'}")],
        ),
        (
            {"a": [{"name": "x"}, {"name": "y"}]},
            {"a": [{"name": "y"}, {"name": "x"}]},
            [("a", "['x', 'y']", "['y', 'x']")],
        ),
        (
            {"a": [{"name": "x"}, {"name": "x"}]},
            {"a": [{"name": "x"}, {"name": "y"}]},
            [("a[1].name", "'x'", "'y'")],
        ),
        ({"a": [{"name": "x"}]}, {}, [("a[x]", "{'name': 'x'}", None)]),
        ({"a": [{"name": "x"}]}, {"a": [1]}, [("a[0]", "{'name': 'x'}", "1")]),
        ({"z": 1, "a": 1}, {"z": 2, "a": 2}, [("a", "1", "2"), ("z", "1", "2")]),
    ],
)
def test_every_changed_key_is_listed_with_both_values(before, after, found):
    assert differences(before, after) == [Difference(*each) for each in found]


@given(JSON, JSON)
def test_differences_are_the_same_seen_from_the_other_side(before, after):
    mirrored = [(key, new, old) for key, old, new in differences(after, before)]
    assert [tuple(each) for each in differences(before, after)] == mirrored


@given(st.text(min_size=100), st.integers(0, 99), st.text("0123456789abcdef", max_size=40))
def test_a_long_value_is_cut_to_where_it_differs(text, place, insertion):
    before, after = {"template": text}, {"template": text[:place] + "→" + insertion + text[place + 1 :]}
    for _, old, new in differences(before, after):
        assert max(len(old), len(new)) <= SHOWN
        assert old != new


def test_a_cut_value_has_dots_where_it_was_cut():
    [(_, old, new)] = differences("x" * 200 + "old" + "y" * 200, "x" * 200 + "new" + "y" * 200)
    assert old.startswith("...x")
    assert old.endswith("y...")
    assert ("xold" in old, "xnew" in new) == (True, True)


def test_a_thing_with_a_name_is_new_or_gone_in_a_line():
    assert Difference("models[a]", None, "{}").line == "models[a] is new"
    assert Difference("models[a]", "{}", None).line == "models[a] is gone"
    assert Difference("models[a].model", "'x'", "'y'").line == "models[a].model: 'x' -> 'y'"
