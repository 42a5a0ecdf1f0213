"""Campaigns of duels on tiny or scripted models, with rules or a scripted model as judge."""

import json
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import campaign_processes as processes
from campaign_processes import Kill, rows
from campaigns import write_spec
from scripted_engines import SCRIPTED
from tiny_models import save_tiny_llama

BATCH_SIZE = 8
BUDGET = 24
N_EXAMPLES = 6
COLUMNS = {
    "round": "r.number",
    "position": "c.position",
    "a": "a.name",
    "b": "b.name",
    "example": "e.key",
    "outcome": "c.outcome",
    "reason": "c.reason",
    "detail": "c.detail",
    "answer": "c.answer",
    "text_a": "s.text",
    "text_b": "t.text",
    "replicate_a": "s.replicate",
    "replicate_b": "t.replicate",
}
"""What is known of a duel, and what that is in the database."""
RULES = {"type": "rules", "scorer": {"type": "contains"}, "both_right": "shorter"}


def model_judge(provider: str, **params) -> dict:
    """An LLM judge whose model is one of `SCRIPTED`, or real; its checkpoint is that of model one."""
    return {"type": "llm", "models": [{"name": "judge", "provider": provider, "model": "model-1"}], **params}


def write_duels(
    folder: Path, provider: str = "transformers", *, storage: str | None = None, **changes
) -> Path:
    """Two models, asked greedily and with a temperature: four candidates on few examples, which repeat.

    Args:
        folder: Gets the models, the data and the spec; the campaign is to be run from there.
        provider: Of both models.
        storage: The URL of its database; by default a file in the folder.
        changes: Keys of the spec to set; None takes one away.
    """
    for number in (1, 2):
        save_tiny_llama(folder / f"model-{number}", seed=number)
    write_examples(folder, N_EXAMPLES)
    if storage:
        (folder / processes.STORAGE).write_text(storage)
    spec = {
        "name": "survivor",
        "objective": "best-duel",
        "seed": 11,
        "storage": storage or f"sqlite:///{folder}/winnow.db",
        "models": [model("one", provider, "model-1"), model("two", provider, "model-2")],
        "prompts": [{"name": "plain", "template": "{{ input }}="}],
        "generate_configs": [
            {"name": "greedy", "temperature": 0.0, "max_tokens": 8},
            {"name": "warm", "temperature": 0.9, "max_tokens": 8},
        ],
        "dataset": {"path": "data.jsonl", "fields": {"id": "id", "input": "input", "target": "target"}},
        "judge": RULES,
        "selector": {"name": "llm-po-bt"},
        "batch_size": BATCH_SIZE,
        "stopping": {"budget": BUDGET, "delta": 0.05},
        "execution": {"group_size": 4, "max_loaded": 3, "log_folder": f"{folder}/logs"},
    }
    return write_spec(folder, {key: value for key, value in {**spec, **changes}.items() if value is not None})


def model(name: str, provider: str, checkpoint: str) -> dict:
    return {"name": name, "provider": provider, "model": checkpoint, "model_args": {"max_model_len": 64}}


def write_examples(folder: Path, count: int) -> None:
    with (folder / "data.jsonl").open("w") as file:
        for i in range(count):
            row = {"id": f"e{i}", "input": f"{i * 7} and {i}", "target": "aeioustrn"[i % 9]}
            file.write(json.dumps(row) + "\n")


def start(context: ForkServerContext, folder: Path, storage: str, kill: Kill | None = None) -> BaseProcess:
    """Resume the stored campaign in a process of its own; see `asked_texts` for what it writes down."""
    (folder / "asked.jsonl").unlink(missing_ok=True)
    process = context.Process(target=_resume, args=(str(folder), storage, kill))
    process.start()
    return process


def stored_texts(folder: Path) -> list[tuple[str, str, int]]:
    """(model, prompt, seed) of every committed generation, those of judges included."""
    query = "SELECT g.model, p.text, g.seed FROM generations g JOIN prompts p ON p.id = g.prompt_id"
    return rows(folder, query)


def asked_texts(folder: Path) -> list[tuple[str, str, int]]:
    """(model, prompt, seed) of every text that the last process asked for."""
    return processes.asked_texts(folder)


def duels(folder: Path) -> list[dict]:
    """Every duel with its candidates, example, answers and outcome, in planned order."""
    found = rows(
        folder,
        f"SELECT {', '.join(COLUMNS.values())} FROM comparisons c "
        "JOIN rounds r ON r.id = c.round_id JOIN examples e ON e.id = c.example_id "
        "JOIN candidates a ON a.id = c.candidate_a_id JOIN candidates b ON b.id = c.candidate_b_id "
        "LEFT JOIN generations s ON s.id = c.generation_a_id "
        "LEFT JOIN generations t ON t.id = c.generation_b_id ORDER BY r.number, c.position",
    )
    return [dict(zip(COLUMNS, row, strict=True)) for row in found]


def history(folder: Path) -> dict[str, list]:
    """All that must be the same however often a campaign was killed."""
    return {
        **processes.history(folder),
        "duels": duels(folder),
        "judgments": rows(
            folder,
            "SELECT r.number, c.position, g.number, g.judge, g.presentation_order, g.repeat, g.attempt, "
            "g.verdict, g.reason, t.key FROM judgments g JOIN comparisons c ON c.id = g.comparison_id "
            "JOIN rounds r ON r.id = c.round_id LEFT JOIN generations t ON t.id = g.generation_id "
            "ORDER BY r.number, c.position, g.number",
        ),
    }


def _resume(folder: str, storage: str, kill: Kill | None) -> None:
    import os

    from winnow.tasks.engines.known_providers import PROVIDERS

    os.chdir(folder)
    PROVIDERS.update(SCRIPTED)
    _write_down_requests(Path(folder) / "asked.jsonl")
    processes.run(storage, kill)


def _write_down_requests(path: Path) -> None:
    """Have the pool leave a line for every request, to whatever engine, before it is answered."""
    from winnow.tasks.engines.pool.pool import EnginePool

    answer = EnginePool.generate

    def generate(self, model, requests, **options):
        with path.open("a") as file:
            file.writelines(json.dumps([model.name, each.prompt, each.seed]) + "\n" for each in requests)
        return answer(self, model, requests, **options)

    EnginePool.generate = generate
