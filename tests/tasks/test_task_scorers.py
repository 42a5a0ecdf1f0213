"""Tasks of lm-eval that are scored by their own functions, in confined processes."""

import math
import shutil
from pathlib import Path

import pytest

from tests.tasks.lm_eval_tasks import record
from tests.tasks.test_lm_eval_tasks import EXPECTED, HERE, parsed
from winnow.tasks.data.sources import read_dataset
from winnow.tasks.errors import JudgeError, SpecError
from winnow.tasks.judges.code import lm_eval
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge, judge_code
from winnow.tasks.setup.trust import permissions

DOCUMENT = {"doc": {"answer": "13"}}


@pytest.fixture
def scored(folder, monkeypatch):
    """The working folder, with the tasks that have scoring functions."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    shutil.copytree(HERE, folder, dirs_exist_ok=True)
    return folder


def campaign(name, **task):
    return parsed({"lm_eval": f"scored/{name}.yaml", **task})


def judge_of(spec):
    params = spec.judge.model_dump()
    return create_judge(params.pop("type"), **params)


METRICS = [
    ("results", "right", None),
    ("results", "near", None),
    ("results", "wrong", [100, 0]),
    ("filtered", "exact_match", None),
    ("votes", "share", None),
    ("function", "overlap", None),
    ("function", "same_length", None),
    ("functions_of_several", "same_length", None),
    ("weighed", "mass", None),
    ("page", "word_perplexity", None),
    ("page", "bits_per_byte", None),
]


@pytest.mark.parametrize(("name", "metric", "bounds"), METRICS)
def test_scores_are_those_of_lm_eval(scored, name, metric, bounds):
    spec = campaign(name, metric=metric, **({"range": bounds} if bounds else {}))
    judge, examples = judge_of(spec), read_dataset(spec.dataset).examples
    expected = EXPECTED["own"][name]
    inputs = record.SAID if spec.output_type == "generate" else record.WEIGHED
    assert len(expected) == len(inputs)
    for said, of_documents in zip(inputs, expected, strict=True):
        for example, metrics in zip(examples, of_documents, strict=True):
            verdict = judge.judge(sample_of(example, said))
            if isinstance(metrics, str):
                assert (verdict.score, verdict.reason) == (None, "judge_failed")
                assert metrics.removeprefix("raises ") in verdict.detail
            else:
                assert verdict.score == pytest.approx(score_of(metric, metrics[metric], bounds), abs=1e-12)


def sample_of(example, said):
    known = {"targets": example.targets, "fields": example.fields}
    if isinstance(said, str):
        return Sample(output=said, **known)
    choices = example.fields.get("choices", ["a"])
    return Sample(output="", choices=choices, loglikelihoods=said[: len(choices)], **known)


def score_of(metric, value, bounds):
    """What lm-eval's number of one document scores in Winnow."""
    if isinstance(value, list):
        loglikelihood, units = value
        bits = -loglikelihood / units / math.log(2)
        return max(0, 1 - bits / 8) if metric == "bits_per_byte" else 2**-bits
    first, last = bounds or (0, 1)
    return (value - first) / (last - first)


def test_the_first_metric_that_is_a_mean_decides_and_a_key_names_another(scored):
    assert campaign("results").judge.model_dump() == {
        "type": "lm-eval",
        "metric": "right",
        "process_results": "scored/utils.py:process_results",
        "filters": [{"function": "take_first"}],
    }
    assert campaign("results", metric="wrong").judge.model_dump()["range"] == [1.0, 0.0]
    with pytest.raises(
        SpecError, match=r"is scored by parts \(aggregation: .*:same_length\), which Winnow cannot"
    ):
        campaign("results", metric="parts")
    with pytest.raises(SpecError, match="has no metric 'x'; its metrics: parts, right, near, wrong"):
        campaign("results", metric="x")
    assert campaign("filtered", filter="lower").judge.model_dump() == {
        "type": "exact_match",
        "filters": [{"function": "lowercase"}],
        "ignore_case": True,
    }


def test_repeats_count_only_where_a_filter_reads_several_answers(scored):
    for name in ("results", "votes"):
        path = scored / "scored" / f"{name}.yaml"
        path.write_text(path.read_text() + "repeats: 8\n")
    assert campaign("results").judge.model_dump()["metric"] == "right"
    with pytest.raises(SpecError, match=r"requests 8 answers and scores them together \(repeats\)"):
        campaign("votes")


def test_its_functions_are_asked_for_and_named_with_their_files(scored):
    texts = [each.text for each in permissions(campaign("filtered"), scored)]
    file = str((scored / "scored/utils.py").resolve())
    assert texts == [f"run 'cut' of the Python file {file!r}", f"run 'Prefixed' of the Python file {file!r}"]
    code = judge_code("lm-eval", metric="m", process_results=f"{file}:process_results")
    assert set(code["files"]) == {"answers", "utils"}
    assert set(code["libraries"]) == {"numpy"}


