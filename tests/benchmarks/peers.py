"""The same numbers as lm-eval, example by example: one campaign and one lm-eval task for each shape of task.

python -m tests.benchmarks.peers --demo .winnow/demo --out .winnow/bench --lm-eval PYTHON

PYTHON is an interpreter with lm-eval and the transformers that Winnow uses; `tests.benchmarks.harness` says
how to make one, into which pip must install accelerate and peft as well. Both run two of the demo's
checkpoints and one with random weights, whose tokenizer joins characters and begins texts with a token, on
the CPU in float32. Compared are the log-likelihood of every choice and the score of every example.
"""

import argparse
import json
import math
import os
import random
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tests.benchmarks.joining_tokenizer import save_joining_llama
from tests.benchmarks.peer_runs import run_campaign_file
from tests.benchmarks.peer_tasks import compared_tasks
from tests.benchmarks.tables import Row, told, write

DEMO_MODELS = ("large", "sprout")
EXAMPLES = 100
TOLERANCE = 1e-4
CONTEXT = 256
WINDOW = 64
"""Shorter than most texts as the demo's tokenizer, which knows characters alone, has them."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A shape of task, as both are told of it."""

    name: str
    judge: Mapping[str, Any]
    metric: str
    """What lm-eval calls the score."""
    prompt: str
    keys: Mapping[str, Any]
    """Of the campaign."""
    task: Mapping[str, Any]
    """Of lm-eval's task."""
    window: int = CONTEXT
    """Tokens that a model reads at the most; Winnow leaves room for two, as vLLM needs it."""
    lm_eval_args: str = f"max_length={CONTEXT}"


def choices_of(field: str, metric: str, prompt: str, delimiter: str, **judge: str) -> Shape:
    """Multiple choice by a list in each example."""
    kind = "acc" if metric == "acc" else "acc_norm"
    return Shape(
        name=f"{field}, {metric}",
        judge={"type": kind, "target": "index", **judge},
        metric=metric,
        prompt=prompt,
        keys={"output_type": "multiple-choice", "choices": {"field": field}, "target_delimiter": delimiter},
        task={"output_type": "multiple_choice", "doc_to_choice": field, "target_delimiter": delimiter},
    )


def perplexity(metric: str, prompt: str) -> Shape:
    """The log-likelihood of a whole text, in pieces where it is longer than the model's window.

    Where the tokenizer itself puts a token before each text, lm-eval puts it there once more and weighs the
    second: told not to, it weighs the text alone, as Winnow does.
    """
    return Shape(
        name=f"whole texts, {metric}",
        judge={"type": metric},
        metric=metric,
        prompt=prompt,
        keys={"output_type": "perplexity"},
        task={"output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": prompt},
        window=WINDOW,
        lm_eval_args=f"max_length={WINDOW - 2},add_bos_token=False",
    )


