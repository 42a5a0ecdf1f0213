"""Tasks of lm-eval by `task: {lm_eval: FILE}`: the same prompts and scores as lm-eval, example by example.

It is the second part of `python -m tests.benchmarks.peers`, which says what both run and on what.
"""

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from transformers import AutoTokenizer

from tests.benchmarks.peer_runs import run_campaign_file
from tests.benchmarks.tables import Row
from winnow.tasks.engines.prompt_tokens import PromptEncoder
from winnow.tasks.setup.load import check_campaign_file

MODELS = ("large", "sprout")
TRAIN, TEST = 40, 60
"""Documents that solved examples are drawn from, and that are asked about."""
CONTEXT = 512
"""Tokens that a model reads at the most: more than any prompt has."""

CHAT_TEMPLATE = (
    "{% for message in messages %}{% if message.role == 'system' %}[{{ message.content }}]\\n"
    "{% elif message.role == 'user' %}{{ message.content }}"
    "{% else %} {{ message.content }}{% if not loop.last %}\\n{% endif %}{% endif %}{% endfor %}"
)
"""It shows a question as the models were trained to be asked, and who said what all the same."""


class Way(NamedTuple):
    """How a task is asked."""

    chat: str
    """What the solved examples are in a chat; empty for plain text."""
    shots: int
    """How many solved examples are shown."""

    @property
    def suffix(self) -> str:
        return f"{self.chat.replace(' ', '-') or 'plain'}-{self.shots}"


WAYS = (Way("", 0), Way("", 5), Way("turns", 0), Way("turns", 5), Way("one message", 5))

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
    """One row for each shape and way to ask."""
    models = {model: chatting(demo / model, folder / "chatting" / model) for model in MODELS}
    for way in WAYS:
        tasks = written(way, rows, folder)
        theirs = {
            model: evaluated(model, path, way, tasks, lm_eval, folder) for model, path in models.items()
        }
        for number in range(len(SHAPES)):
            prompts, scores = campaign(number, way, tasks, models, folder)
            yield row_of(number, way, prompts, scores, theirs)


def chatting(checkpoint: Path, copy: Path) -> Path:
    """The same checkpoint with a chat template, which the demo's have none of."""
    shutil.copytree(checkpoint, copy)
    tokenizer = AutoTokenizer.from_pretrained(copy)
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.save_pretrained(copy)
    return copy


def task_name(number: int, way: Way) -> str:
    return f"shape-{number}-{way.suffix}"


def written(way: Way, rows: Sequence[Mapping[str, Any]], folder: Path) -> Path:
    """The folder of the tasks' files, which name the data."""
    tasks = folder / "tasks-by-file" / way.suffix
    tasks.mkdir(parents=True)
    files = {"train": rows[:TRAIN], "test": rows[TRAIN : TRAIN + TEST]}
    for split, part in files.items():
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    for number, shape in enumerate(SHAPES):
        task = {
            "task": task_name(number, way),
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {split: str(folder / f"{split}.jsonl") for split in files}},
            "test_split": "test",
            "fewshot_split": "train",
            "num_fewshot": way.shots or None,
            **shape.keys,
        }
        (tasks / f"{task['task']}.yaml").write_text(yaml.safe_dump(task, sort_keys=False))
    return tasks


def row_of(
    number: int,
    way: Way,
    prompts: Mapping[int, str],
    scores: Mapping[tuple[str, int], float],
    theirs: Mapping[str, Mapping[int, Sequence[Mapping[str, Any]]]],
) -> Row:
    """How often both agree."""
    shape = SHAPES[number]
    same_prompt = same_score = total = 0
    points = 0.0
    for model, found in theirs.items():
        for sample in found[number]:
            total += 1
            points += float(sample[shape.metric])
            same_prompt += prompts[sample["doc_id"]] == sample["arguments"]["gen_args_0"]["arg_0"]
            same_score += scores[model, sample["doc_id"]] == float(sample[shape.metric])
    return {
        "task": shape.title,
        "chat": way.chat or "none",
        "solved examples": str(way.shots),
        "same prompt": f"{same_prompt} of {total}",
        "same score": f"{same_score} of {total}",
        "mean score": f"{points / total:.3f}",
    }


def campaign(
    number: int, way: Way, tasks: Path, models: Mapping[str, Path], folder: Path
) -> tuple[dict[int, str], dict[tuple[str, int], float]]:
    """Prompts by document, and scores by model and document, of a whole grid."""
    name = task_name(number, way)
    args = {"dtype": "float32", "device": "cpu", "max_model_len": CONTEXT}
    task: dict[str, Any] = {"lm_eval": str(tasks / f"{name}.yaml")}
    if way.chat:
        task["fewshot_as_multiturn"] = way.chat == "turns"
    spec = {
        "name": name,
        "objective": "best-mean",
        "storage": f"sqlite:///{folder}/{name}.db",
        "models": [
            {
                "name": each,
                "provider": "transformers",
                "model": str(model),
                "model_args": args,
                "chat": bool(way.chat),
            }
            for each, model in models.items()
        ],
        "task": task,
        "selector": {"name": "row-mean"},
        "batch_size": TEST,
        "stopping": {"budget": TEST * len(models)},
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
    tokenizer = AutoTokenizer.from_pretrained(shown.model.model)
    as_read = PromptEncoder(tokenizer, shown.model, vocabulary=len(tokenizer), max_model_len=CONTEXT).text_of
    prompts = {
        int(each.key): as_read(shown.prompt(each.fields, each.key)) for each in checked.dataset.examples
    }
    return prompts, scores


def evaluated(
    model: str, path: Path, way: Way, tasks: Path, lm_eval: Path, folder: Path
) -> dict[int, list[Mapping[str, Any]]]:
    """What lm-eval found of one checkpoint: its samples, by shape."""
    out = folder / "lm-eval-tasks" / f"{model}-{way.suffix}"
    log = folder / f"lm-eval-tasks-{model}-{way.suffix}.log"
    names = [task_name(number, way) for number in range(len(SHAPES))]
    command = [
        *(str(lm_eval), "-m", "lm_eval", "run", "--model", "hf", "--device", "cpu", "--batch_size", "16"),
        *("--model_args", f"pretrained={path},dtype=float32,max_length={CONTEXT}"),
        *("--include_path", str(tasks), "--tasks", ",".join(names)),
        *("--output_path", str(out), "--log_samples"),
    ]
    if way.chat:
        turns = "true" if way.chat == "turns" else "false"
        command += ["--apply_chat_template", "--fewshot_as_multiturn", turns]
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "cache"), **os.environ}
    with log.open("wb") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    if done.returncode:
        raise SystemExit(f"lm-eval ended with {done.returncode}; see {log}")
    found = {}
    for number, name in enumerate(names):
        [samples] = out.rglob(f"samples_{name}_*.jsonl")
        found[number] = [json.loads(line) for line in samples.read_text().splitlines()]
    return found
