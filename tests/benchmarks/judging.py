"""What judging by a model takes over the plain calls: a round of a campaign beside the same requests.

python -m tests.benchmarks.judging --out .winnow/bench [--providers transformers vllm] [--texts 128]

Judging is the step of a campaign that asks a judge of type llm about all texts of a round, stores its replies
and reads the verdicts. Plain is the loaded engine alone, asked the same requests in the same calls. Both are
timed by the clock and, where the engine is in this process, by the processor.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.benchmarks.tables import Row, told, write
from tests.tiny_models import save_tiny_llama
from winnow.storage.admin.schema import ensure_schema
from winnow.storage.engine.database import Database, open_database
from winnow.storage.models import Judgment
from winnow.storage.queries.costs import costs
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.campaign.session import CampaignSession, running
from winnow.tasks.engines import providers
from winnow.tasks.engines.protocol import Answer, Completion, Engine, ModelRef, Request
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.objectives.round_functions import generate_round, judge_round
from winnow.tasks.rounds.plan import plan_round
from winnow.tasks.rounds.record import decide_round, record_round
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign, reopen_campaign

CONTEXT = 4096
TARGET = "at most 1.05"
TITLE = (
    "A judge of type llm over the same calls of a loaded engine (4 layers of 256, one token a character): "
    "medians of pairs in turn"
)
RUBRIC = {
    "correct": "What the output says is right, and nothing in it contradicts the question.",
    "complete": "It leaves nothing out that the question asks for.",
    "clear": "Somebody who does not know the subject can follow it.",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    parser.add_argument("--providers", nargs="+", default=["transformers", "vllm"])
    parser.add_argument("--texts", type=int, default=128)
    parser.add_argument("--pairs", type=int, default=3)
    options = parser.parse_args()
    providers.PROVIDERS |= {
        "bench-writer": "tests.benchmarks.judging:start_writer",
        "bench-judge": "tests.benchmarks.judging:start_judge",
    }
    with tempfile.TemporaryDirectory() as folder:
        rows = _rows(Path(folder), options.providers, options.texts, options.pairs)
        write("judging", {"judging": TITLE}, {"judging": told(rows)}, options.out)


@dataclass
class Loaded:
    """The engine of the judge, which stays loaded, and the calls that it was asked."""

    engine: Engine
    calls: list[list[Request]] = field(default_factory=list)

    @property
    def joins(self) -> bool:
        return bool(getattr(self.engine, "joins", False))

    @property
    def identity(self) -> str:
        return self.engine.identity

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        self.calls.append(list(requests))
        return self.engine.generate(requests)

    def close(self) -> None:
        """It is needed again."""


class Writer:
    """Writes something of its own to each prompt, at once."""

    identity = "writer"

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        return [
            Completion(
                text=f"To {each.prompt} I say that it is {len(each.prompt)}, as far as I can see.",
                finish_reason="stop",
                input_tokens=1,
                output_tokens=1,
                seconds=0.0,
            )
            for each in requests
        ]

    def close(self) -> None:
        """It holds nothing."""


LOADED: list[Loaded] = []


def start_writer(model: ModelRef, settings: EngineSettings) -> Writer:
    return Writer()


def start_judge(model: ModelRef, settings: EngineSettings) -> Loaded:
    return LOADED[-1]


def _rows(folder: Path, names: Sequence[str], texts: int, pairs: int) -> Iterator[Row]:
    checkpoint = save_tiny_llama(folder / "judge", seed=1, hidden=256, layers=4)
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps(config | {"max_position_embeddings": CONTEXT}))
    for name in names:
        args = {"dtype": "float32", "max_model_len": CONTEXT}
        model = ModelRef(name="judge", provider=name, model=str(checkpoint), model_args=args)
        loaded = Loaded(providers.start_engine(model, EngineSettings(log_folder=folder / "logs")))
        LOADED.append(loaded)
        with closing(loaded.engine):
            for how in ("probabilities", "text"):
                yield _compared(folder, loaded, name, how, texts, pairs)


def _compared(folder: Path, loaded: Loaded, provider: str, how: str, texts: int, pairs: int) -> Row:
    walls, processors, hit = [], [], None
    for pair in range(pairs + 1):
        place = folder / f"{provider}-{how}-{pair}"
        place.mkdir()
        loaded.calls.clear()
        judged, hits = _campaign(place, how, texts)
        plain = _timed(lambda: [loaded.engine.generate(call) for call in list(loaded.calls)])
        if not pair:  # warms up, and alone has not seen the same prompts before
            hit = hits
            continue
        walls.append(judged[0] / plain[0])
        processors.append(judged[1] / plain[1])
    in_process = provider == "transformers"
    return {
        "provider": provider,
        "read": how,
        "calls": str(sum(map(len, loaded.calls))),
        "plain": f"{plain[0]:.1f} s",
        "by the clock": f"{statistics.median(walls):.3f} ({min(walls):.3f} to {max(walls):.3f})",
        "by the processor": f"{statistics.median(processors):.3f}" if in_process else "another process",
        "in the prefix cache": "not told" if hit is None else f"{hit:.0%}",
        "to be": TARGET,
    }


def _campaign(folder: Path, how: str, texts: int) -> tuple[tuple[float, float], float | None]:
    """What judging a round takes, and which share of the judge's prompts its engine had read before."""
    path = _written(folder, how, texts)
    with closing(open_database(f"sqlite:///{folder}/results.db")) as database:
        ensure_schema(database)
        record = open_campaign(database, check_campaign_file(str(path)))
        with running(database, *reopen_campaign(database, record.name, database.url)) as campaign:
            took = _judged(campaign)
        return took, _hit_rate(database)


