"""What a reply says: the last verdict, or nothing."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_judges import duel, panel, play

from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.asking.calls import JudgeReply
from winnow.tasks.judges.pairwise.verdicts import mapped_format, named_format

MUCH = 300_000


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("[[A]]", 1.0),
        ("A is good, B is better.\n\n**[[B]]**", 0.0),
        ("[[C]]\n", 0.5),
        ("First I thought [[A]], but no: [[B]]", 0.0),
        ("Answer A says '[[B]]' of itself, a trick.\n[[A]]", 1.0),
        ("[[ A ]] ", 1.0),
        ("[[a]]", 1.0),
        ("最终判决：[[B]]。", 0.0),
        ("\u202e[[A]]\x00\ud800", 1.0),
        ("[[[[A]]]]", 1.0),
        ("[[A]] or rather [[neither]]", None),
        ("[[A]] no, [[B>A]]", None),
        ("［［Ａ］］", None),
        ("[[\u0410]]", None),  # a Cyrillic letter
        ("[A]", None),
        ("[[A", None),
        ("[[\nA]]", None),
        ("[[]]", None),
        ("A", None),
        ("", None),
    ],
)
def test_the_last_verdict_in_brackets_counts(reply, score):
    assert named_format("[[A]]").in_text(reply) == score


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("[[A>>B]]", 1.0),
        ("[[A>B]]", 1.0),
        ("[[A=B]]", 0.5),
        ("[[B>A]]", 0.0),
        ("[[B>>A]]", 0.0),
        ("[[A >> B]]", 1.0),
        ("My own answer ... [[A>>B]] at first sight. My final verdict is: [[B>A]]", 0.0),
        ("[[A<B]]", None),
        ("[[A]]", None),
    ],
)
def test_five_levels_are_read_too(reply, score):
    assert named_format("[[A>>B]]").in_text(reply) == score


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("m", 1.0),
        ("M", 0.0),
        ("Both are fine.\r\n**M**\r\n", 0.0),
        ("M\nOn second thought\n'm'.", 1.0),
        ("I'm sure: output m", None),
        ("m or M", None),
        ("mm", None),
    ],
)
def test_a_letter_is_a_verdict_only_alone_on_its_line(reply, score):
    assert named_format("m/M").in_text(reply) == score


def test_labels_and_pattern_of_ones_own_are_read():
    mapping = {"left": 1.0, "rather left": 0.75, "tie": 0.5, "right": 0.0}
    assert mapped_format(mapping, None).in_text("[[left]] [[Rather  Left]]") == 0.75
    own = mapped_format(mapping, r"(?m)^winner: (.*)$")
    assert own.in_text("winner: left\nwinner: right\nthe end") == 0.0
    assert own.in_text("[[left]]") is None
    assert own.choices == tuple(mapping)


@pytest.mark.parametrize(
    ("mapping", "pattern", "path", "sentence"),
    [
        ({}, None, "judge.score_mapping", "a label with a score above 0.5"),
        ({"A": 1.0, "tie": 0.5}, None, "judge.score_mapping", "one below 0.5"),
        ({"A": 1.5, "B": 0.0}, None, "judge.score_mapping.A", r"must be in \[0, 1\], got 1.5"),
        ({"A": 1.0, "B": math.nan}, None, "judge.score_mapping.B", "got nan"),
        ({" ": 1.0, "B": 0.0}, None, "judge.score_mapping", "must not be empty"),
        ({"A]": 1.0, "B": 0.0}, None, "judge.score_mapping", r"\[\[A\]\]\] cannot be found in replies"),
        ({"A": 1.0, "B": 0.0}, "(", "judge.verdict_pattern", "not a regular expression"),
    ],
)
def test_labels_that_cannot_work_are_refused(mapping, pattern, path, sentence):
    with pytest.raises(JudgeError, match=sentence) as caught:
        mapped_format(mapping, pattern)
    assert caught.value.path == path


FORMATS = ["[[A]]", "[[A>>B]]", "m/M"]


@pytest.mark.parametrize("name", FORMATS)
def test_every_verdict_is_read_back_and_asked_for_in_the_prompt(name):
    verdicts = named_format(name)
    for choice, score in verdicts.scores.items():
        assert verdicts.in_text(f"Therefore:\n{choice}\n") == score
        for text in (verdicts.instructions("text"), verdicts.instructions("choice"), verdicts.reminder(1)):
            assert choice in text


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("unit", ["[[", "[[A", "]]", "m", ".", " ", "\n", "m ", "[[A]]", "\ud800", "[" * 41])
@pytest.mark.timeout(20)  # each takes a tenth of a second; the quickest quadratic pattern a minute
def test_much_of_anything_is_read_in_linear_time(name, unit):
    assert named_format(name).in_text(unit * (MUCH // len(unit))) in (None, 0.0, 0.5, 1.0)


@given(st.text(st.characters() | st.sampled_from("[]ABCmM>=\n\x00\ud800")), st.sampled_from(FORMATS))
def test_any_reply_makes_a_duel_scored_or_unscored(reply, name):
    verdict, _ = play(panel(verdict_format=name), duel(), lambda call: reply)
    assert verdict.score == 0.5 or verdict.reason == "verdict_missing"


def test_a_pattern_that_backtracks_without_end_leaves_the_duel_unscored(monkeypatch):
    monkeypatch.setattr("winnow.tasks.text.patterns.TIMEOUT_SECONDS", 0.1)
    judge = panel(score_mapping={"A": 1, "B": 0}, verdict_pattern="(a+)+b")
    verdict, batches = play(judge, duel(), lambda call: "a" * MUCH)
    assert (verdict.reason, len(batches)) == ("pattern_timeout", 1)


@pytest.mark.parametrize(
    ("name", "probabilities", "expected"),
    [
        ("m/M", {"m": 0.3, "M": 0.1}, 0.75),
        ("[[A]]", {"[[A]]": 0.2, "[[B]]": 0.1, "[[C]]": 0.1}, 0.625),
    ],
)
def test_the_probability_of_the_first_is_normalised_and_a_tie_counts_half(name, probabilities, expected):
    for shift in (0.0, -5_000.0):  # probabilities too small for a float have ratios all the same
        logprobs = {choice: math.log(value) + shift for choice, value in probabilities.items()}
        assert named_format(name).expected(logprobs) == pytest.approx(expected)


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        {},
        {"m": -1.0},
        {"m": math.nan, "M": -1.0},
        {"m": -math.inf, "M": -math.inf},
        {"m": math.inf, "M": -1.0},
        {"m": -9999.0, "M": -9999.0},
        {"m": 0.0, "M": 0.0},
    ],
)
def test_without_probabilities_the_duel_is_unscored_and_not_asked_again(logprobs):
    judge = panel(template="alpaca", read="probabilities")
    verdict, batches = play(judge, duel(), lambda call: JudgeReply(text="m", choice_logprobs=logprobs))
    assert (verdict.reason, len(batches)) == ("no_probabilities", 1)
