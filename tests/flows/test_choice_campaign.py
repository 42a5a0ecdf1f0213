"""Campaigns whose models weigh choices, from end to end: what is stored and decided, kills, objectives."""

import json
import math

import campaign_processes as processes
import choice_campaigns as choices
import numpy as np
import pytest
from campaign_processes import Kill, rows
from campaigns import winnow
from choice_campaigns import N_EXAMPLES, options, write_choices
from waiting import PATIENCE_S

from winnow.tasks.engines.protocol import ModelRef, Request, Sampling
from winnow.tasks.engines.transformers.engine import TransformersEngine

pytestmark = pytest.mark.usefixtures("plain_runs")


@pytest.fixture(scope="module")
def finished(plain_runs, tmp_path_factory):
    """The campaign on the whole grid, run by its command."""
    folder = tmp_path_factory.mktemp("finished")
    write_choices(folder, stopping={"budget": 4 * N_EXAMPLES})
    ran = winnow(folder, "run", "campaign.yaml")
    assert (ran.returncode, "Traceback" in ran.stderr) in {(0, False), (3, False)}
    return folder


def literal(folder, name, template, normalised):
    """Whether a model's most probable choice is the target, by example; each choice asked for alone."""
    args = {"max_model_len": 64, "dtype": "float32"}
    engine = TransformersEngine(
        ModelRef(name=name, provider="transformers", model=str(folder / name), model_args=args)
    )
    right = []
    for number in range(N_EXAMPLES):
        prompt, found = template.format(f"{number * 7} and {number}"), options(number)
        answers = engine.generate(
            [
                Request(prompt=prompt, continuations=(f" {each}",), sampling=Sampling(), seed=0)
                for each in found
            ]
        )
        known = [next(iter(answer.choice_logprobs.values())) for answer in answers]
        lengths = [len(each) if normalised else 1 for each in found]
        right.append(float(np.argmax(np.divide(known, lengths)) == number % 4))
    return right


def test_scores_are_those_of_every_choice_weighed_alone(finished):
    query = (
        "SELECT k.name, c.outcome FROM comparisons c JOIN candidates k ON k.id = c.candidate_a_id "
        "JOIN examples e ON e.id = c.example_id ORDER BY k.name, e.position"
    )
    found = {}
    for name, outcome in rows(finished, query):
        found.setdefault(name, []).append(outcome)
    for name in ("one", "two"):
        for prompt, template in (("plain", "{}="), ("asked", "Q {}:")):
            assert found[f"{name}/{prompt}"] == literal(finished, name, template, normalised=True)
    assert len({tuple(each) for each in found.values()}) > 1


def test_the_text_is_the_most_probable_choice_and_all_are_stored(finished):
    stored = choices.weighed(finished)
    assert len(stored) == 4 * N_EXAMPLES
    for _, text, logprobs, reason in stored:
        known = json.loads(logprobs)
        assert len(known) == 4
        assert all(math.isfinite(each) and each < 0 for each in known.values())
        assert (text, reason) == (max(known, key=known.get), "stop")


def test_the_database_is_sound_and_the_report_shows_what_was_chosen(finished):
    checked = winnow(finished, "db", "check")
    assert checked.returncode == 0, checked.stdout
    page = finished / "page.html"
    assert winnow(finished, "report", "survivor", "--html", str(page)).returncode == 0
    assert "none at all" in page.read_text()


def test_another_campaign_reuses_what_was_weighed_and_another_delimiter_does_not(finished, tmp_path):
    def asked(name, **changes):
        storage = f"sqlite:///{finished}/winnow.db"
        write_choices(finished, name=name, storage=storage, stopping={"budget": 16}, batch_size=16, **changes)
        before = rows(finished, "SELECT count(*) FROM generations")
        assert winnow(finished, "run", "campaign.yaml").returncode in {0, 3}
        return rows(finished, "SELECT count(*) FROM generations")[0][0] - before[0][0]

    assert asked("again", judge={"type": "acc", "target": "index"}, dataset=by_position(finished)) == 0
    assert asked("closer", target_delimiter="") == 16


