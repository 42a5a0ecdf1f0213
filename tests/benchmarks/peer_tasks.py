"""Tasks of lm-eval by `task: {lm_eval: FILE}`: the same prompts and scores as lm-eval, example by example.

It is the second part of `python -m tests.benchmarks.peers`, which says what both run and on what.
"""

import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.benchmarks.peer_runs import run_campaign_file
from tests.benchmarks.tables import Row
from winnow.tasks.setup.load import check_campaign_file

MODELS = ("large", "sprout")
TRAIN, TEST = 40, 60
"""Documents that solved examples are drawn from, and that are asked about."""
CONTEXT = 256
SHOTS = (0, 5)

GENERATE: Mapping[str, Any] = {
    "doc_to_text": "{{ task }} {{ problem }} =",
    "doc_to_target": "{{ answers[0] }}",
    "generation_kwargs": {"until": ["\n", ";"], "max_gen_toks": 20, "do_sample": False},
}
CHOOSE: Mapping[str, Any] = {
    "output_type": "multiple_choice",
    "doc_to_text": "{{ task }} {{ problem }} =",
    "doc_to_choice": "words",
    "doc_to_target": "gold",
}


class TaskShape(NamedTuple):
    """A task, and the name of its score."""

    title: str
    metric: str
    keys: Mapping[str, Any]


def exact_match(**options: Any) -> dict[str, Any]:
    return {"metric_list": [{"metric": "exact_match", **options}]}


def filtered(*steps: Mapping[str, Any]) -> dict[str, Any]:
    return {"filter_list": [{"name": "found", "filter": [*steps, {"function": "take_first"}]}]}


SHAPES = (
    TaskShape(
        "generate_until, the last match of a pattern",
        "exact_match",
        {
            **GENERATE,
            **exact_match(),
            **filtered({"function": "regex", "regex_pattern": "([0-9]+)|([a-z]+)", "group_select": -1}),
        },
    ),
    TaskShape(
        "generate_until, a description, case and punctuation ignored",
        "exact_match",
        {
            **GENERATE,
            "doc_to_text": "{{ task | upper }} {{ problem }} steps:",
            "description": "solve. ",
            "fewshot_delimiter": " | ",
            **exact_match(ignore_case=True, ignore_punctuation=True, regexes_to_ignore=["(?s).*>"]),
            **filtered({"function": "remove_whitespace"}, {"function": "uppercase"}),
        },
    ),
    TaskShape(
        "generate_until, several targets, the first examples, a prefix",
        "exact_match",
        {
            **GENERATE,
            "doc_to_target": "answers",
            "gen_prefix": "is",
            "fewshot_config": {"sampler": "first_n"},
            **exact_match(),
            **filtered({"function": "remove_whitespace"}),
        },
    ),
    TaskShape("multiple_choice, acc", "acc", {**CHOOSE, "metric_list": [{"metric": "acc"}]}),
    TaskShape(
        "multiple_choice, acc_norm, no delimiter",
        "acc_norm",
        {**CHOOSE, "target_delimiter": "", "metric_list": [{"metric": "acc_norm"}]},
    ),
    TaskShape(
        "multiple_choice, labels by a template",
        "acc",
        {
            **CHOOSE,
            "doc_to_text": "{{ problem }}{% for word in words %} {{ word }}{% endfor %}:",
            "doc_to_choice": ["1", "2", "3", "4"],
            "doc_to_target": "{{ gold }}",
            "metric_list": [{"metric": "acc"}],
        },
    ),
)


def compared_tasks(
    demo: Path, rows: Sequence[Mapping[str, Any]], lm_eval: Path, folder: Path
) -> Iterator[Row]:
    """One row for each shape and number of solved examples."""
    names = [(number, shots) for number in range(len(SHAPES)) for shots in SHOTS]
    tasks = written(names, rows, folder)
    theirs = {model: evaluated(model, demo / model, names, tasks, lm_eval, folder) for model in MODELS}
    for number, shots in names:
        name = task_name(number, shots)
        prompts, scores = campaign(name, tasks / f"{name}.yaml", demo, folder)
        yield row_of(number, shots, prompts, scores, theirs)


def task_name(number: int, shots: int) -> str:
    return f"shape_{number}_{shots}_shots"


