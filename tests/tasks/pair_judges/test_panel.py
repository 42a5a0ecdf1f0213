"""Which calls an LLM judge wants, when, and what it keeps of them."""

import pytest
from scripted_judges import BROKEN, MODEL, duel, outcome, panel, play

from winnow.tasks.engines.protocol import Completion, Request, Sampling
from winnow.tasks.judges.asking.calls import JudgeReply
from winnow.tasks.judges.registry import create_pair_judge


def prefers(text):
    """A judge that finds this answer better, wherever it stands."""

    def say(call):
        return "[[A]]" if call.prompt.index(text) < call.prompt.index("other") else "[[B]]"

    return say


def test_both_orders_are_asked_at_once_and_turned_back():
    this = duel("good", "other")
    verdict, batches = play(panel(), this, prefers("good"))
    assert [[call.presentation_order for call in batch] for batch in batches] == [["original", "swapped"]]
    assert verdict.score == 1.0
    assert [(each.call.presentation_order, each.score) for each in verdict.replies] == [
        ("original", 1.0),
        ("swapped", 1.0),
    ]
    assert outcome(panel(), duel("other", "good"), prefers("good")) == 0.0


def test_the_prompts_of_a_duel_are_those_of_its_mirror_image():
    def prompts(this):
        return {call.presentation_order: call.prompt for call in panel().calls(this, {})}

    ours, mirrored = prompts(duel("x", "y", seed=1)), prompts(duel("y", "x", seed=2))
    assert (ours["original"], ours["swapped"]) == (mirrored["swapped"], mirrored["original"])


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_only_a_judgment_without_a_verdict_is_asked_again_and_differently(temperature):
    def say(call):
        return "[[A]]" if call.presentation_order == "original" or call.attempt == 2 else "hm"

    verdict, batches = play(panel(max_reasks=3, temperature=temperature), duel(), say)
    assert [[(c.presentation_order, c.attempt) for c in batch] for batch in batches] == [
        [("original", 0), ("swapped", 0)],
        [("swapped", 1)],
        [("swapped", 2)],
    ]
    first, again, last = batches[0][1], batches[1][0], batches[2][0]
    keys = {(call.prompt, call.seed) for call in (first, again, last)}
    assert len(keys) == 3
    assert (again.prompt == first.prompt) == (temperature > 0.0)
    assert (again.seed is None) == (temperature == 0.0)
    assert verdict.score == 0.5
    assert [(each.call.attempt, each.reason) for each in verdict.replies] == [
        *((0, None), (0, "verdict_missing"), (1, "verdict_missing")),
        (2, None),
    ]


def test_asking_again_is_bounded_and_silence_is_not_a_tie():
    verdict, batches = play(panel(max_reasks=2), duel(), lambda call: "hm")
    assert [len(batch) for batch in batches] == [2, 2, 2]
    assert (verdict.score, verdict.reason, verdict.answer) == (
        *(None, "verdict_missing"),
        "j1: verdict_missing",
    )


def test_a_failed_call_is_not_repeated_and_its_reason_is_the_duels():
    def say(call):
        return BROKEN if call.presentation_order == "swapped" else "[[A]]"

    verdict, batches = play(panel(max_reasks=2), duel(), say)
    assert (verdict.reason, len(batches)) == ("engine_failed", 1)
    assert [each.reason for each in verdict.replies] == [None, "engine_failed"]


def test_a_judge_that_fails_leaves_the_others_to_decide():
    def say(call):
        return BROKEN if call.judge == "j2" else prefers("good")(call)

    verdict, _ = play(panel("j1", "j2", "j3", min_valid_judges=2), duel("good", "other"), say)
    assert (verdict.score, verdict.answer) == (1.0, "j1: A; j2: engine_failed; j3: A")
    assert len(verdict.replies) == 6


def test_repeats_have_seeds_of_their_own_and_are_aggregated():
    def say(call):
        return {0: "[[C]]", 1: prefers("good")(call), 2: prefers("good")(call)}[call.repeat]

    judge = panel(repeats=3, temperature=1.0)
    verdict, (batch,) = play(judge, duel("good", "other"), say)
    assert len({call.seed for call in batch}) == len(batch) == 6
    assert verdict.score == 1.0
    assert outcome(panel(repeats=3, temperature=1.0, aggregation="mean"), duel("good", "other"), say) == (
        pytest.approx(2.5 / 3)
    )