SHAPES = (
    choices_of("labels", "acc", "{{ asked }}\nAnswer:", " "),
    choices_of("words", "acc_norm", "{{ task }} {{ asked }} =", " "),
    choices_of("phrases", "acc_norm", "{{ asked }}\n\nIt follows that ", ""),
    choices_of("phrases", "acc_bytes", "{{ task }}: {{ asked }} \n", " ", per="byte"),
    choices_of("words", "acc", "{{ '' }}", ""),
    perplexity("bits_per_byte", "{{ asked }} {{ phrases | join(', ') }}"),
    perplexity("word_perplexity", "{{ asked }} {{ phrases | join(', ') }}"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", type=Path, default=Path(".winnow/demo"), help="folder `make demo` filled")
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    parser.add_argument("--lm-eval", type=Path, required=True, help="interpreter with lm-eval")
    options = parser.parse_args()
    folder = options.out.absolute() / f"peers-{datetime.now(UTC):%H%M%S}"
    folder.mkdir(parents=True)
    demo, lm_eval = options.demo.absolute(), options.lm_eval.absolute()
    tasks = told(compared_tasks(demo, list(examples(demo)), lm_eval, folder))
    rows = told(compared(demo, lm_eval, folder))
    titles = {"tasks": "lm-eval's own tasks", "peers": "Campaigns beside lm-eval"}
    write("peers", titles, {"tasks": tasks, "peers": rows}, folder)


def compared(demo: Path, lm_eval: Path, folder: Path) -> Iterator[Row]:
    """One row for each shape."""
    data = folder / "data.jsonl"
    rows = list(examples(demo))
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    models = {name: demo / name for name in DEMO_MODELS}
    models["joining"] = save_joining_llama(folder / "joining", [row["asked"] for row in rows])
    theirs = {name: evaluated(name, path, data, lm_eval, folder) for name, path in models.items()}
    for number, shape in enumerate(SHAPES):
        ours = campaign(number, shape, models, data, folder)
        yield row_of(number, shape, ours, theirs)


def row_of(
    number: int, shape: Shape, ours: Mapping[tuple[str, str], Any], theirs: Mapping[str, Sequence[Any]]
) -> Row:
    """How often both agree."""
    scores, farthest = [], 0.0
    for name, samples in theirs.items():
        for sample in samples[number]:
            outcome, logprobs = ours[name, sample["doc"]["id"]]
            scores.append(abs(outcome - score_of(shape, sample)) < TOLERANCE)
            expected = [
                float(each[0][0] if isinstance(each[0], list) else each[0]) for each in sample["resps"]
            ]
            differences = [abs(a - b) for a, b in zip(logprobs, expected, strict=True)]
            farthest = max(farthest, *differences)
    return {
        "shape": shape.name,
        "prompt": json.dumps(shape.prompt),
        "examples x models": f"{len(scores) // len(theirs)} x {len(theirs)}",
        "same score": f"{sum(scores)} of {len(scores)}",
        "largest difference of a log-likelihood": f"{farthest:.1e}",
    }


def score_of(shape: Shape, sample: Mapping[str, Any]) -> float:
    """The score that lm-eval's result of an example comes to."""
    found = sample[shape.metric]
    if shape.keys["output_type"] == "multiple-choice":
        return float(found)
    total, units = map(float, found)
    if shape.metric == "bits_per_byte":
        return max(0.0, 1.0 + total / units / math.log(2.0) / 8.0)
    return math.exp(total / units)


def examples(demo: Path) -> Iterator[dict[str, Any]]:
    """The demo's problems, with other problems' answers as choices, in three forms."""
    found = [json.loads(line) for line in (demo / "data" / "demo.jsonl").read_text().splitlines()]
    chance = random.Random(3)
    for row in chance.sample(found, EXAMPLES):
        alike = sorted(
            {each["target"][0] for each in found if each["task"] == row["task"]} - {row["target"][0]}
        )
        texts = [row["target"][0], *chance.sample(alike, 3)]
        chance.shuffle(texts)
        yield {
            "id": row["id"],
            "task": row["task"],
            "problem": row["input"],
            "answers": row["target"],
            "asked": " or ".join([f"{row['input']}?", *texts]),
            "labels": ["A", "B", "C", "D"],
            "words": texts,
            "phrases": [
                f"{each} is it" if i % 2 else f"perhaps it is {each}, né" for i, each in enumerate(texts)
            ],
            "gold": texts.index(row["target"][0]),
        }


def campaign(
    number: int, shape: Shape, models: Mapping[str, Path], data: Path, folder: Path
) -> dict[tuple[str, str], Any]:
    """`winnow run` on the whole grid: outcome and log-likelihoods by model and example."""
    args = {"dtype": "float32", "device": "cpu", "max_model_len": shape.window}
    spec = {
        "name": f"peers-{number}",
        "objective": "best-mean",
        "storage": f"sqlite:///{folder}/winnow-{number}.db",
        "models": [
            {"name": name, "provider": "transformers", "model": str(path), "model_args": args}
            for name, path in models.items()
        ],
        "prompts": [{"name": "prompt", "template": shape.prompt}],
        "dataset": {"path": str(data), "fields": {"id": "id", "input": "asked", "target": "gold"}},
        **shape.keys,
        "judge": dict(shape.judge),
        "selector": {"name": "row-mean"},
        "batch_size": EXAMPLES,
        "stopping": {"budget": EXAMPLES * len(models)},
        "execution": {"max_loaded": 1, "log_folder": f"{folder}/logs"},
    }
    run_campaign_file(spec, folder / f"campaign-{number}.yaml")
    connection = sqlite3.connect(folder / f"winnow-{number}.db")
    query = (
        "SELECT k.name, e.key, c.outcome, c.reason, g.choice_logprobs, e.fields FROM comparisons c "
        "JOIN candidates k ON k.id = c.candidate_a_id JOIN examples e ON e.id = c.example_id "
        "LEFT JOIN generations g ON g.id = c.generation_a_id"
    )
    rows = connection.execute(query).fetchall()
    connection.close()
    if unscored := [row[3] for row in rows if row[3]]:
        raise SystemExit(f"{shape.name}: {len(unscored)} unscored, the first for {unscored[0]}")
    return {
        (name.partition("/")[0], key): (outcome, _in_order(shape, json.loads(logprobs), json.loads(fields)))
        for name, key, outcome, _, logprobs, fields in rows
    }


def _in_order(shape: Shape, logprobs: Mapping[str, float], fields: Mapping[str, Any]) -> list[float]:
    if shape.keys["output_type"] == "perplexity":
        return list(logprobs.values())
    between = shape.keys["target_delimiter"]
    return [logprobs[f"{between}{each}"] for each in fields[shape.keys["choices"]["field"]]]


def evaluated(name: str, path: Path, data: Path, lm_eval: Path, folder: Path) -> list[list[Any]]:
    """What lm-eval found of one checkpoint: its samples, by shape."""
    tasks = folder / "tasks"
    tasks.mkdir(exist_ok=True)
    for number, shape in enumerate(SHAPES):
        task = {
            "task": f"peers_{number}",
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": str(data)}},
            "test_split": "test",
            "doc_to_text": shape.prompt,
            "doc_to_target": "gold",
            **shape.task,
            "metric_list": [{"metric": shape.metric}],
        }
        (tasks / f"peers_{number}.yaml").write_text(yaml.safe_dump(task, sort_keys=False))
    found: dict[int, list[Any]] = {}
    for run, args in enumerate(dict.fromkeys(shape.lm_eval_args for shape in SHAPES)):
        numbers = [number for number, shape in enumerate(SHAPES) if shape.lm_eval_args == args]
        out, log = folder / "lm-eval" / f"{name}-{run}", folder / f"lm-eval-{name}-{run}.log"
        command = [
            *(str(lm_eval), "-m", "lm_eval", "run", "--model", "hf", "--device", "cpu", "--batch_size", "16"),
            *("--model_args", f"pretrained={path},dtype=float32,{args}", "--include_path", str(tasks)),
            *("--tasks", ",".join(f"peers_{number}" for number in numbers)),
            *("--output_path", str(out), "--log_samples"),
        ]
        environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "cache"), **os.environ}
        with log.open("wb") as output:
            done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        if done.returncode:
            raise SystemExit(f"lm-eval ended with {done.returncode}; see {log}")
        for number in numbers:
            [samples] = out.rglob(f"samples_peers_{number}_*.jsonl")
            found[number] = [json.loads(line) for line in samples.read_text().splitlines()]
    return [found[number] for number in range(len(SHAPES))]


if __name__ == "__main__":
    main()