def written(names: Sequence[tuple[int, int]], rows: Sequence[Mapping[str, Any]], folder: Path) -> Path:
    """The folder of the tasks' files, which name the data."""
    tasks = folder / "tasks-by-file"
    tasks.mkdir()
    files = {"train": rows[:TRAIN], "test": rows[TRAIN : TRAIN + TEST]}
    for split, part in files.items():
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    for number, shots in names:
        task = {
            "task": task_name(number, shots),
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {split: str(folder / f"{split}.jsonl") for split in files}},
            "test_split": "test",
            "fewshot_split": "train",
            "num_fewshot": shots or None,
            **SHAPES[number].keys,
        }
        (tasks / f"{task['task']}.yaml").write_text(yaml.safe_dump(task, sort_keys=False))
    return tasks


def row_of(
    number: int,
    shots: int,
    prompts: Mapping[int, str],
    scores: Mapping[tuple[str, int], float],
    theirs: Mapping[str, Mapping[tuple[int, int], Sequence[Mapping[str, Any]]]],
) -> Row:
    """How often both agree."""
    shape = SHAPES[number]
    same_prompt = same_score = total = 0
    points = 0.0
    for model, found in theirs.items():
        for sample in found[number, shots]:
            total += 1
            points += float(sample[shape.metric])
            same_prompt += prompts[sample["doc_id"]] == sample["arguments"]["gen_args_0"]["arg_0"]
            same_score += scores[model, sample["doc_id"]] == float(sample[shape.metric])
    return {
        "task": shape.title,
        "solved examples": str(shots),
        "same prompt": f"{same_prompt} of {total}",
        "same score": f"{same_score} of {total}",
        "mean score": f"{points / total:.3f}",
    }


def campaign(
    name: str, task: Path, demo: Path, folder: Path
) -> tuple[dict[int, str], dict[tuple[str, int], float]]:
    """Prompts by document, and scores by model and document, of a whole grid."""
    args = {"dtype": "float32", "device": "cpu", "max_model_len": CONTEXT}
    spec = {
        "name": name.replace("_", "-"),
        "objective": "best-mean",
        "storage": f"sqlite:///{folder}/{name}.db",
        "models": [
            {"name": each, "provider": "transformers", "model": str(demo / each), "model_args": args}
            for each in MODELS
        ],
        "task": {"lm_eval": str(task)},
        "selector": {"name": "row-mean"},
        "batch_size": TEST,
        "stopping": {"budget": TEST * len(MODELS)},
        "execution": {"log_folder": f"{folder}/logs"},
    }
    path = folder / f"{name}.yaml"
    run_campaign_file(spec, path)
    query = (
        "SELECT k.name, e.key, c.outcome FROM comparisons c "
        "JOIN candidates k ON k.id = c.candidate_a_id JOIN examples e ON e.id = c.example_id"
    )
    connection = sqlite3.connect(folder / f"{name}.db")
    scores = {(who.partition("/")[0], int(key)): score for who, key, score in connection.execute(query)}
    connection.close()
    checked = check_campaign_file(str(path))
    shown = checked.candidates[0]
    prompts = {int(each.key): str(shown.prompt(each.fields, each.key)) for each in checked.dataset.examples}
    return prompts, scores


def evaluated(
    model: str, path: Path, names: Sequence[tuple[int, int]], tasks: Path, lm_eval: Path, folder: Path
) -> dict[tuple[int, int], list[Mapping[str, Any]]]:
    """What lm-eval found of one checkpoint: its samples, by task."""
    out, log = folder / "lm-eval-tasks" / model, folder / f"lm-eval-tasks-{model}.log"
    command = [
        *(str(lm_eval), "-m", "lm_eval", "run", "--model", "hf", "--device", "cpu", "--batch_size", "16"),
        *("--model_args", f"pretrained={path},dtype=float32,max_length={CONTEXT}"),
        *("--include_path", str(tasks), "--tasks", ",".join(task_name(*each) for each in names)),
        *("--output_path", str(out), "--log_samples"),
    ]
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "cache"), **os.environ}
    with log.open("wb") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    if done.returncode:
        raise SystemExit(f"lm-eval ended with {done.returncode}; see {log}")
    found = {}
    for each in names:
        [samples] = out.rglob(f"samples_{task_name(*each)}_*.jsonl")
        found[each] = [json.loads(line) for line in samples.read_text().splitlines()]
    return found
