"""Wall time of a campaign over that of one plain `LLM.generate` call on the same requests, engine loaded."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.benchmarks.campaigns import run
from tests.benchmarks.measurements import Measurement
from tests.tiny_models import save_tiny_llama
from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.vllm import WORKER_ENVIRONMENT

ROUND = 1024
"""Generations a round: at least what vLLM runs at once, or its own batches would be cut short."""

MAX_TOKENS = 24

PLAIN = """
import json, sys, time
from vllm import LLM, SamplingParams
job = json.load(open(sys.argv[1]))
given = {"dtype": "float32", "enforce_eager": True, "enable_chunked_prefill": False}
llm = LLM(**{**given, **job["model"]})
biases = [{int(token): by for token, by in each.pop("logit_bias", {}).items()} for each in job["params"]]
params = [SamplingParams(**each, logit_bias=bias or None) for each, bias in zip(job["params"], biases)]
llm.generate(job["prompts"][:8], params[:8], use_tqdm=False)
start = time.perf_counter()
outputs = llm.generate(job["prompts"], params, use_tqdm=False)
seconds = time.perf_counter() - start
tokens = sum(len(o.outputs[0].token_ids) for o in outputs)
print(json.dumps({"seconds": seconds, "tokens": tokens}))
"""


def measure(demo: Path) -> Iterator[Measurement]:
    with tempfile.TemporaryDirectory() as name:
        larger = save_tiny_llama(Path(name) / "larger", seed=1, hidden=256, layers=4)
        for what, model, generations, target in (
            ("a 4-layer model", larger, 2048, "at most 1.10"),
            ("the demo's largest model", demo / "large", 2048, "none: 0.6 ms a generation leaves no room"),
        ):
            data = demo / "data" / "demo.jsonl"
            yield measured(Path(name), data, what, model, generations, target)


def measured(folder: Path, data: Path, what: str, model: Path, generations: int, target: str) -> Measurement:
    """A campaign beside one call with the same requests.

    Args:
        folder: To work in.
        data: Examples with id, task, input and target; four prompts are made of each.
        what: The model in words.
        model: Its checkpoint.
        generations: How many.
        target: What the ratio is held against.
    """
    database = folder / f"{model.name}.db"
    spec = _spec(folder, data, database, model, generations)
    watch = run(spec, [], folder / "prefect.log")
    prompts, seeds, tokens = _requests(database)
    params = [{"temperature": 0.8, "max_tokens": MAX_TOKENS, "seed": seed} for seed in seeds]
    plain = plain_generate(folder, {"model": str(model), "max_model_len": 128}, prompts, params)
    extra = (watch.seconds - plain["seconds"]) / len(prompts)
    return Measurement(
        f"campaign of {len(prompts)} generations on {what}, rounds of {ROUND}, over one LLM.generate call",
        f"{watch.seconds / plain['seconds']:.2f} ({watch.seconds:.2f} s over {plain['seconds']:.2f} s, "
        f"{1000 * extra:.2f} ms a comparison; {tokens} and {plain['tokens']} tokens)",
        target,
    )


def _spec(folder: Path, data: Path, database: Path, model: Path, generations: int) -> Path:
    spec = folder / f"{model.name}.yaml"
    spec.write_text(
        textwrap.dedent(f"""\
        name: bench
        objective: best-mean
        storage: sqlite:///{database}
        models:
          - name: measured
            model: {model}
            model_args: {{max_model_len: 128, dtype: float32, enforce_eager: true}}
        prompts:
          - {{name: a, template: "{{{{ task }}}} {{{{ input }}}} steps:"}}
          - {{name: b, template: "{{{{ task }}}} {{{{ input }}}} reversed:"}}
          - {{name: c, template: "{{{{ task }}}} {{{{ input }}}}"}}
          - {{name: d, template: "{{{{ task }}}}; {{{{ input }}}} steps:"}}
        generate_configs:
          - {{name: warm, temperature: 0.8, max_tokens: {MAX_TOKENS}}}
        dataset: {{path: {data}, fields: {{id: id, input: input, target: target}}}}
        judge: {{type: exact}}
        selector: {{name: row-mean}}
        batch_size: {ROUND}
        stopping: {{budget: {generations}}}
        execution: {{log_folder: {folder}/logs}}
        """)
    )
    return spec


def _requests(database: Path) -> tuple[list[str], list[int], int]:
    connection = sqlite3.connect(database)
    rows = connection.execute(
        "SELECT p.text, g.seed, g.output_tokens FROM generations g JOIN prompts p ON p.id = g.prompt_id "
        "ORDER BY g.id"
    ).fetchall()
    connection.close()
    return [row[0] for row in rows], [row[1] for row in rows], sum(row[2] for row in rows)


def plain_generate(
    folder: Path, model: JsonObject, prompts: Sequence[str], params: Sequence[JsonObject]
) -> dict[str, float]:
    """Seconds and tokens of one `LLM.generate` in a process of its own, the engine loaded and warm.

    Args:
        folder: To work in.
        model: Keyword arguments of `vllm.LLM`.
        prompts: In the order of asking.
        params: Of `vllm.SamplingParams`, for each prompt.
    """
    job = folder / "job.json"
    job.write_text(json.dumps({"model": model, "prompts": list(prompts), "params": list(params)}))
    result = subprocess.run(
        [sys.executable, "-c", PLAIN, str(job)],
        check=True,
        capture_output=True,
        text=True,
        env={**WORKER_ENVIRONMENT, **os.environ},
    )
    answer: dict[str, float] = json.loads(result.stdout.strip().splitlines()[-1])
    return answer