def _judged(campaign: CampaignSession) -> tuple[float, float]:
    round_ = plan_round(campaign)
    assert round_ is not None
    made = generate_round(campaign, round_)
    comparisons: list[object] = []
    took = _timed(lambda: comparisons.extend(judge_round(campaign, round_, made)))
    record_round(campaign, round_, comparisons, decide_round(campaign, round_, comparisons))  # type: ignore[arg-type]
    return took


def _hit_rate(database: Database) -> float | None:
    with database.reading() as session:
        campaign = campaign_records.get_campaign(session, "bench")
        assert session.query(Judgment).count() > 0
        (of_judge,) = [row for row in costs(session, campaign.id) if row["candidate"] is None]
    rate: float | None = of_judge["cache_hit_rate"]
    return rate


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock and of the processor."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def _written(folder: Path, how: str, texts: int) -> Path:
    rows = [{"id": f"e{n}", "input": f"what is {n} and {7 * n % 101}?", "target": "x"} for n in range(texts)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("writer", "judge"):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps({"name": name}))
    judge = {
        "type": "llm",
        "model": {"name": "judge", "provider": "bench-judge", "model": str(folder / "judge")},
        "rubric": RUBRIC,
        "scale": "1..5",
        "read": how,
        **({"max_tokens": 24, "max_reasks": 0} if how == "text" else {}),
    }
    spec = {
        "name": "bench",
        "objective": "best-mean",
        "models": [{"name": "writer", "provider": "bench-writer", "model": str(folder / "writer")}],
        "prompts": [
            {"name": "plain", "template": "{{ input }}"},
            {"name": "asked", "template": "Q {{ input }}"},
        ],
        "dataset": {
            "path": str(folder / "data.jsonl"),
            "fields": {"id": "id", "input": "input", "target": "target"},
        },
        "judge": judge,
        "selector": {"name": "row-mean"},
        "batch_size": texts,
        "stopping": {"budget": texts},
    }
    path = folder / "bench.yaml"
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return path


if __name__ == "__main__":
    from tests.benchmarks.judging import main  # the providers are found in the module of this name

    main()
