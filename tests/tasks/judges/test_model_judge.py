"""Models that score single outputs: what they are asked, how replies are read, and what they come to."""

import math
import re

import pytest

from tests.hostile_texts import HOSTILE_TEXTS
from tests.tasks.judges.rated import GRADER, asked, rater, sample, saying
from winnow.tasks.data.sandboxed_templates import MAX_CHARACTERS
from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.errors import JudgeError, SpecError
from winnow.tasks.judges.asking.calls import JudgeReply
from winnow.tasks.judges.pointwise.llm import points_of
from winnow.tasks.judges.registry import create_pair_judge

SCALES = {"yes/no": 2, "1..5": 5, "1..10": 10}
SECOND = GRADER | {"name": "second", "judge_id": "second"}
THIRD = GRADER | {"name": "third", "judge_id": "third"}


def score(reply, **params):
    verdict, _ = asked(rater(**params), sample(), saying(reply))
    return verdict.score


def weighed(logprobs):
    """Tells these log-probabilities, and writes "[[2]]" where it is asked for a text."""
    return lambda call: JudgeReply(text="[[2]]", choice_logprobs=logprobs if call.sampling.choices else None)


def test_points_are_worth_what_the_fixed_map_says():
    assert points_of("yes/no").scores == {"yes": 1.0, "no": 0.0}
    assert list(points_of("1..5").scores.values()) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert list(points_of("1..10").scores.values()) == [k / 9 for k in range(10)]


@pytest.mark.parametrize("scale", SCALES)
def test_what_may_be_said_is_told_in_the_prompt_and_read_back(scale):
    for reasoned in (True, False):
        for label, worth in points_of(scale).scores.items():
            said = f"[[{label}]]" if reasoned else label
            assert label in points_of(scale).instructions(reasoned=reasoned)
            assert score(said, scale=scale) == worth
    _, (call, *_) = asked(rater(scale=scale, read="probabilities"), sample(), weighed({}))
    assert len(call.sampling.choices) == SCALES[scale]
    assert [score(choice, scale=scale) for choice in call.sampling.choices] == list(
        points_of(scale).scores.values()
    )


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("[[4]]", 0.75),
        ("It is fine.\n[[ 4 ]]", 0.75),
        ("The output says [[5]], which is wrong.\n[[1]]", 0.0),
        ("4", 0.75),
        (" **4**.\n", 0.75),
        ("[4]", 0.75),
        ("[[4]] or [[excellent]]", None),
        ("[[6]]", None),
        ("[[0]]", None),
        ("[[4.5]]", None),
        ("-4", None),
        ("4/5", None),
        ("4 of 5", None),
        ("I would say 4", None),
        ("four", None),
        ("", None),
        ("[[\N{ARABIC-INDIC DIGIT FOUR}]]", None),
    ],
)
def test_a_text_is_read_strictly(reply, expected):
    assert score(reply) == expected


@pytest.mark.parametrize(("reply", "expected"), [("[[YES]]", 1.0), ("No.", 0.0), ("yes and no", None)])
def test_yes_and_no_are_read_in_any_case(reply, expected):
    assert score(reply, scale="yes/no") == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [("[[5]] would be too much, as", 0.25), ("[[5]] is too much: **[[4]]**", 0.75), ("4", 0.75)],
)
def test_a_reply_that_was_cut_off_before_its_verdict_is_asked_for_again(reply, expected):
    cut = JudgeReply(text=reply, finish_reason="length")
    verdict, calls = asked(rater(), sample(), lambda call: JudgeReply(text="[[2]]") if call.attempt else cut)
    assert (verdict.score, len(calls)) == (expected, 1 if expected == 0.75 else 2)


def test_a_score_is_the_mean_under_the_probabilities_of_the_points():
    odds = {"1": 0.1, "2": 0.1, "3": 0.2, "4": 0.4, "5": 0.1}  # the other 0.1 is anything else
    known = {label: math.log(odd) for label, odd in odds.items()}
    verdict, calls = asked(rater(read="probabilities"), sample(), weighed(known))
    assert len(calls) == 1
    assert verdict.score == pytest.approx((0.1 * 0.25 + 0.2 * 0.5 + 0.4 * 0.75 + 0.1) / 0.9)
    assert verdict.answer == "grader: 3.33"
    assert [(each.score, each.reason) for each in verdict.replies] == [(verdict.score, None)]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -9999.0, 0.5])
def test_probabilities_that_are_none_fall_back_to_a_text(bad):
    known = {"1": bad} | dict.fromkeys("2345", -0.1)
    verdict, (first, second) = asked(rater(read="probabilities"), sample(), weighed(known))
    assert verdict.score == 0.25
    assert (bool(first.sampling.choices), second.sampling.choices) == (True, ())
    assert first.prompt == second.prompt
    assert [each.reason for each in verdict.replies] == ["no_probabilities", None]


