"""Make the files and checkpoints of the demo, as far as they are missing."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from winnow.infra.demo.artefacts import fingerprint_of, is_current, replacing
from winnow.infra.demo.campaigns.best_duel import duel_text
from winnow.infra.demo.campaigns.best_mean import campaign_text
from winnow.infra.demo.campaigns.certify import certificate_text, label_lines, unlabelled_lines
from winnow.infra.demo.campaigns.quick import quick_lines, quick_text
from winnow.infra.demo.campaigns.route import route_text, stream_lines
from winnow.infra.demo.data import evaluation_examples
from winnow.infra.demo.processes import Job, train_here, train_in_processes
from winnow.infra.demo.recipes import CERTIFIED, DUELLISTS, JUDGE, QUICK, RECIPES, ROUTED, Recipe

Report = Callable[[str], None]
Train = Callable[[Sequence[Job], Callable[[Job], None]], None]


def prepare_demo(
    folder: Path, report: Report, recipes: Sequence[Recipe] = RECIPES, train: Train = train_in_processes
) -> Path:
    """Make the checkpoints, `data/demo.jsonl` and `campaign.yaml` in `folder`, unless they exist.

    Files and checkpoints that were made with the same settings stay unchanged, also a campaign's file that
    the user has edited. So a second call returns at once, and a call after a crash only does the rest. The
    campaign's file contains `folder` as it is given here, so a relative path is valid only in the same
    working folder.

    Args:
        folder: Folder of the demo, created if missing.
        report: Called with one line of plain text per step.
        recipes: Recipes of the checkpoints.
        train: Function that trains missing checkpoints; called only if some are missing.

    Returns:
        Path of the campaign's file.

    Raises:
        TrainingFailed: If a checkpoint could not be trained; finished checkpoints are kept.
    """
    data = _data(folder)
    text = campaign_text(folder, data, recipes)
    return _prepare(folder, report, recipes, train, folder / "campaign.yaml", text, {data: _example_lines()})


def prepare_duels(
    folder: Path,
    report: Report,
    recipes: Sequence[Recipe] = DUELLISTS,
    judge: Recipe = JUDGE,
    train: Train = train_in_processes,
) -> Path:
    """Prepare `duel.yaml`, a campaign of duels, and the checkpoint of its judge; see `prepare_demo`."""
    data = _data(folder)
    text = duel_text(folder, data, recipes, judge)
    files = {data: _example_lines()}
    return _prepare(folder, report, [*recipes, judge], train, folder / "duel.yaml", text, files)


def prepare_certificate(
    folder: Path, report: Report, recipes: Sequence[Recipe] = CERTIFIED, train: Train = train_in_processes
) -> Path:
    """Prepare `certify.yaml`, a certify campaign, its unlabelled examples and labels; see `prepare_demo`."""
    data, labels = folder / "data" / "unlabelled.jsonl", folder / "data" / "labels.jsonl"
    text = certificate_text(folder, data, labels, recipes)
    files = {data: unlabelled_lines(), labels: label_lines()}
    return _prepare(folder, report, recipes, train, folder / "certify.yaml", text, files)


def prepare_routes(
    folder: Path, report: Report, recipes: Sequence[Recipe] = ROUTED, train: Train = train_in_processes
) -> Path:
    """Prepare `route.yaml`, a route campaign, and its stream of prompts; see `prepare_demo`."""
    stream = folder / "data" / "stream.jsonl"
    text = route_text(folder, stream, recipes)
    return _prepare(folder, report, recipes, train, folder / "route.yaml", text, {stream: stream_lines()})


def prepare_quick(
    folder: Path, report: Report, recipes: Sequence[Recipe] = QUICK, train: Train = train_here
) -> Path:
    """Prepare `quick.yaml`, with two checkpoints that are trained in seconds; see `prepare_demo`."""
    letters = folder / "data" / "letters.jsonl"
    text = quick_text(folder, letters, recipes)
    return _prepare(
        folder, report, recipes, train, folder / "quick.yaml", text, {letters: quick_lines()}, "some seconds"
    )


def _data(folder: Path) -> Path:
    return folder / "data" / "demo.jsonl"


def _example_lines() -> str:
    return "".join(json.dumps(asdict(example)) + "\n" for example in evaluation_examples())


def _prepare(
    folder: Path,
    report: Report,
    recipes: Sequence[Recipe],
    train: Train,
    campaign: Path,
    text: str,
    files: Mapping[Path, str],
    takes: str = "some minutes on two cores",
) -> Path:
    started = time.monotonic()

    def say(line: str) -> None:
        report(f"[{time.monotonic() - started:5.1f} s] {line}")

    for path, content in files.items():
        _write(path, content, say)
    missing = [job for job in _jobs(folder, recipes) if not is_current(job.folder, job.fingerprint)]
    if missing:
        say(f"training {len(missing)} of {len(recipes)} checkpoints, {takes}")
        train(missing, lambda job: say(f"trained {job.folder}: {_size_words(job.recipe)}"))
    _write(campaign, text, say)
    say(f"the demo is ready in {folder}")
    return campaign


def _jobs(folder: Path, recipes: Sequence[Recipe]) -> list[Job]:
    return [
        Job(recipe=recipe, folder=folder / recipe.name, fingerprint=_recipe_fingerprint(recipe))
        for recipe in recipes
    ]


def _recipe_fingerprint(recipe: Recipe) -> str:
    """Fingerprint of a recipe's settings and of a sample of its training texts, which depend on the code."""
    sample = [(text.prompt, text.answer) for text in islice(recipe.texts(), 200)]
    return fingerprint_of([asdict(recipe), sample])


def _size_words(recipe: Recipe) -> str:
    return f"width {recipe.hidden_size}, {recipe.layers} layers, {recipe.steps} steps"


def _write(path: Path, text: str, say: Report) -> None:
    fingerprint = fingerprint_of(text)
    if not is_current(path, fingerprint):
        with replacing(path, fingerprint) as partial:
            partial.write_text(text, encoding="utf-8")
        say(f"wrote {path}")
