"""Judges by libraries say what the library says when it is called directly, mapped to [0, 1]."""

import json
import string
import subprocess
import sys
from importlib import metadata
from itertools import pairwise, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer
from rouge_score.tokenize import tokenize
from rouge_score.tokenizers import DefaultTokenizer

from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.isolated.json_schema import is_multiple
from winnow.tasks.judges.isolated.words import words
from winnow.tasks.judges.registry import create_judge, describe, judge_code

STEMMER = PorterStemmer()
STEMMING = DefaultTokenizer(use_stemmer=True)


def stem(word):
    (found,) = STEMMING.tokenize(word)
    return found


HERE = Path(__file__).parent
BY_LIBRARIES = ("bleu", "chrf", "json-schema", "math", "rouge", "ter")
REFERENCE = "the cat sat on the mat"
SETTINGS = [
    ("rouge", "the cat sat on a mat", {"variant": "rouge1"}),
    ("rouge", "the cat sat on a mat", {"variant": "rouge2"}),
    ("rouge", "on the mat\nthe cat sat", {"variant": "rougeLsum"}),
    ("ter", "The cat sat on the mat", {"case_sensitive": True}),
    ("ter", "the cat sat on the mat.", {"normalized": True}),
    ("chrf", "the cat", {"char_order": 3, "beta": 1}),
    ("bleu", "the cat", {"tokenize": "char"}),
]


def said(rows):
    """What the code of judges says of rows, and what their libraries say."""
    command = [sys.executable, str(HERE / "direct_calls.py")]
    ended = subprocess.run(command, input=json.dumps(rows), capture_output=True, text=True, check=True)
    return json.loads(ended.stdout)


def rows_of(name):
    """The rows of its table of verdicts whose output the library itself is asked about."""
    version = judge_code(name, **({"schema": {}} if name == "json-schema" else {}))["version"]
    rows = json.loads((HERE / "golden" / f"{name}-{version}.json").read_text())
    known = [row for row in rows if row["verdict"][2] not in ("no_target", "unreadable_target")]
    known = [row for row in known if "extract" not in row["params"] and "NaN" not in row["output"]]
    if name == "math":  # which expression is the answer Winnow says, and the library whether it is equal
        known = [row for row in known if row["output"].startswith("$") and row["output"].count("$") == 2]
    known = [row for row in known if not differs(name, row)]
    assert len(known) >= 10
    for row in known:
        row["params"].pop("no_answer", None)
    return [[name, row["output"], row["targets"], row["params"]] for row in known]


def differs(name, row):
    """Whether the judge means to say something else than its library about this row."""
    if name == "json-schema":
        return "multipleOf" in row["params"]["schema"]
    return name == "rouge" and not all(text.isascii() for text in (row["output"], *row["targets"]))


def test_a_judge_says_what_its_library_says():
    rows = [row for name in BY_LIBRARIES for row in rows_of(name)]
    rows += [[name, output, [REFERENCE], params] for name, output, params in SETTINGS]
    for row, (judge, library) in zip(rows, said(rows), strict=True):
        assert judge == pytest.approx(library, abs=1e-12), row


PRINTED = st.text(st.characters(max_codepoint=127), max_size=60)
VARIANTS = ("rouge1", "rouge2", "rougeL", "rougeLsum")


def test_rouge_on_ascii_is_rouge_scores_to_the_last_digit():
    texts = [
        f"{a}{mark}{b}"
        for a in ("The Cats' 3.14", "re_run\n\nit", "")
        for mark in string.printable
        for b in ("x-1 running", "9")
    ]
    rows = [
        ["rouge", output, [target], {"variant": variant, "stemmer": stemmer}]
        for output, target in pairwise(texts)
        for variant, stemmer in product(VARIANTS, (False, True))
    ]
    for row, (judge, library) in zip(rows, said(rows), strict=True):
        assert judge == library, row


@given(PRINTED)
def test_words_of_ascii_are_those_of_rouge_score(text):
    assert words(text) == tokenize(text, None)
    assert words(text, stem) == tokenize(text, STEMMER)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Вчера — в Москве!", "вчера в москве"),
        ("GPT-4比GPT-3强。", "gpt 4 比 gpt 3 强"),
        ("東京のｶﾞﾗｽ１２", "東 京 の ガ ラ ス 12"),
        ("서울은 한국의 수도", "서울은 한국의 수도"),
        ("नई दिल्ली है।", "नई दिल्ली है"),
        ("กรุงเทพฯ", "ก รุ ง เ ท พ ฯ"),
        ("می\u200cخواهم", "میخواهم"),
        ("e\u0301te\u0301 ÉTÉ", "été été"),
        ("5² 10³ ½", "5² 10³ ½"),
        ("don’t 🎉 ✅ x_y", "don t x y"),
        ("co\u00adop\u200bx", "coop x"),
        ("\u202eein", "ein"),
    ],
)
def test_words_of_all_scripts(text, found):
    assert words(text) == found.split(" ")


def test_words_of_other_scripts_have_no_english_stems():
    assert words("naïves running бегущий", stem) == ["naïves", "run", "бегущий"]


@pytest.mark.parametrize(
    ("value", "step", "is_one"),
    [(19.99, 0.01, True), (0.3, 0.1, True), (7, 0.01, True), (1e300, 0.1, True), (10**300, 3, False),
     (0.35, 0.1, False), (float("inf"), 0.1, False), (7, 3.5, True), (-0.07, 0.01, True), (True, 1, True)],
)  # fmt: skip
def test_a_multiple_is_one_as_the_numbers_are_written(value, step, is_one):
    assert is_multiple(value, step) is is_one


@pytest.mark.parametrize("name", BY_LIBRARIES)
def test_a_library_that_is_missing_is_named_with_the_extra_that_brings_it(monkeypatch, name):
    def version(distribution):
        raise metadata.PackageNotFoundError(distribution)

    monkeypatch.setattr("winnow.tasks.plugins.extras.version", version)
    params = {"schema": {}} if name == "json-schema" else {}
    with pytest.raises(
        JudgeError, match=r"is not installed; run: pip install 'winnow-llm\[judges\]'"
    ) as caught:
        create_judge(name, **params)
    assert caught.value.path == "judge.type"


def test_the_version_of_a_library_is_part_of_what_the_judge_is(monkeypatch):
    before = judge_code("bleu")
    assert before["libraries"] == {"sacrebleu": metadata.version("sacrebleu")}
    monkeypatch.setattr("winnow.tasks.plugins.extras.version", lambda name: "0")
    assert judge_code("bleu") != before


@pytest.mark.parametrize(
    ("name", "value", "score"),
    [
        *[("bleu", 34.5, 0.345), ("chrf", 100.00000000000004, 1.0), ("ter", 0.0, 1.0), ("ter", 43.0, 0.57)],
        *[("ter", 100.0, 0.0), ("ter", 250.0, 0.0), ("rouge", 0.25, 0.25), ("f1", 1.0, 1.0)],
    ],
)
def test_native_values_are_mapped_to_the_unit_interval(name, value, score):
    assert describe(name).scale.score(value) == pytest.approx(score, abs=1e-12)