EACH_DESCRIPTOR = """import os
    for each in range(3, 64):
        try:
            {}
        except OSError:
            pass
"""
HOSTILE = {
    "spin": "while True: pass",
    "memory": "bytearray(1 << 34)",
    "network": "import socket; socket.socket()",
    "reads": "open('/etc/passwd').read()",
    "writes": "open('/tmp/winnow-escaped', 'w')",
    "forks": "import os; os.fork()",
    "kills": "import os; os.kill(os.getppid(), 9)",
    "exits": "import os; os._exit(0)",
    "forges": EACH_DESCRIPTOR.format("os.write(each, b'{\"value\": true}')") + "    os._exit(0)",
    "floods": EACH_DESCRIPTOR.format("while True: os.write(each, b'[' * 9999)"),
}
CODE = """
SEEN = []

def process_results(doc, results):
    SEEN.append(results[0])
    KINDS.get(results[0], int)()
    return {"right": float(len(SEEN) == 1)}

"""


def test_an_output_that_takes_over_the_function_gets_no_score_and_changes_no_other(folder):
    code = [f"def {kind}():\n    {text}\n" for kind, text in HOSTILE.items()]
    kinds = f"KINDS = {{{', '.join(f'{each!r}: {each}' for each in HOSTILE)}}}\n"
    Path("own.py").write_text("\n".join([CODE, *code, kinds]))
    judge = create_judge("lm-eval", metric="right", process_results="own.py:process_results", timeout=1,
                         filters=[{"function": "take_first"}], memory=256)  # fmt: skip
    for kind in HOSTILE:
        assert judge.judge(Sample(output="fine", fields=DOCUMENT)).score == 1.0, kind
        found = judge.judge(Sample(output=kind, fields=DOCUMENT))
        assert (found.score, found.reason) == (None, "invalid_score" if kind == "forges" else "judge_failed")
        assert len(found.detail) < 500
    assert judge.judge(Sample(output="fine", fields=DOCUMENT)).score == 1.0
    assert not Path("/tmp/winnow-escaped").exists()


DRAWS = """
import random
import numpy as np

def process_results(doc, results):
    order = list({"a", "b", "c", "d", "e", "f", "g", "h"}).index("a") / 8
    return {"right": (random.random() + np.random.random() + order) / 3}
"""


def test_an_output_gets_the_same_score_in_each_process_though_its_function_draws(folder):
    Path("own.py").write_text(DRAWS)
    params = {"metric": "right", "process_results": "own.py:process_results"}
    judges = [create_judge("lm-eval", filters=[{"function": "take_first"}], **params) for _ in range(2)]
    outputs = [Sample(output=each, fields=DOCUMENT) for each in ("a", "b", "a")]
    scores = {judge.judge(each).score for judge in judges for each in outputs}
    assert len(scores) == 1
    assert None not in scores


def test_a_function_is_refused_where_it_cannot_be_confined(scored, monkeypatch):
    monkeypatch.setattr(lm_eval, "missing", lambda: "seccomp")
    with pytest.raises(
        JudgeError, match="the task's functions cannot be confined: this machine lacks seccomp"
    ):
        judge_of(campaign("results"))


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"process_results": "no.py:f"}, "judge.process_results: there is no Python file 'no.py'"),
        ({"function": "own.py:g"}, "judge.function: unknown function of own.py 'g'"),
        (
            {"filters": [{"function": "own.py:g"}]},
            "judge.filters[0].function: unknown function of own.py 'g'",
        ),
        (
            {"process_results": "own.py:f", "function": "own.py:f"},
            "set process_results or function",
        ),
        ({"range": [1, 1]}, "must be two different finite numbers, got [1.0, 1.0]"),
    ],
)
def test_a_mistake_is_named_at_its_place(folder, keys, sentence):
    Path("own.py").write_text("def f(doc, results): ...\n")
    with pytest.raises(JudgeError) as refused:
        create_judge("lm-eval", metric="right", **keys)
    assert sentence in str(refused.value)


def test_a_library_that_is_missing_is_named_before_anything_is_generated(folder):
    Path("own.py").write_text("import no_such_library\ndef f(doc, results): ...\n")
    judge = create_judge("lm-eval", metric="right", process_results="own.py:f")
    with pytest.raises(JudgeError, match=r"No module named 'no_such_library'.*; install what it imports, or"):
        judge.try_out()


def test_documents_are_made_by_a_function_of_the_task(scored):
    path = scored / "scored" / "results.yaml"
    path.write_text(path.read_text() + "custom_dataset: !function made.documents\nmetadata: {n: 2}\n")
    (scored / "scored" / "made.py").write_text(
        "import datasets\n\ndef documents(n, **more):\n"
        "    rows = [{'q': str(i), 'answer': str(i)} for i in range(n)]\n"
        "    return {'test': datasets.Dataset.from_list(rows)}\n"
    )
    spec = campaign("results")
    assert [each.rpartition(":")[2] for each in spec.dataset.lm_eval.functions] == ["documents"]
    assert [each.fields["context"] for each in read_dataset(spec.dataset).examples] == ["0 =", "1 ="]
