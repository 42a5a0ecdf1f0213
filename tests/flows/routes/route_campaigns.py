"""Campaigns that route between scripted models, each of which is right on prompts of one type."""

import json
import os
from functools import partial
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import campaign_processes as processes
from campaign_processes import Kill, rows
from campaigns import write_spec
from scripted_engines import ScriptedEngine, letter
from tiny_models import save_tiny_llama

BATCH_SIZE = 4
BUDGET = 48
N_EXAMPLES = 56
TYPES = ("count", "spell")
EXPERTS = {"count": "counter/plain", "spell": "speller/plain"}
"""Who is right, by type."""
PROVIDERS = {name: f"route_campaigns:start_{name}" for name in ("counts", "spells", "does_all")}
"""Provider -> how `tasks.engines.providers.PROVIDERS` names it."""


def start_counts(model, settings):
    """Is right on prompts to count alone."""
    return ScriptedEngine(lambda prompt: letter(prompt, wrong_in=0) if "count" in prompt else "?")


def start_spells(model, settings):
    """Is right on prompts to spell alone."""
    return ScriptedEngine(lambda prompt: letter(prompt, wrong_in=0) if "spell" in prompt else "?")


def start_does_all(model, settings):
    """Is always right."""
    return ScriptedEngine(lambda prompt: letter(prompt, wrong_in=0))


def write_route(folder: Path, **changes) -> Path:
    """Two candidates, prompts of two types, and an embedder with random weights, which tells them apart.

    Args:
        folder: Gets the models, the data and the spec; the campaign is to be run from there.
        changes: Keys of the spec to set; None takes one away.
    """
    for seed, name in enumerate(("counter", "speller", "newcomer", "embedder")):
        if not (folder / name).exists():
            save_tiny_llama(folder / name, seed=seed)
    write_prompts(folder / "data.jsonl", range(N_EXAMPLES))
    spec = {
        "name": "survivor",
        "objective": "route",
        "seed": 3,
        "storage": f"sqlite:///{folder}/winnow.db",
        "models": [model("counter", "counts"), model("speller", "spells")],
        "prompts": [{"name": "plain", "template": "{{ input }}="}],
        "dataset": {"path": "data.jsonl", "fields": {"id": "id", "input": "input", "target": "target"}},
        "judge": {"type": "exact"},
        "embedder": {"model": "embedder"},
        "prompt_type": "type",
        "selector": {"name": "pak-ucb", "params": {"kernel": "linear", "eta": 0.5}},
        "batch_size": BATCH_SIZE,
        "stopping": {"budget": BUDGET},
        "execution": {"group_size": 2, "max_loaded": 3, "log_folder": f"{folder}/logs"},
    }
    return write_spec(folder, {key: value for key, value in {**spec, **changes}.items() if value is not None})


def model(name: str, provider: str) -> dict:
    return {"name": name, "provider": provider, "model": name, "model_args": {"max_model_len": 64}}


def text(kind: str, number: int) -> str:
    """A prompt of a type, about a number."""
    return f"{f'{kind} ' * 4}{number}"


def answer(number: int) -> str:
    """What is right for a prompt about a number."""
    return letter(str(number), wrong_in=0)


def write_prompts(path: Path, numbers: range) -> Path:
    """Prompts about numbers, the even ones to count."""
    with path.open("w") as file:
        for number in numbers:
            kind = TYPES[number % 2]
            row = {"id": f"e{number}", "input": text(kind, number), "target": answer(number), "type": kind}
            file.write(json.dumps(row) + "\n")
    return path


def begin(context: ForkServerContext, folder: Path, storage: str, kill: Kill | None = None) -> BaseProcess:
    """Resume the stored campaign in a process of its own, which writes down what it generates and embeds."""
    for name in ("asked.jsonl", "embedded.jsonl"):
        (folder / name).unlink(missing_ok=True)
    process = context.Process(target=_resume, args=(str(folder), storage, kill))
    process.start()
    return process


def begin_answering(
    context: ForkServerContext, folder: Path, storage: str, kill: Kill | None = None
) -> BaseProcess:
    """Have a prompt to spell that arrives answered in a process of its own; its text is new."""
    process = context.Process(target=_answer, args=(str(folder), storage, kill))
    process.start()
    return process


def embedded_texts(folder: Path) -> list[str]:
    """Every text that the last process embedded, in order."""
    path = folder / "embedded.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def history(folder: Path) -> dict[str, list]:
    """All that must be the same however often a campaign was killed."""
    return {
        **processes.history(folder),
        "embeddings": rows(folder, "SELECT embedder, digest, vector FROM embeddings ORDER BY digest"),
        "candidates": rows(folder, "SELECT position, name, first_round FROM candidates ORDER BY position"),
    }


def _resume(folder: str, storage: str, kill: Kill | None) -> None:
    _settle(folder)
    processes.run(storage, kill)


def _answer(folder: str, storage: str, kill: Kill | None) -> None:
    from winnow.storage.engine.database import open_database
    from winnow.tasks.objectives.route.arrivals import answer_prompts, store_arrival, typed_prompt
    from winnow.tasks.setup.open_campaign import reopen_campaign

    _settle(folder)
    if kill is not None:
        processes.kill_at_commit(kill)
    database = open_database(storage)
    prompt = typed_prompt(text("spell", 99), [answer(99)], ["type=spell"])
    reopened = partial(reopen_campaign, database, "survivor", storage)
    positions = store_arrival(database, *reopened(), [prompt])
    texts = []
    answer_prompts(database, *reopened(), positions, lambda answered: texts.append(answered.text))
    assert texts == [answer(99)]


def _settle(folder: str) -> None:
    from winnow.tasks.engines import providers

    os.chdir(folder)
    providers.PROVIDERS.update(PROVIDERS)
    _write_down_work(Path(folder))


def _write_down_work(folder: Path) -> None:
    """Have the engines and the embedder leave a line for every text before they begin with it."""
    from winnow.tasks.embedding.sentence_model import SentenceModel
    from winnow.tasks.engines.pool.pool import EnginePool

    generate, embed = EnginePool.generate, SentenceModel.embed

    def generate_and_tell(self, model, requests, **options):
        with (folder / "asked.jsonl").open("a") as file:
            file.writelines(json.dumps([model.name, each.prompt, each.seed]) + "\n" for each in requests)
        return generate(self, model, requests, **options)

    def embed_and_tell(self, texts):
        with (folder / "embedded.jsonl").open("a") as file:
            file.writelines(json.dumps(each) + "\n" for each in texts)
        return embed(self, texts)

    EnginePool.generate = generate_and_tell
    SentenceModel.embed = embed_and_tell