def test_a_repeat_without_both_orders_does_not_count():
    def say(call):
        if call.repeat == 0:
            return "hm" if call.presentation_order == "swapped" else "[[B]]"
        return prefers("good")(call)

    assert outcome(panel(repeats=2, temperature=1.0), duel("good", "other"), say) == 1.0


def test_the_same_answer_twice_is_a_tie_and_no_model_is_asked():
    verdict, batches = play(panel(), duel("same", "same"), lambda call: BROKEN)
    assert (verdict.score, batches, verdict.replies) == (0.5, [], ())


def test_calls_survive_a_restart_and_follow_the_duels_seed():
    judge, again = panel(temperature=1.0), panel(temperature=1.0)
    calls = judge.calls(duel(), {})
    assert calls == again.calls(duel(), {})
    assert again.calls(duel(), {calls[0]: JudgeReply(text="[[A]]")}) == calls[1:]
    assert not set(calls) & set(judge.calls(duel(seed=8), {}))
    for call in calls:
        Request(prompt=call.prompt, sampling=call.sampling, seed=call.seed)


def test_a_verdict_before_its_time_is_refused():
    with pytest.raises(ValueError, match="judge 'j1' has not replied yet"):
        panel().judge(duel())


@pytest.mark.parametrize("read", ["choice", "probabilities"])
def test_choices_are_passed_on_and_read_back(read):
    judge = panel(template="arena-hard", read=read)
    call, _ = judge.calls(duel(), {})
    assert call.sampling.choices == ("[[A>>B]]", "[[A>B]]", "[[A=B]]", "[[B>A]]", "[[B>>A]]")
    assert "Reply with exactly one of these and nothing else" in call.prompt
    likely = {"original": "[[A>>B]]", "swapped": "[[B>A]]"}

    def say(call):
        text = likely[call.presentation_order]
        return Completion(
            text=text,
            finish_reason="stop",
            input_tokens=1,
            output_tokens=1,
            seconds=0.0,
            choice_logprobs=dict.fromkeys(call.sampling.choices, -50.0) | {text: -0.1},
        )

    assert outcome(judge, duel(), say) == pytest.approx(1.0)
    if read == "choice":
        assert play(judge, duel(), lambda call: "[[A]]")[0].reason == "verdict_missing"


def test_a_prompt_that_cannot_be_made_leaves_the_duel_unscored():
    judge = panel(template="{{ answer_a }} {{ answer_b }} {{ metadata.level }}", verdict_format="[[A]]")
    assert judge.judge(duel()).reason == "prompt_failed"
    assert judge.calls(duel(), {}) == ()
    assert len(judge.calls(duel(fields={"level": 3}), {})) == 2
    long = panel().judge(duel("a" * 2_000_000))
    assert (long.reason, "longer than" in long.answer) == ("prompt_failed", True)


def test_a_models_own_settings_take_the_place_of_the_judges():
    own = {**MODEL, "generate_config": {"temperature": 0.5, "top_p": 0.9}, "judge_id": "own"}
    judge = create_pair_judge("llm", models=[MODEL, own], max_tokens=99)
    plain, _, special, _ = judge.calls(duel(), {})
    assert (plain.judge, plain.sampling) == ("m", Sampling(max_tokens=99))
    assert special.sampling == Sampling(temperature=0.5, top_p=0.9, max_tokens=99)
    assert [ref.model for ref in judge.models] == ["owner/judge"] * 2


@pytest.mark.parametrize(
    ("params", "is_deterministic"),
    [
        ({}, True),
        ({"read": "choice"}, True),
        ({"order_aggregation": "mean", "max_reasks": 0}, True),
        ({"temperature": 0.5}, False),
        ({"position_swap": False}, False),
    ],
)
def test_greedy_judges_that_see_both_orders_always_say_the_same(params, is_deterministic):
    assert panel("j1", "j2", **params).is_deterministic == is_deterministic


def test_one_judge_that_samples_makes_the_panel_random():
    warm = {**MODEL, "name": "another", "judge_id": "j2", "generate_config": {"temperature": 1.0}}
    judge = create_pair_judge("llm", models=[{**MODEL, "judge_id": "j1"}, warm])
    assert not judge.is_deterministic
