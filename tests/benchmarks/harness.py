"""Time to the winner: lm-eval on every candidate and example of the demo, and our campaign, side by side.

python -m tests.benchmarks.harness --out .winnow/bench --lm-eval PYTHON

PYTHON is an interpreter with lm-eval and the vLLM that Winnow uses. An environment that adds lm-eval and
what it needs to the packages of `.venv`, changing none of them, is made by

    python3 -m venv .winnow/lm-eval
    .venv/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \\
        > "$(echo .winnow/lm-eval/lib/python3*/site-packages)/beside.pth"
    .winnow/lm-eval/bin/pip install --constraint infra/locks/cpu.txt lm-eval==0.4.13

and PYTHON is then .winnow/lm-eval/bin/python. The same checkpoints answer the same prompts with the same
engine settings, and an exact match of what the same pattern extracts is a point. lm-eval gets one process for
each checkpoint with all its tasks, `batch_size auto`, and as many processes at once as the campaign loads
models. Both times include everything from the command to its end: imports, loads, and the campaign's Prefect
server. CPU seconds tell more than wall time on a machine that does other work too.
"""

import argparse
import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks.lm_eval_runs import evaluate
from tests.benchmarks.tables import Row, told, write
from winnow.infra.demo.campaigns.best_mean import BUDGET_SHARE, campaign_text
from winnow.infra.demo.data import EVALUATION_SEED, EXAMPLES_PER_TASK
from winnow.infra.demo.problems import TASKS
from winnow.infra.demo.recipes import RECIPES
from winnow.tasks.setup.yaml_file import parse_spec, read_spec_file
from winnow.tasks.spec.campaign import CampaignSpec

DRAWS = 60_000
"""Problems drawn of a task at most: some have few that differ."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", type=Path, default=Path(".winnow/demo"), help="folder `make demo` filled")
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    parser.add_argument("--lm-eval", type=Path, required=True, help="interpreter with lm-eval")
    parser.add_argument(
        "--examples", type=int, default=EXAMPLES_PER_TASK, help="of each task; the demo's come first"
    )
    parser.add_argument(
        "--at-once", type=int, help="lm-eval's processes; by default the campaign's max_loaded"
    )
    options = parser.parse_args()
    folder = options.out.absolute() / f"harness-{options.examples}-{datetime.now(UTC):%H%M%S}"
    folder.mkdir(parents=True)
    spec = prepared(options.demo.absolute(), folder, options.examples)
    at_once = options.at_once or spec.execution.max_loaded
    rows = told(compared(spec, folder, options.lm_eval.absolute(), at_once))
    write("harness", {"harness": "Time to the winner"}, {"harness": rows}, folder)


def prepared(demo: Path, folder: Path, examples: int) -> CampaignSpec:
    """The demo's campaign over so many examples of each task, in a database of its own."""
    data = folder / "examples.jsonl"
    lines = list(drawn(examples))
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    path = folder / "campaign.yaml"
    path.write_text(campaign_text(demo, data, RECIPES))
    candidates = parse_spec(read_spec_file(path))
    grid = len(lines) * len(candidates.models) * len(candidates.prompts) * len(candidates.generate_configs)
    budget = round(BUDGET_SHARE * grid)
    overrides = [
        f"storage=sqlite:///{folder}/winnow.db",
        f"stopping.budget={budget}",
        f"execution.log_folder={folder}/logs",
    ]
    spec = parse_spec(read_spec_file(path, overrides))
    path.write_text(spec.model_dump_json(exclude_unset=True))
    return spec


def drawn(count: int) -> Iterator[dict[str, object]]:
    """At most `count` different examples of each task, of which the demo's are the first."""
    for task, draw in TASKS.items():
        rng = random.Random(f"{EVALUATION_SEED}/{task}")
        found: dict[str, list[str]] = {}
        for _ in range(DRAWS):
            problem = draw(rng)
            found.setdefault(problem.input, list(problem.target))
            if len(found) == count:
                break
        for number, (text, target) in enumerate(found.items(), start=1):
            yield {"id": f"{task}/{number}", "task": task, "input": text, "target": target}


