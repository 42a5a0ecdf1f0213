"""What each rule judge accepts, refuses and leaves unscored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge
from winnow.tasks.judges.rules.string_match import normalise


def score_or_reason(type, output, targets, **params):
    verdict = create_judge(type, **params, no_answer="unscored").judge(Sample(output=output, targets=targets))
    return verdict.reason if verdict.score is None else verdict.score


@pytest.mark.parametrize(
    ("output", "targets", "params", "expected"),
    [
        (" 46\n", ["46"], {}, 1.0),
        (" 46\n", ["46"], {"strip": False}, 0.0),
        ("Yes", ["yes"], {}, 0.0),
        ("b", ["a", "b"], {}, 1.0),
        ("", ["a"], {}, 0.0),
        ("a", [], {}, "no_target"),
    ],
)
def test_exact_compares_characters(output, targets, params, expected):
    assert score_or_reason("exact", output, targets, **params) == expected


@pytest.mark.parametrize(
    ("output", "target", "expected"),
    [
        ("  The  Cat, sat. ", "the cat sat", 1.0),
        ("STRASSE", "straße", 1.0),
        ("ﬁne", "fine", 1.0),
        ("e\u0301t\u00e9", "\u00e9te\u0301", 1.0),
        ("a.\u0301", "\u00e1", 1.0),
        ("3.5", "35", 0.0),
        ("-5", "5", 0.0),
        ("covid-19", "covid19", 1.0),
        ("", "?", 0.0),
        ("?", "?", 1.0),
    ],
)
def test_normalised_ignores_case_punctuation_and_white_space_but_not_the_marks_of_a_number(
    output, target, expected
):
    assert score_or_reason("normalised", output, [target]) == expected


@given(st.text(st.sampled_from("aB.ß\u0301\u0323-5İﬃ \u202e_'½e\ud800") | st.characters(), max_size=12))
def test_normalising_twice_changes_nothing(text):
    assert normalise(normalise(text)) == normalise(text)


@given(st.text())
def test_exact_and_normalised_accept_a_target_as_output(text):
    assert score_or_reason("exact", f" {text}\n", [text]) == 1.0
    assert score_or_reason("normalised", f" {text.upper()}\n", [text.upper()]) == 1.0


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("first 3, then 1,234.50.", "1,234.50"),
        ("x=-5", "-5"),
        ("10-3=7", "7"),
        ("5-3", "3"),
        ("it costs -$1,000", "-$1,000"),
        ("5 −3", "-3"),
        ("about 1.5e-3", "1.5e-3"),
        (".5", ".5"),
        ("1,2345", "1,2345"),
        ("1\u202f234", "1234"),
        ("7 of H2O", "7"),
        ("it is 3/4 of it", "3/4"),
        ("50%", "50"),
        ("٣", "3"),
    ],
)
def test_numeric_reads_the_last_number(output, answer):
    assert create_judge("numeric").judge(Sample(output=output, targets=["0"])).answer == answer


@pytest.mark.parametrize(
    ("output", "targets", "params", "expected"),
    [
        ("1,234.50", ["1234.5"], {}, 1.0),
        ("-$5", ["-5"], {}, 1.0),
        ("3/4", ["0.75"], {}, 1.0),
        ("3/4", ["4"], {"fractions": False}, 1.0),
        ("#### 18", ["so it is #### 18"], {}, 1.0),
        ("3 or 4", ["3"], {"which": "first"}, 1.0),
        ("12345678901234567891", ["12345678901234567890"], {}, 0.0),
        ("1.3", ["1"], {"tolerance": 0.3}, 1.0),
        ("1.31", ["1"], {"tolerance": 0.3}, 0.0),
        ("101", ["100"], {"tolerance": 0.01, "relative": True}, 1.0),
        ("102", ["-100", "100"], {"tolerance": 0.01, "relative": True}, 0.0),
        ("none", ["1"], {}, "no_number"),
        ("5/0", ["1"], {}, "no_number"),
        ("1e999999999", ["1"], {}, "no_number"),
        ("9" * 5_000, ["1"], {}, "no_number"),
        ("1", ["one"], {}, "unreadable_target"),
        ("1", [], {}, "no_target"),
    ],
)
def test_numeric_compares_exact_values(output, targets, params, expected):
    assert score_or_reason("numeric", output, targets, **params) == expected


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=4))
def test_numeric_reads_a_number_however_it_is_formatted(value):
    for written in (f"{value}", f"{value:,}", f"{value:e}", f"{value:+.6f}"):
        assert score_or_reason("numeric", f"So the answer is {written}.", [str(value)]) == 1.0


@pytest.mark.parametrize(
    ("output", "targets", "params", "expected"),
    [
        ("is version 1.0 out", ["1.0"], {"pattern": r"version {target}\b"}, 1.0),
        ("is version 1x0 out", ["1.0"], {"pattern": r"version {target}\b"}, 0.0),
        ("answer: a answer: b", ["b"], {"pattern": r"answer: (\w)"}, 1.0),
        ("answer: a answer: b", ["a"], {"pattern": r"answer: (\w)"}, 0.0),
        ("ANSWER: B", ["b"], {"pattern": r"answer: (\w)", "ignore_case": True}, 1.0),
        ("so 12 then 13", ["13"], {"pattern": r"\d+"}, 1.0),
        ("x", ["x"], {"pattern": r"(y)?x"}, 1.0),
        ("nothing", ["a"], {"pattern": r"answer: (\w)"}, "no_answer"),
        ("I cannot help you", ["refusal"], {"pattern": "I can(?:no|')t help"}, 1.0),
        ("Sure", ["refusal"], {"pattern": "I can(?:no|')t help"}, 0.0),
        ("I cannot help you", ["refusal"], {"pattern": "(I can(?:no|')t help)"}, 0.0),
        ("2024-05-03", ["a date"], {"pattern": r"^\d{4}-\d\d-\d\d$"}, 1.0),
        ("It is 7.", ["1,234"], {"pattern": r"\d+"}, 0.0),
        ("yes", ["Yes"], {"pattern": "yes|no"}, 0.0),
        ("a", [], {"pattern": "a"}, "no_target"),
        ("a", ["1"], {"pattern": r"\{target}"}, "unreadable_target"),
        ("a" * 5_000, ["c"], {"pattern": r"(a+)+b"}, "pattern_timeout"),
        ("a" * 5_000, ["c"], {"pattern": r"(a+)+{target}"}, "pattern_timeout"),
    ],
)
def test_regex_is_found_or_what_it_captures_last_is_a_target(monkeypatch, output, targets, params, expected):
    for module in ("text.patterns", "judges.rules.regex"):
        monkeypatch.setattr(f"winnow.tasks.{module}.TIMEOUT_SECONDS", 0.1)
    assert score_or_reason("regex", output, targets, **params) == expected


@pytest.mark.parametrize(
    ("output", "choice"),
    [
        ("B", "B"),
        (" **b**\n", "B"),
        ("The answer is (B).", "B"),
        ("the answer is a number", None),
        ("Answer: b", "B"),
        ('{"answer": "B"}', "B"),
        (r"so \boxed{\text{B}} it is", "B"),
        ("The correct option is B because A is not", "B"),
        ("A. Paris\nB. London\nThe answer is B. A is wrong", "B"),
        ("The answer is A. No, wait.\n\nB", "B"),
        ("The answer is A. On reflection, the answer is B.", "B"),
        ("B) London", "B"),
        ("I think it's (b)", "B"),
        ("A dog, so B", "B"),
        ("the answer is not B, it is C", "C"),
        ("A) x\nB) y", None),
        ("The answer is Bob", None),
        ("", None),
    ],
)
def test_choice_takes_what_is_stated_last(output, choice):
    verdict = create_judge("choice").judge(Sample(output=output, targets=["(b)"]))
    assert (verdict.answer, verdict.score, verdict.no_answer) == (
        choice,
        float(choice == "B"),
        choice is None,
    )


@pytest.mark.parametrize(
    ("output", "targets", "params", "expected"),
    [
        ("well, Yes!", ["yes"], {"options": ["yes", "no"]}, 1.0),
        ("answer: no", ["yes"], {"options": ["yes", "no"]}, 0.0),
        ("The answer is (F)", ["F"], {"options": ["E", "F"]}, 1.0),
        ("I.", ["i"], {"options": ["I", "A"]}, 1.0),
        ("answer: ı.", ["I"], {"options": ["I", "A"]}, "no_choice"),
        ("a|b", ["a|b"], {"options": ["a|b", "c"]}, 1.0),
        ("B", ["(B)"], {"options": ["(A)", "(B)"]}, 1.0),
        ("The answer is (B).", ["B."], {"options": ["A.", "B."]}, 1.0),
        ("False. That it is true is a myth.", ["false"], {"options": ["true", "false"]}, 1.0),
        ("True.\n\nIt would be false if it rained.", ["true"], {"options": ["true", "false"]}, 1.0),
        (
            "It is false because it is true of dogs only.",
            ["false"],
            {"options": ["true", "false"]},
            "no_choice",
        ),
        (
            "The claim is false because it is true of dogs only.",
            ["false"],
            {"options": ["true", "false"]},
            1.0,
        ),
        (
            "This statement is true. It would be false otherwise.",
            ["true"],
            {"options": ["true", "false"]},
            1.0,
        ),
        ("The claim is true of dogs. So it is false.", ["false"], {"options": ["true", "false"]}, 1.0),
        ("True. Wait, it is false.", ["false"], {"options": ["true", "false"]}, 1.0),
        ("Yes, it rained. So the answer is no.", ["no"], {"options": ["yes", "no"]}, 1.0),
        ("The sentiment is overwhelmingly bad.", ["bad"], {"options": ["good", "bad"]}, 1.0),
        ("b. dogs", ["B"], {}, 1.0),
        ("I choose option b because it is right.", ["B"], {}, 1.0),
        ("The answer isn't Paris (B); it's London (A).", ["A"], {}, 1.0),
        ("A", ["F"], {}, "unreadable_target"),
        ("A", [], {}, "no_target"),
    ],
)
def test_choice_knows_only_its_options(output, targets, params, expected):
    assert score_or_reason("choice", output, targets, **params) == expected


@pytest.mark.parametrize(
    ("output", "targets", "params", "expected"),
    [
        ("red and blue", ["green", "blue"], {}, 1.0),
        ("red and blue", ["green", "blue"], {"match": "all"}, 0.0),
        ("red and blue", ["red", "blue"], {"match": "all"}, 1.0),
        ("Red", ["red"], {}, 0.0),
        ("Red", ["red"], {"ignore_case": True}, 1.0),
        ("red", ["", "blue"], {}, "unreadable_target"),
        ("red", [], {}, "no_target"),
    ],
)
def test_contains_looks_for_any_or_all_targets(output, targets, params, expected):
    assert score_or_reason("contains", output, targets, **params) == expected
