"""Metrics beside the losses of a certificate and the scores of a route: they decide nothing."""

import json
import os
from itertools import product

import campaign_processes as processes
import certify_campaigns as certify
import pytest
import route_campaigns as route
import scripted_engines
from campaign_processes import Kill, rows
from campaigns import winnow
from certify_campaigns import write_certify
from people_campaigns import N_EXAMPLES, judged_to_the_end, write_people
from route_campaigns import write_route
from tiny_models import save_tiny_llama
from waiting import PATIENCE_S

from winnow.tasks.engines.known_providers import PROVIDERS

pytestmark = pytest.mark.usefixtures("plain_runs")

WRITERS = {"certify": write_certify, "route": write_route}
VALUES = """
    SELECT m.name, e.key, c.candidate_a_id, m.score, m.reason, g.text FROM metrics m
    JOIN comparisons c ON c.id = m.comparison_id JOIN examples e ON e.id = c.example_id
    JOIN generations g ON g.id = c.generation_a_id ORDER BY m.name, c.id
"""


RATER = {"type": "llm", "rubric": "The same?", "scale": "yes/no", "reference": True, "read": "text"}
"""A judge that asks a scripted model, which says what `exact` says."""
METRICS = [
    {"name": "right", "judge": {"type": "exact"}},
    {"name": "said", "judge": RATER | {"model": certify.model("judging", "compares")}},
]


@pytest.fixture(scope="module", autouse=True)
def all_models():
    with pytest.MonkeyPatch.context() as patch:
        provide(patch)
        yield


def provide(patch):
    """Have the scripted models of both objectives."""
    scripted_engines.provide_all(patch)
    for name, path in route.PROVIDERS.items():
        patch.setitem(PROVIDERS, name, path)


def killed(folder, storage):
    """Go on with the stored campaign of a folder in a process that kills itself."""
    os.chdir(folder)
    provide(pytest.MonkeyPatch())
    processes.run(storage, Kill(commit=6, after=True))


def written(folder, objective, **changes):
    """A short campaign of an objective, to be run from its folder."""
    folder.mkdir(exist_ok=True)
    save_tiny_llama(folder / "judging", seed=9)
    if objective == "certify":
        changes = {"labelled": certify.N_EXAMPLES} | changes
    else:
        changes = {"stopping": {"budget": 12}} | changes
    return WRITERS[objective](folder, **changes)


def done(folder, *arguments, code=0):
    result = winnow(folder, *arguments)
    assert result.returncode == code, result.stderr
    return result.stdout


def asked(folder, view):
    return json.loads(done(folder, "query", "survivor", view, "--json"))


@pytest.fixture(scope="module")
def finished(plain_runs, tmp_path_factory):
    """By objective, a campaign with metrics and one without, to be read only."""
    found = {}
    for objective, metrics in product(WRITERS, (True, False)):
        folder = tmp_path_factory.mktemp(objective)
        written(folder, objective, metrics=METRICS if metrics else None)
        assert winnow(folder, "run", "campaign.yaml").returncode in (0, 3)
        found[objective, metrics] = folder
    return found


@pytest.mark.parametrize("objective", WRITERS)
def test_each_answer_to_a_labelled_example_has_the_values_that_its_text_says(finished, objective):
    folder = finished[objective, True]
    found = rows(folder, VALUES)
    number = len(rows(folder, "SELECT id FROM comparisons"))
    assert [sum(name == each for name, *_ in found) for each in ("right", "said")] == [number, number]
    assert {reason for *_, reason, _ in found} == {None}
    truth = certify.truth if objective == "certify" else route.answer
    for _, key, _, score, _, text in found:
        assert score == float(text.strip() == truth(int(key[1:])))
    assert {score for *_, score, _, _ in found} == {0.0, 1.0}


@pytest.mark.parametrize("objective", WRITERS)
def test_metrics_decide_nothing(finished, objective):
    decisions = "SELECT claim, stop, reason, best_estimate, best_lower, best_upper FROM decisions ORDER BY id"
    compared = "SELECT outcome, human_loss, auto_loss, unlabelled_loss FROM comparisons ORDER BY id"
    for query in (decisions, compared):
        assert rows(finished[objective, True], query) == rows(finished[objective, False], query) != []


