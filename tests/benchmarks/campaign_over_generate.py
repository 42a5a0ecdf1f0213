"""Wall time of a campaign over that of one plain `LLM.generate` call on the same requests, engine loaded."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

from tasks.engines.vllm_engine import WORKER_ENVIRONMENT
from tests.benchmarks.campaigns import run
from tests.benchmarks.measurements import Measurement

MODEL = "large"
MAX_TOKENS = 24
"""Every text is this long: the end-of-text token is refused, so that both sides do the same work."""

PLAIN = """
import json, sys, time
from vllm import LLM, SamplingParams
job = json.load(open(sys.argv[1]))
llm = LLM(model=job["model"], dtype="float32", max_model_len=128, enforce_eager=True,
          enable_chunked_prefill=False)
params = [SamplingParams(temperature=0.8, max_tokens=job["max_tokens"], seed=s) for s in job["seeds"]]
llm.generate(job["prompts"][:8], params[:8], use_tqdm=False)
start = time.perf_counter()
outputs = llm.generate(job["prompts"], params, use_tqdm=False)
seconds = time.perf_counter() - start
tokens = sum(len(o.outputs[0].token_ids) for o in outputs)
print(json.dumps({"seconds": seconds, "tokens": tokens}))
"""


def measure(demo: Path) -> Iterator[Measurement]:
    for batch in (64, 512):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            watch = run(_spec(folder, demo, batch), [], folder / "prefect.log")
            prompts, seeds, tokens = _requests(folder)
            plain = _plain(folder, demo, prompts, seeds)
            ratio = watch.seconds / plain["seconds"]
            yield Measurement(
                f"campaign of {len(prompts)} generations in rounds of {batch}, over one LLM.generate call",
                f"{ratio:.2f} ({watch.seconds:.2f} s over {plain['seconds']:.2f} s; "
                f"{tokens} and {plain['tokens']} tokens)",
                "at most 1.10" if batch == 512 else "none: rounds are smaller than vLLM's own batches",
            )


def _spec(folder: Path, demo: Path, batch: int) -> Path:
    spec = folder / "bench.yaml"
    spec.write_text(
        textwrap.dedent(f"""\
        name: bench
        objective: best-mean
        storage: sqlite:///{folder}/bench.db
        models:
          - name: {MODEL}
            model: {demo / MODEL}
            model_args: {{max_model_len: 128, dtype: float32, enforce_eager: true}}
        prompts:
          - {{name: a, template: "{{{{ task }}}} {{{{ input }}}} steps:"}}
          - {{name: b, template: "{{{{ task }}}} {{{{ input }}}} reversed:"}}
          - {{name: c, template: "{{{{ task }}}} {{{{ input }}}}"}}
          - {{name: d, template: "{{{{ task }}}}; {{{{ input }}}} steps:"}}
        generate_configs:
          - {{name: warm, temperature: 0.8, max_tokens: {MAX_TOKENS}}}
        dataset: {{path: {demo}/data/demo.jsonl, fields: {{id: id, input: input, target: target}}}}
        judge: {{type: exact}}
        selector: {{name: row-mean}}
        batch_size: {batch}
        stopping: {{budget: 2048}}
        execution: {{group_size: {batch}, log_folder: {folder}/logs}}
        """)
    )
    return spec


def _requests(folder: Path) -> tuple[list[str], list[int], int]:
    connection = sqlite3.connect(folder / "bench.db")
    rows = connection.execute("SELECT prompt, seed, output_tokens FROM generations ORDER BY id").fetchall()
    connection.close()
    return [row[0] for row in rows], [row[1] for row in rows], sum(row[2] for row in rows)


def _plain(folder: Path, demo: Path, prompts: list[str], seeds: list[int]) -> dict[str, float]:
    job = folder / "job.json"
    job.write_text(
        json.dumps({"model": str(demo / MODEL), "prompts": prompts, "seeds": seeds, "max_tokens": MAX_TOKENS})
    )

    result = subprocess.run(
        [sys.executable, "-c", PLAIN, str(job)],
        check=True,
        capture_output=True,
        text=True,
        env={**WORKER_ENVIRONMENT, **os.environ},
    )
    answer: dict[str, float] = json.loads(result.stdout.strip().splitlines()[-1])
    return answer
