"""The campaigns of the golden database, how each is gone on with, and what came of it."""

import gzip
import hashlib
import json
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATABASE = "golden.db"
OUTCOMES = HERE / "outcomes.json"
N_EXAMPLES = 20
SERVED_AT = "http://127.0.0.1:9/v1"
"""Where the served model was asked; it is elsewhere each time it is asked again."""


@dataclass(frozen=True, kw_only=True)
class Golden:
    """One campaign: it was killed at a commit, or stopped by a limit, or had ended."""

    spec: Mapping[str, Any]
    killed_at: int | None = None
    """The commit, counted by the process that runs it, at which it killed itself."""
    going_on: tuple[str, ...] = ()
    """Options of `winnow resume` with which a limit lets it go on."""

    def options_at(self, url: str) -> tuple[str, ...]:
        """All options of `winnow resume`, with the served model at a URL."""
        models = json.dumps(self.spec["models"])
        moved = ("--set", f"models={models.replace(SERVED_AT, url)}") if SERVED_AT in models else ()
        return (*self.going_on, *moved)


WRITES = [
    {"name": "bare", "template": "[{{ input }}]="},
    {"name": "begun", "template": "<s>[{{ input }}]="},
]
"""Prompts of which one spells out the token that the tokenizer puts before every text."""
WARM = [{"name": "warm", "temperature": 1.0, "max_tokens": 12}]


def spec(name: str, objective: str, seed: int, provider: str, **changes: Any) -> dict[str, Any]:
    """A campaign of two models with two prompts each; None takes a key away."""
    chat = {"name": "chats", "provider": provider, "model": "model", "chat": True, **_arguments(provider)}
    made = {
        "name": name,
        "objective": objective,
        "seed": seed,
        "storage": f"sqlite:///{DATABASE}",
        "models": [{"name": "writes", "provider": provider, "model": "model", **_arguments(provider)}, chat],
        "prompts": WRITES,
        "generate_configs": WARM,
        "exclude": [{"model": "chats", "prompt": "begun"}],
        "dataset": {"path": "data.jsonl", "fields": {"id": "id", "input": "input", "target": "target"}},
        "judge": {"type": "contains"},
        "batch_size": 6,
        "execution": {"group_size": 4, "max_loaded": 3},
    }
    return {key: value for key, value in {**made, **changes}.items() if value is not None}


def _arguments(provider: str) -> dict[str, Any]:
    return {"model_args": {"max_model_len": 64, "device": "cpu"} if provider == "transformers" else {}}


def best_mean(name: str, seed: int, provider: str, budget: Any, **changes: Any) -> dict[str, Any]:
    stopping = {"budget": budget, "delta": 0.05}
    return spec(
        name, "best-mean", seed, provider, selector={"name": "row-mean"}, stopping=stopping, **changes
    )


def best_duel(name: str, seed: int, provider: str, budget: Any, **changes: Any) -> dict[str, Any]:
    judge = {"type": "rules", "scorer": {"type": "contains"}, "both_right": "shorter"}
    selector = {"name": "llm-po-bt"}
    stopping = {"budget": budget, "delta": 0.05}
    own = {"judge": judge, "selector": selector, "stopping": stopping}
    return spec(name, "best-duel", seed, provider, **{**own, **changes})


COSTS = {"writes/bare/warm": 1, "writes/begun/warm": 2, "chats/bare/warm": 3}


def certify(name: str, seed: int, provider: str, budget: Any, **changes: Any) -> dict[str, Any]:
    section = {"alpha": 0.8, "cost": "custom", "costs": COSTS}
    own = {
        "certify": section,
        "selector": {"name": "r-eval", "params": {"betting": "wsr"}},
        "stopping": {"budget": budget, "delta": 0.1},
    }
    return spec(name, "certify", seed, provider, **{**own, **changes})


def route(name: str, seed: int, provider: str, budget: Any, **changes: Any) -> dict[str, Any]:
    own = {
        "embedder": {"model": "model"},
        "selector": {"name": "pak-ucb", "params": {"kernel": "linear", "eta": 0.5}},
        "stopping": {"budget": budget},
    }
    return spec(name, "route", seed, provider, **{**own, **changes})


def raised(budget: Any) -> tuple[str, ...]:
    """Options that give a campaign more to spend."""
    return ("--set", f"stopping.budget={json.dumps(budget)}")