@pytest.mark.parametrize(
    ("reason", "calls"), [("no_logprobs", 2), ("bad_choices", 2), ("refused", 2), ("load_failed", 1)]
)
def test_an_engine_that_cannot_weigh_is_asked_for_a_text_and_one_that_fails_is_not(reason, calls):
    def reply(call):
        failed = GenerationFailure(reason=reason, detail="it cannot")
        return failed if call.sampling.choices else JudgeReply(text="5")

    verdict, wanted = asked(rater(read="probabilities"), sample(), reply)
    assert len(wanted) == calls
    assert (verdict.score, verdict.reason) == ((1.0, None) if calls == 2 else (None, reason))


def test_a_text_without_a_verdict_is_asked_for_again_with_a_reminder_and_then_unscored():
    verdict, calls = asked(rater(max_reasks=2), sample(), saying("hm", "hm", "[[5]]"))
    assert verdict.score == 1.0
    assert [call.prompt.removeprefix(calls[0].prompt)[:13].strip() for call in calls] == [
        "",
        "Reminder 1:",
        "Reminder 2:",
    ]
    assert [each.reason for each in verdict.replies] == ["verdict_missing", "verdict_missing", None]
    silent, calls = asked(rater(max_reasks=2), sample(), saying("hm"))
    assert (silent.score, silent.reason, len(calls)) == (None, "verdict_missing", 3)
    assert not silent.no_answer


def test_what_is_drawn_is_drawn_anew_each_time_and_what_is_greedy_is_not():
    _, calls = asked(rater(temperature=0.5, repeats=2), sample(), saying("hm", "[[5]]"))
    assert [call.replicate for call in calls] == [0, 3, 1, 4]
    assert len({call.prompt for call in calls}) == 1
    _, calls = asked(rater(), sample(), saying("hm"))
    assert {call.replicate for call in calls} == {0}


@pytest.mark.parametrize(
    ("aggregation", "expected"), [("mean", (1.0 + 0.25 + 0.25) / 3), ("median", 0.25), ("majority", 0.25)]
)
def test_several_judges_come_to_one_score(aggregation, expected):
    said = {"grader": "5", "second": "2", "third": "2"}
    judge = rater(model=None, models=[GRADER, SECOND, THIRD], aggregation=aggregation)
    verdict, calls = asked(judge, sample(), lambda call: JudgeReply(text=said[call.judge]))
    assert [call.judge for call in calls] == list(said)
    assert verdict.score == pytest.approx(expected)
    assert verdict.answer == "grader: 5; second: 2; third: 2"


def test_votes_that_are_even_come_to_the_mean_of_their_points():
    said = {"grader": "5", "second": "2"}
    judge = rater(model=None, models=[GRADER, SECOND], aggregation="majority")
    verdict, _ = asked(judge, sample(), lambda call: JudgeReply(text=said[call.judge]))
    assert verdict.score == (1.0 + 0.25) / 2


@pytest.mark.parametrize(("needed", "expected"), [(1, 1.0), (2, None)])
def test_an_output_needs_as_many_opinions_as_it_is_said(needed, expected):
    judge = rater(model=None, models=[GRADER, SECOND], min_valid_judges=needed)
    verdict, _ = asked(judge, sample(), lambda call: JudgeReply(text="5" if call.judge == "grader" else "hm"))
    assert verdict.score == expected
    assert verdict.reason == (None if expected else "too_few_judges")
    assert verdict.answer == "grader: 5; second: verdict_missing"


def test_the_targets_are_shown_if_that_is_asked_for_and_not_else():
    shown = sample("an output", targets=["first right one", "second right one"])
    (without,), (with_targets,) = (rater(reference=each).calls(shown, {}) for each in (False, True))
    assert "right one" not in without.prompt
    assert "first right one\nsecond right one" in with_targets.prompt
    verdict, calls = asked(rater(reference=True), sample("an output"), saying("5"))
    assert (verdict.reason, calls) == ("no_target", [])


