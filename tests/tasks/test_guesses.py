"""Guesses about data files: columns, the judge, a prompt; and the text of the file that holds them."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from winnow.tasks.errors import SpecError
from winnow.tasks.setup.guesses import columns_of, first_rows, judge_for, prompt_for
from winnow.tasks.setup.written_files import campaign_text


def guessed(*rows, given=None, target=None):
    found = columns_of(rows, "d.csv", given, target)
    return found.input, found.target, found.id


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({"text": "a b c", "label": "x"}, ("text", "label", None)),
        ({"Question": "why?", "Answer": "so"}, ("Question", "Answer", None)),
        ({"id": "1", "label": "x", "mail": "a long text"}, ("mail", "label", "id")),
        ({"mail": "a long text", "team": "x"}, ("mail", "team", None)),
        ({"lang": "de", "question": "why?", "answer": "so"}, ("question", "answer", None)),
    ],
)
def test_columns_are_known_by_their_names_and_else_by_what_they_hold(row, found):
    assert guessed(row) == found


def test_columns_that_are_given_are_taken():
    row = {"text": "a", "label": "b", "body": "c", "class": "d"}
    assert guessed(row, given="body", target="class") == ("body", "class", None)
    assert guessed(row, given="label") == ("label", "class", None)


def test_an_id_that_is_not_of_one_row_alone_is_none():
    rows = [{"id": "1", "text": "a", "label": "x"}, {"id": "1", "text": "b", "label": "y"}]
    assert guessed(*rows) == ("text", "label", None)


@pytest.mark.parametrize(
    ("row", "options", "said"),
    [
        (
            {"text": "a", "label": "b"},
            {"given": "txt"},
            "--input: unknown column 'txt'; did you mean 'text'?",
        ),
        ({"text": "a", "label": "b"}, {"target": "labels"}, "did you mean 'label'?"),
        ({"text": "a"}, {}, "no column that looks like the target (its columns: text); name one by --target"),
        ({"label": "a"}, {}, "no column that can be the input; name it by --input COLUMN"),
        ({"text": "a", "p": "b", "q": "c"}, {}, "no column that looks like the target"),
    ],
)
def test_what_cannot_be_guessed_is_asked_for(row, options, said):
    with pytest.raises(SpecError) as caught:
        guessed(row, **options)
    assert said in str(caught.value)


def test_a_file_without_rows_is_refused(tmp_path):
    (tmp_path / "d.csv").write_text("text,label\n")
    with pytest.raises(SpecError, match=r"has no rows; name a file that has examples"):
        first_rows(str(tmp_path / "d.csv"))


@pytest.mark.parametrize(
    ("targets", "judge"),
    [
        (["a", "b"] * 4, "normalised"),
        (["1", "2.5", "1,000"], "numeric"),
        (["Paris", "Rome", "London"], "normalised"),
        (["a sentence of many words that can be said in other ways as well, as a summary can " * 2], "f1"),
        ([], "normalised"),
    ],
)
def test_the_judge_follows_from_the_targets(targets, judge):
    assert judge_for([[each] for each in targets])[0] == judge


def test_a_guessed_prompt_names_the_labels():
    assert prompt_for("text", [["b"], ["a"]] * 3) == "{{ text }}\n\nAnswer with one of these alone: a, b."
    assert prompt_for("text", [["1"], ["2"], ["3"]]) == "{{ text }}"


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r\x85\u2028\u2029\ufeff"), max_size=30)


@given(
    st.dictionaries(
        st.sampled_from(["name", "prompts", "judge", "models", "n"]),
        TEXTS | st.integers() | st.lists(st.dictionaries(st.sampled_from("abc"), TEXTS), min_size=1),
        min_size=1,
    )
)
def test_a_written_file_is_read_back_as_it_was(values):
    assert yaml.safe_load(campaign_text(values, ["comment"])) == values


def test_a_text_of_several_lines_is_written_as_lines():
    text = campaign_text({"prompts": [{"name": "p", "template": "one\n\n{{ two }}"}]})
    assert text == "prompts:\n  - name: p\n    template: |-\n      one\n\n      {{ two }}\n".replace(
        "\n\n      {{", "\n  \n      {{"
    )