SERVED = {
    "models": [
        {
            "name": "served",
            "provider": "openai",
            "model": "served",
            "model_base_url": SERVED_AT,
            "served_identity": "the golden one",
        }
    ],
    "exclude": [],
}
CAMPAIGNS = {
    each.spec["name"]: each
    for each in (
        Golden(spec=best_mean("mean-of-texts", 1, "transformers", 42), killed_at=9),
        Golden(
            spec=best_duel("duel-of-texts", 2, "transformers", {"comparisons": 18}),
            going_on=raised({"comparisons": 36}),
        ),
        Golden(spec=certify("certify-texts", 3, "transformers", 20), killed_at=9),
        Golden(
            spec=route("route-texts", 4, "transformers", {"comparisons": 12}),
            going_on=raised({"comparisons": 24}),
        ),
        Golden(
            spec=best_mean("mean-of-digests", 5, "digest", {"comparisons": 18}),
            going_on=raised({"comparisons": 48}),
        ),
        Golden(spec=best_duel("duel-of-digests", 6, "digest", 36), killed_at=8),
        Golden(
            spec=certify("certify-digests", 7, "digest", {"human_labels": 20, "tokens": 120}),
            going_on=raised({"human_labels": 20, "tokens": 100_000}),
        ),
        Golden(spec=route("route-digests", 8, "digest", 24), killed_at=8),
        Golden(spec=best_mean("served", 9, "openai", 30, **SERVED), killed_at=10),
        Golden(spec=best_mean("ended-mean", 10, "transformers", 18)),
        Golden(spec=best_duel("ended-duel", 11, "digest", 18)),
        Golden(spec=certify("ended-certify", 12, "digest", 20)),
        Golden(spec=route("ended-route", 13, "digest", 12)),
    )
}


def unpack(folder: Path) -> None:
    """Put the database, and all that its campaigns refer to, into a folder in which they can run."""
    with gzip.open(HERE / f"{DATABASE}.gz") as packed, (folder / DATABASE).open("wb") as file:
        shutil.copyfileobj(packed, file)
    place_files(folder)


def place_files(folder: Path) -> None:
    """Put all that the campaigns refer to, by paths relative to where they run, into a folder."""
    shutil.copytree(HERE / "files", folder, dirs_exist_ok=True)


COMPARISONS = """
SELECT r.number, c.position, a.name, b.name, e.key, c.outcome, c.reason, c.answer, c.human_loss, c.auto_loss,
       s.key, s.text, s.finish_reason, s.input_tokens, t.key, t.text, t.finish_reason, t.input_tokens
FROM comparisons c
JOIN rounds r ON r.id = c.round_id
JOIN campaigns m ON m.id = r.campaign_id
JOIN examples e ON e.id = c.example_id
JOIN candidates a ON a.id = c.candidate_a_id
LEFT JOIN candidates b ON b.id = c.candidate_b_id
LEFT JOIN generations s ON s.id = c.generation_a_id
LEFT JOIN generations t ON t.id = c.generation_b_id
WHERE m.name = ? ORDER BY r.number, c.position
"""
DECISIONS = """
SELECT r.number, a.name, d.best_estimate, d.best_lower, d.best_upper, d.stop, d.reason, d.comparisons,
       d.scored, d.input_tokens, d.output_tokens
FROM decisions d
JOIN rounds r ON r.id = d.round_id
JOIN campaigns m ON m.id = r.campaign_id
LEFT JOIN candidates a ON a.id = d.best_candidate_id
WHERE m.name = ? ORDER BY r.number
"""


def outcome(database: Path, name: str) -> dict[str, Any]:
    """A digest of the comparisons of each round of a campaign, texts included, and its decisions."""
    with closing(sqlite3.connect(database)) as connection:
        comparisons = connection.execute(COMPARISONS, (name,)).fetchall()
        decisions = connection.execute(DECISIONS, (name,)).fetchall()
    rounds = sorted({row[0] for row in comparisons})
    return {
        "comparisons": [_digest([row for row in comparisons if row[0] == number]) for number in rounds],
        "decisions": [
            [float(f"{each:.6g}") if isinstance(each, float) else each for each in row] for row in decisions
        ],
    }


def _digest(rows: list[tuple[object, ...]]) -> str:
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]