def by_position(folder):
    return {"path": str(folder / "data.jsonl"), "fields": {"id": "id", "target": "gold"}}


def test_killed_before_and_after_a_commit_ends_as_uninterrupted(tmp_path):
    forks, histories = processes.fork_server(), []
    never = Kill(commit=10_000, after=True)
    for name, kills in (("whole", []), ("killed", [Kill(commit=4, after=False), Kill(commit=5, after=True)])):
        folder = tmp_path / name
        folder.mkdir()
        storage = processes.store(write_choices(folder, dataset=shared_data(tmp_path)))
        for kill in (*kills, never):
            process = processes.start(forks, folder, storage, kill)
            process.join(PATIENCE_S)
            assert process.exitcode == (0 if kill is never else -9)
            assert processes.has_ended(folder) == (kill is never)
        histories.append((processes.history(folder), choices.weighed(folder)))
    whole, killed = histories
    assert len(whole[0]["comparisons"]) == 32
    assert killed == whole


def shared_data(tmp_path):
    """One file for both campaigns, whose identity names it."""
    path = tmp_path / "data.jsonl"
    if not path.exists():
        write_choices(tmp_path)
    return {"path": str(path), "fields": {"id": "id", "target": "target"}}


def test_the_perplexity_of_texts_is_judged_by_their_log_likelihoods(tmp_path):
    write_choices(
        tmp_path,
        prompts=[{"name": "text", "template": "{{ input }} and {{ options | join(', ') }}"}],
        output_type="perplexity",
        choices=None,
        judge={"type": "byte_perplexity"},
        stopping={"budget": 2 * N_EXAMPLES},
    )
    assert winnow(tmp_path, "run", "campaign.yaml").returncode in {0, 3}
    query = (
        "SELECT c.outcome, c.answer, g.text, g.choice_logprobs, p.text FROM comparisons c "
        "JOIN generations g ON g.id = c.generation_a_id JOIN prompts p ON p.id = g.prompt_id"
    )
    found = rows(tmp_path, query)
    assert len(found) == 2 * N_EXAMPLES
    for outcome, answer, text, logprobs, prompt in found:
        ((weighed, known),) = json.loads(logprobs).items()
        assert (weighed, prompt) == (text, "")
        assert outcome == pytest.approx(math.exp(known / len(text)))
        assert float(answer.removesuffix(" perplexity per byte")) == pytest.approx(1.0 / outcome, rel=1e-4)
    assert winnow(tmp_path, "db", "check").returncode == 0


def test_models_that_weigh_choices_can_be_certified(tmp_path):
    certify = {"alpha": 0.99, "cost": "custom", "costs": {"one/plain": 1, "two/plain": 2}, "labellable": 16}
    write_choices(
        tmp_path,
        objective="certify",
        prompts=[{"name": "plain", "template": "{{ input }}="}],
        certify={**certify, "unlabelled_per_label": 1},
        selector={"name": "r-eval"},
        stopping={"budget": 16, "delta": 0.2},
    )
    ran = winnow(tmp_path, "run", "campaign.yaml")
    assert ran.returncode in {0, 3}, ran.stderr
    losses = rows(tmp_path, "SELECT outcome, human_loss FROM comparisons")
    assert losses
    assert all(loss == 1.0 - outcome for outcome, loss in losses)


def test_models_that_weigh_choices_can_be_routed_between_and_asked_about_what_arrives(tmp_path):
    write_choices(
        tmp_path,
        objective="route",
        prompts=[{"name": "plain", "template": "{{ input }}="}],
        embedder={"model": str(tmp_path / "one")},
        selector={"name": "pak-ucb", "params": {"kernel": "linear", "eta": 0.5}},
        batch_size=4,
        stopping={"budget": 12},
    )
    assert winnow(tmp_path, "run", "campaign.yaml").returncode in {0, 3}
    assert rows(tmp_path, "SELECT count(*) FROM comparisons WHERE outcome IS NOT NULL") == [(12,)]
    lacking = winnow(tmp_path, "route", "survivor", "--prompt", "1 and 2", "--target", "e")
    assert lacking.returncode == 2
    assert "has no field 'options'" in lacking.stderr
