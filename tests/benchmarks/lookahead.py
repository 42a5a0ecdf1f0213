"""Time to a decision with 0, 1, 2, 4, 8 rounds ahead and with `auto`, where texts differ much in length.

python -m tests.benchmarks.lookahead --out .winnow/bench [--data FOLDER] [--seeds 3]

Campaigns: real campaigns on an engine that sleeps for as long as a machine with so many places would write.
Simulated: score tables of a folder, in units of the mean time of a text, for machines of several sizes.
Lengths are log-normal and cut to 8 to 512 tokens; a place takes the next text as its last one ends.
"""

import argparse
import heapq
import json
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sqlalchemy import select

from tests.benchmarks.champion.worlds import Table, tables
from tests.benchmarks.tables import Row, told, write
from winnow.algorithms.protocols import Batch, round_rng
from winnow.algorithms.registry import create_selector
from winnow.flows.run.launch import launching
from winnow.storage.engine.database import open_database
from winnow.storage.models import Generation, Prompt
from winnow.storage.records.rounds import next_round_number
from winnow.tasks.campaign.placement import rounds_ahead
from winnow.tasks.campaign.session import CampaignSession, running
from winnow.tasks.engines import providers
from winnow.tasks.engines.protocol import Completion, Request, Sampling
from winnow.tasks.objectives.runner import Runner
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import reopen_campaign

