"""Pair judges of other packages: what their adapter asks, shows them and makes of their verdicts."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scripted_judges import duel, play

from winnow.tasks.engines.protocol import ModelRef, Sampling
from winnow.tasks.judges.asking.calls import JudgeReply
from winnow.tasks.judges.pairwise.protocol import Judgment, JudgmentCall, PairVerdict
from winnow.tasks.judges.plugin import PluginPairJudge
from winnow.tasks.plugins.entry_points import Plugin

PLUGIN = Plugin(kind="pair judge", name="acme", location="acme:Judge")
MODEL = ModelRef(name="m", provider="transformers", model="owner/judge")


class TwoSteps:
    """Asks in one order, then in the other, and counts the replies it is shown."""

    models, identity, is_deterministic = (MODEL,), {"prompt": "v1"}, True

    def calls(self, duel, replies):
        order = ("original", "swapped", None)[len(replies)]
        return [self.call(duel, order)] if order else ()

    def call(self, duel, order):
        return JudgmentCall(
            judge="acme",
            model=MODEL,
            prompt=f"{order}: {duel.question}",
            sampling=Sampling(),
            seed=duel.seed,
            presentation_order=order,
            repeat=0,
            attempt=0,
        )

    def verdict(self, duel, replies):
        read = tuple(
            Judgment(
                judge=call.judge,
                presentation_order=call.presentation_order,
                repeat=call.repeat,
                attempt=call.attempt,
                reply=reply.text,
                verdict=float(reply.text == "A"),
                reason=None,
            )
            for call, reply in replies.items()
        )
        return PairVerdict(outcome=sum(each.verdict for each in read) / 2, answer="seen", judgments=read)


def adapted(inner, **members):
    for name, member in members.items():
        setattr(inner, name, member)
    return PluginPairJudge(PLUGIN, inner)


def test_calls_and_judgments_are_as_the_plug_in_has_them():
    judge = adapted(TwoSteps())
    assert (judge.models, judge.identity, judge.is_deterministic) == ((MODEL,), {"prompt": "v1"}, True)
    verdict, batches = play(judge, duel(), lambda call: "A" if "original" in call.prompt else "B")
    assert [[(c.presentation_order, c.prompt, c.seed, c.replicate) for c in batch] for batch in batches] == [
        [("original", "original: Why?", 7, 0)],
        [("swapped", "swapped: Why?", 7, 0)],
    ]
    assert (verdict.score, verdict.answer) == (0.5, "seen")
    assert [(each.call, each.score) for each in verdict.replies] == [
        (batches[0][0], 1.0),
        (batches[1][0], 0.0),
    ]


def test_a_duel_sees_its_own_replies_alone_and_takes_those_that_are_there():
    """What another duel asked as well is not asked again; what only that one asked is not shown."""
    judge, one, other = adapted(TwoSteps()), duel(), duel(question="How?")
    _, batches = play(judge, other, lambda call: "A")
    _, own = play(judge, one, lambda call: "B")
    known = {batch[0]: JudgeReply(text="A") for batch in batches}
    assert judge.calls(one, known) == own[0]
    assert judge.calls(other, known) == []


def test_a_judgment_of_no_call_is_kept_without_a_reply():
    alone = Judgment(
        judge="rule", presentation_order="original", repeat=2, attempt=0, reply=None, verdict=1.0, reason=None
    )
    inner = TwoSteps()
    judge = adapted(
        inner, calls=lambda *_: (), verdict=lambda *_: PairVerdict(outcome=1.0, judgments=(alone,))
    )
    (read,) = judge.judge(duel()).replies
    assert (read.call.judge, read.call.repeat, read.score) == ("rule", 2, 1.0)


def fail(*_):
    raise KeyError("colour")


OTHER = ModelRef(name="other", provider="transformers", model="owner/other")


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ({"calls": fail}, "KeyError: 'colour'"),
        ({"calls": lambda *_: ["no call"]}, "a judge must return a JudgmentCall, got str"),
        ({"verdict": fail, "calls": lambda *_: ()}, "KeyError: 'colour'"),
        ({"models": (OTHER,)}, "it calls the model 'm', which is not in its `models`"),
    ],
)
def test_what_a_plug_in_raises_leaves_the_duel_unscored(members, sentence):
    judge = adapted(TwoSteps(), **members)
    assert not judge.calls(duel(), {})
    verdict = judge.judge(duel())
    assert (verdict.score, verdict.reason) == (None, "judge_failed")
    assert sentence in verdict.detail


def test_a_call_that_is_wanted_for_ever_is_asked_once():
    inner = TwoSteps()
    judge = adapted(
        inner,
        calls=lambda duel, replies: [inner.call(duel, "original")],
        verdict=lambda duel, replies: PairVerdict(outcome=float(len(replies))),
    )
    verdict, batches = play(judge, duel(), lambda call: "A")
    assert (len(batches), verdict.score) == (1, 1.0)


def played(verdict):
    return Judgment(
        judge="j", presentation_order="original", repeat=0, attempt=0, reply="", verdict=verdict, reason=None
    )


@pytest.mark.parametrize(
    "say",
    [
        lambda: PairVerdict(outcome=math.nan),
        lambda: PairVerdict(outcome=math.inf),
        lambda: PairVerdict(outcome=0.5, judgments=(played(math.nan),)),
        lambda: PairVerdict(outcome=0.5, judgments=(played(None),)),
        lambda: 0.5,
        lambda: None,
        lambda: SimpleNamespace(outcome=math.nan, reason=None, answer=None, judgments=()),
    ],
)
def test_a_plug_in_that_gives_no_outcome_leaves_the_duel_unscored(say):
    verdict = adapted(TwoSteps(), calls=lambda *_: (), verdict=lambda *_: say()).judge(duel())
    assert (verdict.score, verdict.reason) == (None, "invalid_score")
    assert verdict.detail


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"outcome": 1.0, "reason": "x"},
        {"outcome": 1.1},
        {"outcome": -0.1},
        {"outcome": math.nan},
        {"outcome": "1"},
    ],
)
def test_a_verdict_is_an_outcome_or_a_reason(fields):
    with pytest.raises(ValueError, match=r"a verdict has|an outcome must be in"):
        PairVerdict(**fields)


def test_numbers_of_other_kinds_become_plain_ones():
    for value in (np.float32(0.25), np.float64(0.25)):
        assert type(PairVerdict(outcome=value).outcome) is float
        assert type(played(value).verdict) is float
