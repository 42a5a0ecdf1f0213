"""SQuAD's metrics against a literal copy of its evaluation script's functions."""

import collections
import re
import string

from hypothesis import given
from hypothesis import strategies as st

from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge

WORDS = ["a", "the", "The", "b", "c", "co-op", "x.", "!", "\n", "é", "an"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=6)


def normalize_answer(s):
    text = "".join(ch for ch in s.lower() if ch not in set(string.punctuation))
    return " ".join(re.sub(re.compile(r"\b(a|an|the)\b", re.UNICODE), " ", text).split())


def compute_f1(a_gold, a_pred):
    gold_toks, pred_toks = normalize_answer(a_gold).split(), normalize_answer(a_pred).split()
    num_same = sum((collections.Counter(gold_toks) & collections.Counter(pred_toks)).values())
    if len(gold_toks) == 0 or len(pred_toks) == 0:
        return int(gold_toks == pred_toks)
    if num_same == 0:
        return 0
    precision, recall = 1.0 * num_same / len(pred_toks), 1.0 * num_same / len(gold_toks)
    return (2 * precision * recall) / (precision + recall)


@given(TEXTS.map(" ".join), st.lists(TEXTS.map(" ".join), min_size=1, max_size=3))
def test_exact_match_and_f1_are_those_of_the_script(output, targets):
    sample = Sample(output=output, targets=targets)
    assert create_judge("f1").judge(sample).score == max(compute_f1(each, output) for each in targets)
    exact = any(normalize_answer(each) == normalize_answer(output) for each in targets)
    assert create_judge("squad").judge(sample).score == float(exact)