DELTA = 0.05
BATCH = 64
AHEAD: tuple[int | str, ...] = (0, 1, 2, 4, 8, "auto")
SIGMA = 1.2
SHORTEST, LONGEST, MEDIAN = 8, 512, 48
TOKEN_SECONDS = 0.002
PLACES = 64
PROMPTS, EXAMPLES = 20, 600
WARM_UP = Request(prompt="0 0", sampling=Sampling(), seed=0)
TITLES = {
    "campaigns": f"Campaigns: {PROMPTS} candidates x {EXAMPLES} examples, {PLACES} places, a token in "
    f"{1000 * TOKEN_SECONDS:g} ms",
    "simulated": f"Simulated on score tables: champion, delta {DELTA}, rounds of {BATCH}; time over that "
    "of the barrier, and comparisons over those of the barrier",
    "ratios": "Geometric means over the tables",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    parser.add_argument("--data", type=Path, help="folder with score tables, to simulate on")
    parser.add_argument("--only", default="", help="tables with this in their name")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--places", type=int, nargs="+", default=[64, 256, 1024])
    options = parser.parse_args()
    found = {"campaigns": told(campaigns(AHEAD))}
    if options.data:
        worlds = [table for table in tables(options.data) if options.only in table.name]
        found["simulated"] = told(_simulated(worlds, options.places, options.seeds))
        found["ratios"] = told(_ratios(found["simulated"]))
    write("lookahead", TITLES, found, options.out)


def lengths(size: int | tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Tokens of texts."""
    return np.clip(MEDIAN * rng.lognormal(0.0, SIGMA, size), SHORTEST, LONGEST).round()


class Places:
    """A machine that writes so many texts at once, each a token a tick; texts are taken up in their order."""

    def __init__(self, count: int) -> None:
        self._free = [0.0] * count
        self.busy = 0.0

    def end_of(self, durations: Sequence[float], now: float) -> float:
        """When the last of these texts is written."""
        self.busy += sum(durations)
        last = now
        for duration in durations:
            end = max(now, heapq.heappop(self._free)) + duration
            heapq.heappush(self._free, end)
            last = max(last, end)
        return last


class Text(NamedTuple):
    """What was asked, and how long the answer was."""

    model: str
    prompt: str
    tokens: int


class Measured(NamedTuple):
    """A campaign that ended."""

    seconds: float
    """From the first plan to the decision, engines being loaded and warm."""
    texts: Sequence[Text]
    """In the order in which they were stored."""
    comparisons: int
    rounds: int
    ahead: int
    """Rounds in flight beside the first."""

    @property
    def one_call(self) -> float:
        """Seconds that a machine takes for the same texts where all are asked for at once."""
        return Places(PLACES).end_of([each.tokens * TOKEN_SECONDS for each in self.texts], 0.0)


def campaigns(several: Sequence[int | str], **changes: object) -> Iterator[Row]:
    """A row for each campaign with so many rounds ahead, or "auto"."""
    barrier = 0.0
    for ahead in several:
        found = campaign(ahead, **changes)
        barrier = barrier or found.seconds
        yield {
            "lookahead": f"{ahead} ({found.ahead})" if ahead == "auto" else str(ahead),
            "seconds": f"{found.seconds:.1f}",
            "over the barrier": f"{found.seconds / barrier:.2f}",
            "over one call": f"{found.seconds / found.one_call:.2f}",
            "comparisons": str(found.comparisons),
            "rounds": str(found.rounds),
        }


class HeavyTailedEngine:
    """Sleeps for as long as a machine would write, and is right as often as the prompt says."""

    identity, joins = "heavy-tailed", True

    def __init__(self) -> None:
        self._places = Places(PLACES)
        self._lock = threading.Lock()

    def generate(self, requests):
        answers = [self.answer(each.prompt) for each in requests]
        with self._lock:
            now = time.monotonic()
            end = self._places.end_of([each.output_tokens * TOKEN_SECONDS for each in answers], now)
        time.sleep(max(0.0, end - now))
        return answers

    def answer(self, prompt: str) -> Completion:
        which, number = prompt.split()
        rng = np.random.default_rng([int(which), int(number)])
        right = rng.random() < 0.5 + 0.015 * int(which)
        tokens = int(lengths(1, rng)[0])
        return Completion(
            text=number if right else "?",
            finish_reason="stop",
            input_tokens=1,
            output_tokens=tokens,
            seconds=tokens * TOKEN_SECONDS,
        )

    def close(self) -> None:
        """Nothing is held."""


def start_heavy(model, settings):
    return HeavyTailedEngine()


def campaign(ahead: int | str, **changes: object) -> Measured:
    """A campaign with so many rounds ahead, and whatever else its file says."""
    providers.PROVIDERS["heavy"] = "tests.benchmarks.lookahead:start_heavy"
    with tempfile.TemporaryDirectory() as folder:
        checked = check_campaign_file(str(_spec(Path(folder), lookahead=ahead, **changes)))
        with launching() as launch:
            launch.store(checked)
        storage, name = checked.spec.storage, checked.spec.name
        with closing(open_database(storage)) as database:
            with running(database, *reopen_campaign(database, name, storage)) as campaign:
                for model in campaign.checked.models:
                    campaign.engines.generate(model, [WARM_UP])
                started = time.perf_counter()
                _run(campaign)
                seconds = time.perf_counter() - started
                told_in_all = campaign.allowance.answered
            with database.reading() as session:
                rounds = next_round_number(session, campaign.record.id)
                query = select(Generation.model, Prompt.text, Generation.output_tokens)
                query = query.join(Prompt, Prompt.id == Generation.prompt_id).order_by(Generation.id)
                texts = [Text(*row) for row in session.execute(query)]
            return Measured(seconds, texts, told_in_all, rounds, checked.lookahead)


def _run(campaign: CampaignSession) -> None:
    """All rounds, by plain calls: Prefect takes the same for each kind."""
    with Runner(campaign) as runner:
        runner.run()


def _spec(folder: Path, **changes: object) -> Path:
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text("{}")
    rows = [{"id": f"e{n}", "input": str(n), "target": str(n)} for n in range(EXAMPLES)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {
        "name": "lookahead",
        "objective": "best-mean",
        "storage": f"sqlite:///{folder}/winnow.db",
        "models": [{"name": "model", "provider": "heavy", "model": str(folder / "model")}],
        "prompts": [{"name": f"p{n}", "template": f"{n} {{{{ input }}}}"} for n in range(PROMPTS)],
        "dataset": {
            "path": str(folder / "data.jsonl"), "fields": {"id": "id", "input": "input", "target": "target"}
        },
        "judge": {"type": "exact"},
        "selector": {"name": "champion"},
        "batch_size": BATCH,
        "stopping": {"budget": PROMPTS * EXAMPLES, "delta": DELTA},
        "execution": {"group_size": PLACES, "log_folder": str(folder / "logs")},
        **changes,
    }  # fmt: skip
    path = folder / "campaign.yaml"
    path.write_text(json.dumps(spec))  # JSON is YAML
    return path


def simulate(scores: np.ndarray, texts: np.ndarray, ahead: int, places: int, seed: int) -> tuple[float, int]:
    """Time until nothing is in flight any more, and comparisons, of one campaign.

    Args:
        scores: Shape (K, N).
        texts: Shape (K, N), how long each text takes.
        ahead: Rounds in flight beside the first.
        places: Texts written at once.
        seed: Of the campaign.
    """
    selector = create_selector(
        "champion",
        n_arms=scores.shape[0],
        n_examples=scores.shape[1],
        delta=DELTA,
        batch_size=BATCH,
    )
    machine, now, comparisons, planned = Places(places), 0.0, 0, 0
    in_flight: list[tuple[Batch, float]] = []
    while True:
        while len(in_flight) <= ahead and len(batch := selector.ask(round_rng(seed, planned))):
            end = machine.end_of(texts[batch.arms, batch.examples].tolist(), now)
            in_flight.append((batch, end))
            planned += 1
        if not in_flight:
            return now, comparisons
        batch, end = in_flight.pop(0)
        now = max(now, end)
        selector.tell(batch, scores[batch.arms, batch.examples])
        comparisons += len(batch)


def _simulated(worlds: Sequence[Table], sizes: Sequence[int], seeds: int) -> Iterator[Row]:
    for table in worlds:
        for places in sizes:
            found = {ahead: _mean(table, ahead, places, seeds) for ahead in AHEAD}
            barrier = found[0]
            yield {
                "table": f"{table.name} {table.scores.shape[0]} x {table.scores.shape[1]}",
                "places": str(places),
                **{
                    f"L = {ahead}": f"{seconds / barrier[0]:.2f}, {comparisons / barrier[1]:.2f}"
                    for ahead, (seconds, comparisons) in found.items()
                },
                "auto is": str(rounds_ahead(places, BATCH, table.scores.size)),
            }


def _mean(table: Table, ahead: int | str, places: int, seeds: int) -> tuple[float, float]:
    number = rounds_ahead(places, BATCH, table.scores.size) if ahead == "auto" else int(ahead)
    runs = []
    for seed in range(seeds):
        texts = lengths(table.scores.shape, np.random.default_rng([seed, 1]))
        runs.append(simulate(table.scores, texts, number, places, seed))
    return float(np.mean([run[0] for run in runs])), float(np.mean([run[1] for run in runs]))


def _ratios(rows: Sequence[Row]) -> Iterator[Row]:
    for places in dict.fromkeys(row["places"] for row in rows):
        mine = [row for row in rows if row["places"] == places]
        times = {
            key: np.array([float(row[key].partition(",")[0]) for row in mine])
            for key in mine[0]
            if key.startswith("L =")
        }
        best = np.min(list(times.values()), axis=0)
        yield {
            "places": places,
            **{key: f"{np.exp(np.log(each).mean()):.2f}" for key, each in times.items()},
            "auto over the best, at most": f"{(times['L = auto'] / best).max():.2f}",
        }


if __name__ == "__main__":
    main()