def compared(spec: CampaignSpec, folder: Path, lm_eval: Path, at_once: int) -> Iterator[Row]:
    """The campaign, lm-eval, and how they compare."""
    before = cpu_seconds()
    ours = campaign(folder)
    middle = cpu_seconds()
    yield row("winnow run", ours, middle - before)
    theirs = exhaustive(spec, folder, lm_eval, at_once)
    after = cpu_seconds()
    yield row(f"lm-eval, {at_once} at once", theirs, after - middle)
    shares = {key: float(ours[key]) / float(theirs[key]) for key in ("wall", "generations", "after start-up")}
    yield {
        "what": "winnow run / lm-eval",
        "winner": "the same" if ours["winner"] == theirs["winner"] else "another",
        "wall time": f"{shares['wall']:.3f}",
        "CPU time": f"{(middle - before) / (after - middle):.3f}",
        "generations": f"{shares['generations']:.3f}",
        "until the first answer": "",
        "after that": f"{shares['after start-up']:.3f}",
    }


def row(what: str, found: dict[str, object], cpu: float) -> Row:
    return {
        "what": what,
        "winner": f"{found['winner']} ({found['mean']:.3f})",
        "wall time": f"{found['wall']:.1f} s",
        "CPU time": f"{cpu:.1f} s",
        "generations": str(found["generations"]),
        "until the first answer": f"{found['start-up']:.1f} s",
        "after that": f"{found['after start-up']:.1f} s",
    }


def campaign(folder: Path) -> dict[str, object]:
    """`winnow run` in a process of its own, until it has decided."""
    started = time.time()
    spec = str(folder / "campaign.yaml")
    command = [sys.executable, "-P", "-m", "winnow.flows.main", "run", spec, "--trust"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with (folder / "winnow.log").open("wb") as log:
        code = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, env=environment).returncode
    wall = time.time() - started
    if code not in (0, 3):  # decided, or the budget was spent
        raise SystemExit(f"winnow run ended with {code}; see {folder / 'winnow.log'}")
    connection = sqlite3.connect(folder / "winnow.db")
    [(winner, estimate)] = connection.execute(
        "SELECT c.name, d.best_estimate FROM decisions d JOIN rounds r ON r.id = d.round_id "
        "JOIN candidates c ON c.id = d.best_candidate_id ORDER BY r.number DESC LIMIT 1"
    ).fetchall()
    [(count, engine, first)] = connection.execute(
        "SELECT count(*), sum(seconds), min(created_at) FROM generations"
    ).fetchall()
    connection.close()
    start_up = datetime.fromisoformat(first).replace(tzinfo=UTC).timestamp() - started
    print(f"the campaign's engines were busy for {engine:.1f} s", flush=True)
    return {
        "winner": winner,
        "mean": estimate,
        "wall": wall,
        "generations": count,
        "start-up": start_up,
        "after start-up": wall - start_up,
    }


def exhaustive(spec: CampaignSpec, folder: Path, lm_eval: Path, at_once: int) -> dict[str, object]:
    """lm-eval on everything."""
    data = Path(spec.dataset.path)
    done, wall = evaluate(spec, data, lm_eval, folder / "lm-eval", at_once)
    means = {name: mean for each in done for name, mean in each.means.items()}
    best = sorted(means, key=lambda name: means[name], reverse=True)
    print("lm-eval's best: " + ", ".join(f"{name} {means[name]:.4f}" for name in best[:4]), flush=True)
    start_up = max(each.start_up for each in done)
    print(
        "lm-eval's processes, start-up and rest: "
        + ", ".join(f"{each.start_up:.0f} + {each.rest:.0f} s" for each in done),
        flush=True,
    )
    return {
        "winner": best[0],
        "mean": means[best[0]],
        "wall": wall,
        "generations": sum(each.generations for each in done),
        "start-up": start_up,
        "after start-up": wall - start_up,
    }


def cpu_seconds() -> float:
    """What ended child processes have used so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