@pytest.mark.parametrize("objective", WRITERS)
def test_means_by_candidate_are_asked_for_and_shown_with_what_they_are_of(finished, objective):
    folder = finished[objective, True]
    found = {(row["metric"], row["candidate"]): row for row in asked(folder, "metrics")}
    tallied = rows(
        folder,
        "SELECT m.name, k.name, avg(m.score), count(*) FROM metrics m "
        "JOIN comparisons c ON c.id = m.comparison_id "
        "JOIN candidates k ON k.id = c.candidate_a_id GROUP BY 1, 2",
    )
    for metric, candidate, mean, count in tallied:
        row = found[metric, candidate]
        assert (row["scored"], row["unscored"]) == (count, 0)
        assert row["mean"] == pytest.approx(mean)
        assert row["lower"] <= mean <= row["upper"]
    assert {row["mean"] for key, row in found.items() if row["scored"] == 0} <= {None}
    of_what = {"certify": "answers to labelled examples", "route": "prompts routed to each candidate"}
    done(folder, "report", "survivor", "--html", "page.html")
    told = " ".join((folder / "page.html").read_text().split())
    assert of_what[objective] in told
    assert "no decision used them" in told


def test_a_certificate_asks_for_metrics_of_labelled_examples_alone(finished):
    folder = finished["certify", True]
    [(texts,)] = rows(
        folder,
        "SELECT count(DISTINCT generation_a_id) FROM comparisons WHERE generation_a_id IS NOT NULL",
    )
    [(replies,)] = rows(folder, "SELECT count(*) FROM generations WHERE model = 'judging'")
    # Two answers that are the same to the same question are asked about once.
    assert 0 < replies <= texts
    judged = rows(folder, "SELECT DISTINCT metric, judge, reason FROM judgments")
    assert judged == [("said", "judging", None)]


@pytest.mark.parametrize("objective", WRITERS)
def test_a_campaign_that_is_killed_ends_as_one_that_is_not_and_is_found_sound(finished, objective, tmp_path):
    written(tmp_path, objective, metrics=METRICS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        storage = processes.store(tmp_path / "campaign.yaml")
    process = processes.fork_server().Process(target=killed, args=(str(tmp_path), storage))
    process.start()
    process.join(PATIENCE_S)
    assert process.exitcode == -9
    assert winnow(tmp_path, "resume", "survivor").returncode in (0, 3)
    assert rows(tmp_path, VALUES) == rows(finished[objective, True], VALUES)
    judged = "SELECT metric, judge, verdict FROM judgments ORDER BY comparison_id, number"
    assert rows(tmp_path, judged) == rows(finished[objective, True], judged)
    done(tmp_path, "db", "check")


def test_where_people_rate_the_answers_metrics_see_the_targets_of_the_dataset(tmp_path):
    data = {"path": "targets.jsonl", "fields": {"id": "id", "input": "input", "target": "target"}}
    write_people(tmp_path, "certify", metrics=METRICS[:1], dataset=data)
    with (tmp_path / "targets.jsonl").open("w") as file:
        for number in range(N_EXAMPLES):
            row = {"id": f"e{number}", "input": f"{number}", "target": certify.truth(number)}
            file.write(json.dumps(row) + "\n")
    done(tmp_path, "run", "campaign.yaml", code=3)
    judged_to_the_end(tmp_path)
    found = rows(tmp_path, VALUES)
    assert {name for name, *_ in found} == {"right"}
    assert len(found) == len(rows(tmp_path, "SELECT id FROM comparisons")) > 0
    # The person says the truth, and so does a rule that knows it.
    losses = rows(tmp_path, "SELECT 1 - human_loss FROM comparisons ORDER BY id")
    assert [(score,) for _, _, _, score, _, _ in found] == losses
    assert {score for _, _, _, score, _, _ in found} == {0.0, 1.0}


@pytest.mark.parametrize("objective", WRITERS)
def test_a_metric_is_part_of_what_a_campaign_is(finished, objective):
    folder = finished[objective, True]
    path = folder / "campaign.yaml"
    whole = path.read_text()
    path.write_text(whole.replace("The same?", "Alike?"))
    try:
        result = winnow(folder, "run", "campaign.yaml")
    finally:
        path.write_text(whole)
    assert result.returncode == 2
    assert "metrics[said].judge.rubric: " in result.stderr