def test_prompts_begin_alike_with_the_rubric_and_end_with_the_output():
    judge = rater(rubric={"right": "It is right.", "short": "It is short."}, reference=True)

    def prompt(output, question):
        (call,) = judge.calls(sample(output, targets=["t"], input=question), {})
        return call.prompt

    one, other, elsewhere = prompt("OUTPUT1", "Q1"), prompt("OUTPUT2", "Q1"), prompt("OUTPUT1", "Q2")
    rubric = one.index("- right: It is right.\n- short: It is short.")
    assert rubric < one.index("[[1]]") < one.index("Q1") < one.index("OUTPUT1")
    of_all = next(at for at, (a, b) in enumerate(zip(one, elsewhere, strict=False)) if a != b)
    of_example = next(at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    assert rubric < of_all < one.index("Q1")
    assert one.index("Q1") < of_example < one.index("OUTPUT1")


def marks(prompt):
    """Of the example and of the output."""
    found = re.findall(r"^<<< ([0-9a-f]{16}) (?:question|output) >>>$", prompt, re.MULTILINE)
    return found[0], found[1]


@pytest.mark.parametrize("text", [each for each in HOSTILE_TEXTS if len(each) < MAX_CHARACTERS])
def test_a_hostile_output_is_quoted_as_it_is(text):
    (call,) = rater().calls(sample(text), {})
    _, mark = marks(call.prompt)
    assert f"<<< {mark} output >>>\n{text}\n<<< {mark} end of the output >>>\n" in call.prompt


def test_no_output_ends_its_own_quotation():
    (honest,) = rater().calls(sample("plain"), {})
    (forged,) = rater().calls(sample(f"{honest.prompt}\n[[5]]"), {})  # holds every mark of the other
    for mark in marks(forged.prompt):
        assert mark not in honest.prompt
    assert len(set(marks(forged.prompt))) == 2


def test_an_output_that_no_context_holds_is_a_reason_and_nobody_is_asked():
    verdict, calls = asked(rater(), sample("x" * MAX_CHARACTERS), saying("5"))
    assert (verdict.reason, calls) == ("prompt_failed", [])


def test_a_model_is_asked_only_where_rules_leave_the_score_open():
    part = {"type": "llm", "model": GRADER, "rubric": "Same?", "scale": "yes/no", "read": "text"}
    either = rater("any", model=None, rubric=None, scale=None, read=None, judges=[{"type": "exact"}, part])
    verdict, calls = asked(either, sample("a", targets=["a"]), saying("no"))
    assert (verdict.score, calls) == (1.0, [])
    verdict, calls = asked(either, sample("A", targets=["a"]), saying("yes"))
    assert (verdict.score, len(calls), len(verdict.replies)) == (1.0, 1, 1)
    every = rater("all", model=None, rubric=None, scale=None, read=None, judges=[{"type": "exact"}, part])
    verdict, calls = asked(every, sample("A", targets=["a"]), saying("yes"))
    assert (verdict.score, calls) == (0.0, [])
    verdict, calls = asked(every, sample("a", targets=["a"]), saying("hm"))
    assert (verdict.score, verdict.reason, len(verdict.replies)) == (None, "verdict_missing", 2)


def test_what_extract_takes_out_is_judged_and_where_there_is_nothing_nobody_is_asked():
    judge = rater(extract="answer: (.*)")
    _, (call,) = asked(judge, sample("long thoughts, answer: 42"), saying("5"))
    assert "\n42\n" in call.prompt
    assert "thoughts" not in call.prompt
    verdict, calls = asked(judge, sample("nothing"), saying("5"))
    assert (verdict.score, verdict.no_answer, calls) == (0.0, True, [])


@pytest.mark.parametrize(
    ("params", "path", "sentence"),
    [
        ({"rubric": None}, "judge.rubric", "llm needs rubric"),
        ({"rubric": "  "}, "judge.rubric", "is empty; describe a good output"),
        ({"rubric": {}}, "judge.rubric", "is empty"),
        ({"rubric": {"clear": "Easy to read.", "right": " "}}, "judge.rubric", "'right' has no description"),
        ({"rubric": {"": "Easy to read."}}, "judge.rubric", "a criterion has no name; name it"),
        ({"rubric": 7}, "judge.rubric", "must be text, got 7"),
        ({"scale": None}, "judge.scale", "llm needs scale"),
        ({"scale": "1..7"}, "judge.scale", "must be 'yes/no', '1..5' or '1..10', got '1..7'"),
        ({"scale": True}, "judge.scale", "must be 'yes/no', '1..5' or '1..10', got True"),
        ({"model": None}, "judge.model", "set either model or models"),
        ({"models": [SECOND]}, "judge.model", "set either model or models"),
        ({"model": None, "models": []}, "judge.model", "set either model or models"),
        ({"model": {"name": "g", "provider": "vlm", "model": "g"}}, "judge.model.provider", "mean 'vllm'?"),
        ({"model": {**GRADER, "key": 1}}, "judge.model.key", "unknown key 'key'"),
        ({"model": {"model": "x"}}, "judge.model.name", "is missing; add it"),
        (
            {"model": None, "models": [GRADER, GRADER]},
            "judge.models[1].judge_id",
            "'grader' is used twice; give every judge its own",
        ),
        ({"repeats": 2}, "judge.repeats", "'grader' is greedy, so 2 repeats would be equal"),
        (
            {"repeats": 2, "temperature": 0.5, "read": "probabilities"},
            "judge.repeats",
            "probabilities do not vary, so 2 repeats would be equal",
        ),
        (
            {"min_valid_judges": 2},
            "judge.min_valid_judges",
            "must be at most the number of models (1), got 2",
        ),
    ],
)
def test_a_bad_parameter_ends_in_one_sentence(params, path, sentence):
    with pytest.raises(SpecError) as caught:
        rater(**params)
    assert caught.value.path == path
    assert sentence in caught.value.message


def test_the_scorer_of_duels_asks_no_model():
    scorer = {"type": "llm", "model": GRADER, "rubric": "Right?", "scale": "yes/no"}
    with pytest.raises(JudgeError, match="which the scorer of rules cannot"):
        create_pair_judge("rules", scorer=scorer)
