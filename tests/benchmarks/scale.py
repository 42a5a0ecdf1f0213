"""Large campaigns step by step on an engine that answers at once: what is left is Winnow's own work.

python -m tests.benchmarks.scale --out .winnow/bench

Seconds are the processor's, of the whole process: what else runs on the machine is not in them.
"""

import argparse
import gc
import json
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.benchmarks.tables import Row, told, write
from winnow.flows.main import GARBAGE
from winnow.flows.prefect_support.environment import settle_environment
from winnow.flows.run.launch import launching
from winnow.storage.engine.database import open_database
from winnow.tasks.campaign.replay import restored
from winnow.tasks.campaign.session import CampaignSession, running
from winnow.tasks.engines import providers
from winnow.tasks.engines.protocol import Answer, Completion, ModelRef, Request
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.objectives.round_functions import generate_round, judge_round
from winnow.tasks.rounds.plan import plan_round
from winnow.tasks.rounds.record import decide_round, record_round
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import reopen_campaign

Value = TypeVar("Value")

SIZES = ((2, 10, 1, 2_048), (10, 100, 10, 1_000), (2, 2, 1, 1_000_000), (2, 10, 1, 100_000))
"""Models, prompts, ways of sampling and examples of each campaign; the first is the demo's."""

ROUND = 512
NAME = "scale"
TITLE = f"Campaigns of `champion` in rounds of {ROUND} on SQLite; milliseconds of the processor"
STEPS = ("plan", "generate", "judge", "decide", "record")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    parser.add_argument("--rounds", type=int, default=100, help="of each campaign; 100 where not given")
    parser.add_argument("--sizes", type=int, nargs="+", default=range(len(SIZES)), help="which campaigns")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    settle_environment(options.out / "prefect")
    gc.set_threshold(GARBAGE)  # as the command has it
    rows = told(_measured(*SIZES[size], options.rounds) for size in options.sizes)
    write("scale", {"scale": TITLE}, {"scale": rows}, options.out)


class InstantEngine:
    """Says at once what is right for every example whose number the candidate's divides."""

    identity, joins = "instant", False
    seconds = 0.0
    """Of the processor, of all of them."""

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        started = time.process_time()
        answers: list[Answer] = [_answer(each.prompt) for each in requests]
        InstantEngine.seconds += time.process_time() - started
        return answers

    def close(self) -> None:
        """Nothing is held."""


def start(model: ModelRef, settings: EngineSettings) -> InstantEngine:
    return InstantEngine()


def _answer(prompt: str) -> Completion:
    which, number = map(int, re.findall(r"\d+", prompt))
    text = f"{number}" if (number * 2654435761 >> 7) % 97 < 40 + which % 50 else "none"
    return Completion(text=text, finish_reason="stop", input_tokens=20, output_tokens=3, seconds=0.01)


@dataclass(slots=True)
class Meter:
    """Processor seconds of each step, added up."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    longest: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def timed(self, step: str, work: Callable[..., Value], *given: object) -> Value:
        started = time.process_time()
        done = work(*given)
        took = time.process_time() - started
        self.seconds[step] += took
        self.longest[step] = max(self.longest[step], took)
        return done


def _measured(models: int, prompts: int, configs: int, examples: int, rounds: int) -> Row:
    providers.PROVIDERS["instant"] = f"{__name__}:start"
    meter, InstantEngine.seconds = Meter(), 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = _spec(Path(folder), models, prompts, configs, examples)
        storage = f"sqlite:///{folder}/winnow.db"
        with launching() as launch:
            meter.timed("store", launch.store, meter.timed("check", check_campaign_file, str(path)))
        with closing(open_database(storage)) as database:
            stored = meter.timed("reopen", reopen_campaign, database, NAME, storage)
            with running(database, *stored) as campaign:
                memory = [_resident()]
                asked = sum(_asked(campaign, meter, rounds, memory))
                meter.seconds["generate"] -= InstantEngine.seconds
            with database.reading() as session:
                meter.timed("replay", restored, session, *stored)
    before = ("check", "store", "reopen", "replay")
    return {
        "candidates x examples": f"{models * prompts * configs} x {examples}",
        ", ".join(f"{each} (s)" for each in before): ", ".join(f"{meter.seconds[at]:.1f}" for at in before),
        "comparisons": f"{asked} in {len(memory) - 1} rounds",
        "a comparison": f"{1e3 * sum(meter.seconds[step] for step in STEPS) / asked:.3f}",
        **{step: f"{1e3 * meter.seconds[step] / asked:.3f}" for step in STEPS},
        "longest plan": f"{1e3 * meter.longest['plan']:.0f}",
        "MiB, begin to end": f"{memory[0]:.0f} to {memory[-1]:.0f}",
    }


def _asked(campaign: CampaignSession, meter: Meter, rounds: int, memory: list[float]) -> Iterator[int]:
    """The comparisons of each round."""
    for _ in range(rounds):
        planned = meter.timed("plan", plan_round, campaign)
        if planned is None:
            return
        texts = meter.timed("generate", generate_round, campaign, planned)
        comparisons = meter.timed("judge", judge_round, campaign, planned, texts)
        decision = meter.timed("decide", decide_round, campaign, planned, comparisons)
        meter.timed("record", record_round, campaign, planned, comparisons, decision)
        memory.append(_resident())
        yield len(planned.examples)
        if decision.stop:
            return


def _resident() -> float:
    """Memory that this process holds, in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def _spec(folder: Path, models: int, prompts: int, configs: int, examples: int) -> Path:
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text("{}")
    with (folder / "data.jsonl").open("w") as data:
        for n in range(examples):
            data.write(json.dumps({"id": f"e{n}", "input": f"sum {n} of things", "target": str(n)}) + "\n")
    model = {"provider": "instant", "model": str(folder / "model")}
    spec = {
        "name": NAME,
        "objective": "best-mean",
        "storage": f"sqlite:///{folder}/winnow.db",
        "models": [{"name": f"m{n}", **model, "model_args": {"seed": n}} for n in range(models)],
        "prompts": [{"name": f"p{n}", "template": f"Way {n}: {{{{ input }}}} ="} for n in range(prompts)],
        "generate_configs": [{"name": f"g{n}", "temperature": n / 99} for n in range(configs)],
        "dataset": {
            "path": str(folder / "data.jsonl"), "fields": {"id": "id", "input": "input", "target": "target"}
        },
        "judge": {"type": "exact"},
        "selector": {"name": "champion"},
        "batch_size": ROUND,
        "stopping": {"budget": 10_000_000, "delta": 0.05},
        "execution": {"log_folder": str(folder / "logs"), "group_size": ROUND},
    }  # fmt: skip
    path = folder / "campaign.yaml"
    path.write_text(json.dumps(spec))  # JSON is YAML
    return path


if __name__ == "__main__":
    main()
