"""What judges ask models and how they judge, as it was when `asked.json` was made: it is never made again.

Requests are stored under keys that are digests of what is asked, and a campaign that goes on finds its
replies by them.
"""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.judges.asking.calls import JudgeReply
from winnow.tasks.judges.protocol import Duel, Sample
from winnow.tasks.judges.registry import create_judge, create_pair_judge, judge_code, pair_judge_code
from winnow.tasks.rounds.judge_calls import plan_judge_call

GOLDEN = json.loads((Path(__file__).parent / "asked.json").read_text())
WEIGHTS = {name: f"weights of {name}" for name in "mno"}
SAID = [
    *("[[A]]", "[[B]]", "[[C]]", "hm", "[[A>>B]]", "[[B>A]]", "[[3]]", "[[5]]", "[[yes]]", "[[no]]", "no"),
    *("GRADE: C", "GRADE: P", "[[first]]", "[[second]]", "m", "M", ""),
]


def digest(*parts):
    return sha256(json.dumps(parts).encode()).hexdigest()


def reply(call):
    """Something that follows from the call alone: mostly a verdict that fits, and faults of every kind."""
    n = int(digest(call.prompt, call.judge, call.repeat, call.attempt)[:8], 16)
    if n % 11 == 0:
        return GenerationFailure(reason="engine_failed", detail="gone")
    if labels := call.sampling.choices:
        weights = {label: -0.5 - (n >> place) % 7 for place, label in enumerate(labels)}
        return JudgeReply(text=labels[n % len(labels)], choice_logprobs=None if n % 5 == 0 else weights)
    if "GRADE" in call.prompt and n % 4:
        return JudgeReply(text=f"So GRADE: {'CPI'[(n >> 4) % 3]}")
    if n % 4:
        fitting = [each for each in SAID if each.strip("[]") and each in call.prompt] or SAID
        return JudgeReply(text=f"So: {fitting[(n >> 4) % len(fitting)]}")
    said = SAID[n % len(SAID)]
    return JudgeReply(text=f"So: {said}" if n % 2 else said, finish_reason="length" if n % 7 == 0 else "stop")


def asked(call):
    planned = plan_judge_call(WEIGHTS, call, 5, rules=GOLDEN["rules"])
    return [
        *(call.judge, call.model.name, call.presentation_order, call.repeat, call.attempt),
        *(digest(call.prompt)[:16], list(call.sampling.choices)),
        *(planned.request.seed, planned.replicate, planned.key[:16]),
    ]


def judged(judge, subject):
    replies, rounds = {}, []
    while wanted := judge.calls(subject, replies):
        rounds.append([asked(call) for call in wanted])
        replies |= {call: reply(call) for call in wanted}
    verdict = judge.told(replies).judge(subject)
    return {
        "asked": rounds,
        "verdict": [
            *(verdict.score, verdict.reason, verdict.answer, verdict.detail),
            *(verdict.no_answer, verdict.preference),
        ],
        "judgments": [
            [
                *(each.call.judge, each.call.presentation_order, each.call.repeat, each.call.attempt),
                *(each.score, each.reason),
            ]
            for each in verdict.replies
        ],
    }


@pytest.mark.parametrize("name", GOLDEN["one"])
def test_a_judge_of_outputs_asks_and_judges_as_before(name):
    golden = GOLDEN["one"][name]
    judge = create_judge(golden["type"], **golden["params"])
    assert judge_code(golden["type"], **golden["params"]) == golden["code"]
    assert [model.name for model in judge.models] == golden["models"]
    assert [judged(judge, Sample(**each)) for each in GOLDEN["samples"]] == golden["rows"]


@pytest.mark.parametrize("name", GOLDEN["two"])
def test_a_judge_of_duels_asks_and_judges_as_before(name):
    golden = GOLDEN["two"][name]
    judge = create_pair_judge(golden["type"], **golden["params"])
    assert pair_judge_code(golden["type"]) == golden["code"]
    assert digest(dict(judge.identity))[:16] == golden["identity"]
    assert judge.is_deterministic == golden["deterministic"]
    assert [model.name for model in judge.models] == golden["models"]
    assert [judged(judge, Duel(**each)) for each in GOLDEN["duels"]] == golden["rows"]
