# ruff: noqa: E501 -- a case is a line
"""Targets of which a judge reads nothing, or next to nothing: which they are, and what is said of them."""

from dataclasses import dataclass, field
from importlib import import_module

import pytest

from winnow.tasks.data.datasets import Example
from winnow.tasks.judges.isolated import libraries
from winnow.tasks.setup.unread_targets import unread_targets
from winnow.tasks.spec.campaign import JudgeSpec

CHINESE, THAI, JAPANESE = (
    "北京是中国的首都。",
    "เมื่อวานนี้นายกเทศมนตรีเปิดสะพานใหม่",
    "スマートフォンの売上が伸びた",
)
SPACED = [
    "어제 새로운 다리가 열렸다",
    "Москва — столица",
    "नया पुल खुला है।",
    "The cat sat",
    "Straße",
    "東京",
    "GPT-4 比 GPT-3 强",
]
EMPTY = ["A", "the", "?!", "🎉"]


@dataclass(frozen=True)
class Spec:
    """The part of a campaign's file that names judges."""

    judge: JudgeSpec
    metrics: list = field(default_factory=list)


class InThisProcess:
    def __init__(self, build, params, **limits):
        module, _, name = build.partition(":")
        self.judge = getattr(import_module(module), name)(**params)


@pytest.fixture(autouse=True)
def no_process_for_a_library(monkeypatch):
    monkeypatch.setattr(libraries, "IsolatedJudge", InThisProcess)


def said(judge, targets):
    examples = [Example(key=f"e{at}", fields={}, targets=(each,)) for at, each in enumerate(targets)]
    return list(unread_targets(Spec(JudgeSpec.model_validate(judge)), examples))


@pytest.mark.parametrize(
    ("judge", "target", "told"),
    [
        ({"type": "bleu"}, CHINESE, "set judge.tokenize: zh"),
        ({"type": "bleu", "tokenize": "intl"}, CHINESE, "set judge.tokenize: zh"),
        ({"type": "bleu", "lowercase": True}, JAPANESE, "set judge.tokenize: char"),
        ({"type": "bleu"}, THAI, "set judge.tokenize: char"),
        ({"type": "bleu", "tokenize": "zh"}, THAI, "set judge.tokenize: char"),
        ({"type": "ter"}, CHINESE, "set judge.normalized: true and judge.asian_support: true"),
        ({"type": "ter", "normalized": True}, CHINESE, "judge.asian_support: true"),
        ({"type": "ter"}, THAI, "choose chrf, which compares characters"),
        ({"type": "rouge"}, "?!", "its words are letters and digits; choose exact for such targets"),
        ({"type": "rouge", "variant": "rouge2"}, "Paris", "one word makes no pair of words; set judge.variant: rougeL"),
        ({"type": "f1"}, CHINESE, "choose rouge with variant: rouge1"),
        ({"type": "f1"}, "A", "it drops punctuation and the articles a, an and the; choose exact or normalised"),
        ({"type": "squad"}, "the", "choose exact or normalised"),
        ({"type": "similarity"}, THAI, "set judge.model to a sentence-embedding model of their language"),
        ({"type": "math"}, "So Natalia has sold 72 clips.", "a text is read as one expression; set judge.target_format: text"),
        ({"type": "math", "target_format": "text"}, r"\text{(C)}", "set judge.target_format: expression"),
        ({"type": "choice", "options": ["one two", "three four"]}, "bug", "it is none of the options; add it to judge.options"),
        ({"type": "numeric", "fractions": False}, "bug", "it contains no number; choose exact or choice for such targets"),
        ({"type": "regex", "pattern": r"answer: \w+"}, "blue", "put a group or {target} into judge.pattern"),
        ({"type": "all", "judges": [{"type": "exact"}, {"type": "bleu"}]}, CHINESE, "set judge.judges[1].tokenize: zh"),
        ({"type": "bleu", "extract": "say (.*)", "no_answer": "unscored"}, CHINESE, "set judge.tokenize: zh"),
    ],
)  # fmt: skip
def test_a_target_that_a_judge_reads_nothing_of_is_named_with_the_remedy(judge, target, told):
    (sentence,) = said(
        judge,
        [target] if judge["type"] in ("math", "numeric", "regex") else ["one two", target, "three four"],
    )
    part = judge["judges"][1] if "judges" in judge else judge
    assert sentence.startswith(f"judge {part['type']} reads ")
    assert repr(target) in sentence
    assert told in sentence


@pytest.mark.parametrize(
    ("judge", "targets"),
    [
        ({"type": "bleu"}, [*SPACED, *EMPTY]),
        ({"type": "bleu", "tokenize": "char"}, [CHINESE, THAI, JAPANESE]),
        ({"type": "bleu", "tokenize": "zh"}, [CHINESE]),
        ({"type": "ter"}, [*SPACED, *EMPTY]),
        ({"type": "ter", "normalized": True, "asian_support": True}, [CHINESE, JAPANESE]),
        ({"type": "chrf"}, [CHINESE, THAI, JAPANESE, *SPACED, *EMPTY]),
        ({"type": "rouge"}, [CHINESE, THAI, JAPANESE, *SPACED]),
        ({"type": "rouge", "variant": "rouge2"}, [CHINESE, "two words"]),
        ({"type": "f1"}, SPACED),
        ({"type": "squad"}, [CHINESE, *SPACED]),
        ({"type": "exact"}, EMPTY),
        ({"type": "regex", "pattern": r"\d+"}, ["1", "1,234"]),
        ({"type": "regex", "pattern": "yes|no"}, ["Yes", "No"]),
        ({"type": "regex", "pattern": r"answer: (\w+)"}, ["blue"]),
        ({"type": "regex", "pattern": "answer: {target}"}, ["blue"]),
        (
            {"type": "math"},
            ["1/2", r"\frac{1}{2}", "x^2", r"\text{no real solutions exist here}", r"\sin x \cos y"],
        ),
        ({"type": "human", "question": "Is it right?"}, [CHINESE]),
    ],
)
def test_nothing_is_said_of_what_a_judge_reads(judge, targets):
    assert said(judge, targets) == []


def test_one_target_of_an_example_that_is_an_option_is_enough():
    several = [Example(key="e", fields={}, targets=("Paris", "B"))]
    spec = Spec(JudgeSpec.model_validate({"type": "choice"}))
    assert list(unread_targets(spec, several)) == []
    several.append(Example(key="f", fields={}, targets=("Rome",)))
    (sentence,) = unread_targets(spec, several)
    assert "reads nothing of 1 of 3 targets, such as 'Rome' of example 'f'" in sentence


def test_a_sentence_counts_its_targets_and_shows_the_first():
    (sentence,) = said({"type": "bleu"}, ["one two", CHINESE, CHINESE, CHINESE * 9])
    assert sentence.startswith("judge bleu reads next to nothing of 2 of 3 targets, such as '北京")
    assert "of example 'e1'" in sentence


def test_a_pattern_that_takes_too_long_says_nothing(monkeypatch):
    monkeypatch.setattr("winnow.tasks.judges.rules.regex.TIMEOUT_SECONDS", 0.05)
    assert said({"type": "regex", "pattern": "(?:a|aa)+b$"}, ["a" * 5_000]) == []
