"""Campaigns whose stored texts are judged again: nothing is generated, and no more is claimed than holds."""

import json
from contextlib import closing

import duel_campaigns
import pytest
import scripted_engines
import yaml
from campaign_processes import Kill, fork_server, rows
from campaigns import one_message, status_json, winnow
from duel_campaigns import asked_texts, start, stored_texts
from faulty_server import faulty_server
from scored_campaigns import N_EXAMPLES, write_scored
from stored_campaigns import store_checked
from test_model_judge_campaigns import comparing
from tiny_models import save_tiny_llama
from waiting import PATIENCE_S

from winnow.storage.engine.database import open_database
from winnow.tasks.engines.known_providers import PROVIDERS
from winnow.tasks.setup.rescore import rescoring_campaign
from winnow.tasks.spec.judge_tree import BUILT_IN, JUDGES, JudgeEntry, Maker

pytestmark = pytest.mark.usefixtures("plain_runs")

SAME = {"type": "contains"}
"""Says of letters what `exact` says."""
ONLY_X = {"type": "regex", "pattern": "x(?#{target})"}
"""The opposite: right is whoever says x, as these models do where they do not know."""
NOBODY = {"type": "regex", "pattern": "nothing(?#{target})"}
"""Nobody is ever right, so that the two are told apart by no number of examples."""
OLD, NEW = "first", "first-rescored"
PLANS = "JOIN campaigns k ON k.id = r.campaign_id WHERE k.name = "
PAIRS = "JOIN rounds r ON r.id = c.round_id JOIN campaigns k ON k.id = r.campaign_id WHERE k.name = "


@pytest.fixture(autouse=True)
def scripted_models(monkeypatch):
    scripted_engines.provide_all(monkeypatch)


def judged(folder, *options):
    """A campaign that has ended, after which no candidate's model can be started."""
    write_scored(folder, ["knows", "guesses"], {"name": "race"})
    assert winnow(folder, "run", "campaign.yaml", "--fork", OLD, *options).returncode == 0
    with pytest.MonkeyPatch.context() as patch:
        for name in ("knows", "guesses"):
            patch.setitem(PROVIDERS, name, "scripted_engines:start_absent")
        yield folder


@pytest.fixture
def ended(tmp_path):
    yield from judged(tmp_path)


def rescore(folder, judge=SAME, *arguments, name=OLD):
    (folder / "judge.yaml").write_text(yaml.safe_dump({"judge": judge}, sort_keys=False))
    storage = f"sqlite:///{folder}/winnow.db"
    return winnow(folder, "rescore", name, "--judge", "judge.yaml", "--storage", storage, *arguments)


def test_an_ended_campaign_asks_for_a_rescore_once_its_judge_reads_outputs_differently(ended, monkeypatch):
    storage = ("--storage", f"sqlite:///{ended}/winnow.db")
    assert "reads some outputs differently" not in winnow(ended, "show", OLD, *storage).stdout
    newer = Maker(BUILT_IN["exact"].location, BUILT_IN["exact"].version + 1)
    monkeypatch.setitem(BUILT_IN, "exact", newer)
    monkeypatch.setitem(JUDGES, "exact", JudgeEntry(outputs=newer))
    told = winnow(ended, "show", OLD, *storage).stdout
    assert f"winnow rescore {OLD} scores its outputs again" in told
    again = winnow(ended, "rescore", OLD, *storage)
    assert again.returncode in (0, 3), again.stderr
    shown = json.loads(winnow(ended, "show", NEW, *storage, "--json").stdout)
    assert shown["spec"]["judge"]["type"] == "exact"
    assert "reads some outputs differently" not in winnow(ended, "show", NEW, *storage).stdout


def scores(folder, name):
    """By candidate and example, of those that have one."""
    found = json.loads(winnow(folder, "query", name, "comparisons", "--json").stdout)
    return {(each["candidate"], each["example"]): each["outcome"] for each in found if not each["reason"]}


def reasons(folder, name=NEW):
    query = f"SELECT c.reason, count(*) FROM comparisons c {PAIRS} '{name}' GROUP BY c.reason"
    return dict(rows(folder, query))


def answer(folder, name=NEW):
    return status_json(folder, name)


def test_a_judge_that_says_the_same_gives_the_same_scores_and_nothing_is_generated(ended):
    texts = stored_texts(ended)
    told = rescore(ended, SAME, "--dry-run")
    assert told.returncode == 0
    assert rows(ended, "SELECT name FROM campaigns") == [(OLD,)]
    ran = rescore(ended)
    assert ran.returncode == 3, ran.stderr
    assert ran.stdout.startswith(told.stdout)
    assert stored_texts(ended) == texts
    assert scores(ended, NEW) == scores(ended, OLD)
    assert reasons(ended) == {None: len(texts), "no_stored_text": 240 - len(texts)}
    assert f"'first' has outputs for {len(texts)} of 240 pairs" in ran.stdout
    assert f"the outputs of the other {240 - len(texts)} are not generated" in ran.stdout
    assert "another judge can hardly rule out a candidate with few outputs" in ran.stdout
    assert winnow(ended, "db", "check").returncode == 0


def test_examples_are_drawn_anew_for_each_campaign_and_alike_for_one(ended):
    drawn = {}
    for name in (NEW, "another"):
        for _ in range(2):
            assert rescore(ended, SAME, "--name", name).returncode == 3
            plan = f"SELECT r.arms, r.examples FROM rounds r {PLANS} '{name}' ORDER BY r.number"
            drawn.setdefault(name, set()).add(tuple(rows(ended, plan)))
    plan = f"SELECT r.arms, r.examples FROM rounds r {PLANS} '{OLD}' ORDER BY r.number"
    assert [len(each) for each in drawn.values()] == [1, 1]
    firsts = [found[0] for (found,) in drawn.values()]
    assert len({*firsts, rows(ended, plan)[0]}) == 3


def test_who_lacks_texts_is_not_ruled_out_and_the_answer_says_what_it_covers(ended):
    n_texts = len(stored_texts(ended))
    ran = rescore(ended, NOBODY)
    assert ran.returncode == 3, ran.stderr
    found = answer(ended)
    assert (found["outcome"], found["is_guaranteed"]) == ("undecided", False)
    assert "  open         between " in ran.stdout
    assert reasons(ended) == {None: n_texts, "no_stored_text": 240 - n_texts}
    assert f"only stored outputs are used: {240 - n_texts} of 240 comparisons have no output" in ran.stdout
    assert "are assumed to be the worst for the claim" in ran.stdout
    for row in json.loads(winnow(ended, "query", NEW, "leaderboard", "--json").stdout):
        assert row["status"] != "dropped"
        assert row["upper"] - row["lower"] == pytest.approx(row["unscored"] / N_EXAMPLES)
    arguments = [
        "--selector",
        "row-mean",
        "--seeds",
        "2",
        "--budgets",
        "1.0",
        "--workers",
        "1",
        "--out",
        "out",
    ]
    told = winnow(
        ended, "simulate", f"campaign:{NEW}", "--storage", f"sqlite:///{ended}/winnow.db", *arguments
    )
    assert "a trace, not an estimate" in told.stdout


def test_one_that_made_no_texts_makes_none_later(ended):
    assert rescore(ended, NOBODY, "--set", "stopping.budget=30").returncode == 3
    before = reasons(ended), answer(ended)
    refused = winnow(ended, "resume", NEW, "--set", "reuse=all", "--set", "stopping.budget=60")
    assert refused.returncode == 2
    assert "cannot change:\n  reuse: 'only' -> 'all'\n" in refused.stderr
    assert (reasons(ended), answer(ended)) == before


def test_a_full_table_that_is_judged_again_says_as_much_as_a_campaign_of_its_own(tmp_path):
    for folder in judged(tmp_path, "--exhaustive"):
        ran = rescore(folder, ONLY_X, name=f"{OLD}-exhaustive")
        assert ran.returncode == 0, ran.stderr
        assert "240 of 240 pairs" in ran.stdout
        assert "(120 to 120 of 120 by candidate); no output is generated" in ran.stdout
        found = answer(folder, f"{OLD}-exhaustive-rescored")
        assert (found["outcome"], found["best"]) == ("winner", "guesses/plain")


def test_a_model_judges_again_and_its_calls_alone_are_paid_for(ended):
    save_tiny_llama(ended / "judging", seed=9)
    before = stored_texts(ended)
    ran = rescore(ended, comparing(), "--name", "by-model")
    assert ran.returncode == 3, ran.stderr
    assert scores(ended, "by-model") == scores(ended, OLD)
    made = [each for each in stored_texts(ended) if each not in before]
    assert {model for model, *_ in made} == {"judging"}
    costs = json.loads(winnow(ended, "query", "by-model", "costs", "--json").stdout)
    assert [(row["candidate"], row["model"]) for row in costs] == [(None, "judging")]
    assert len(made) <= len(scores(ended, "by-model"))


def test_what_the_first_judge_cost_is_no_hindrance_and_what_the_new_one_costs_can_be_said(tmp_path):
    """The reproduction: "execution.prices.judging: unknown model", in a file that has no such key."""
    price = {"input": 1, "output": 2}
    written = write_scored(tmp_path, ["knows", "guesses"], {"name": "race"}, judge=comparing(), budget=24)
    spec = yaml.safe_load(written.read_text())
    prices = dict.fromkeys(("knows", "guesses", "judging"), price)
    spec["execution"] |= {"prices": prices}
    spec["stopping"]["budget"] = {"comparisons": 24, "cost": 5}
    written.write_text(yaml.safe_dump(spec))
    save_tiny_llama(tmp_path / "judging", seed=9)
    assert winnow(tmp_path, "run", "campaign.yaml", "--fork", OLD).returncode in (0, 3)
    assert rescore(tmp_path, SAME).returncode in (0, 3)
    [(execution,)] = rows(tmp_path, f"SELECT execution FROM campaigns WHERE name = '{NEW}'")
    assert set(json.loads(execution)["execution"]["prices"]) == {"knows", "guesses"}
    other = comparing(model=comparing()["model"] | {"name": "other"})
    assert one_message(rescore(tmp_path, other, "--name", "by-other")).startswith(
        "'first' (--set changes it): stopping.budget.cost: no token price for model other; set"
    )
    priced = ["--name", "by-other", "--set", "execution.prices.other={input: 1, output: 2}"]
    assert rescore(tmp_path, other, *priced).returncode in (0, 3)


def test_one_that_is_killed_ends_as_one_that_is_not(tmp_path):
    found, forks = [], fork_server()
    for kills in ([], [Kill(commit=4, after=True), Kill(commit=5, after=False)]):
        folder = tmp_path / f"killed-{len(kills)}"
        for _ in judged(folder):
            storage = stored_anew(folder)
        for kill in [*kills, None]:
            process = start(forks, folder, storage, kill)
            process.join(PATIENCE_S)
            assert process.exitcode == (0 if kill is None else -9)
            assert {model for model, *_ in asked_texts(folder)} <= {"judging"}
        found.append(duel_campaigns.history(folder))
    assert found[0] == found[1]
    assert found[0]["judgments"]
    assert {row[5] for row in found[0]["comparisons"]} == {None, "no_stored_text"}


def stored_anew(folder):
    """Store the campaign that judges the first one's texts by a model, and do not run it; its database."""
    save_tiny_llama(folder / "judging", seed=9)
    (folder / "judge.yaml").write_text(yaml.safe_dump(comparing(extract="x")))
    with (
        pytest.MonkeyPatch.context() as patch,
        closing(open_database(f"sqlite:///{folder}/winnow.db", read_only=True)) as database,
    ):
        patch.chdir(folder)
        checked = rescoring_campaign(database, OLD, "judge.yaml", "survivor", [], lambda file, spec: None)
        store_checked(checked)
    return database.url


def test_texts_of_a_server_that_has_gone_are_judged_again(tmp_path):
    with faulty_server() as server:
        spec = yaml.safe_load(write_scored(tmp_path, [], {"name": "row-mean"}).read_text())
        at_server = {"name": "far", "provider": "openai", "model": "served", "model_base_url": server.url}
        prompts = [{"name": name, "template": f"{name}{{{{ input }}}}"} for name in "ab"]
        (tmp_path / "campaign.yaml").write_text(
            yaml.safe_dump(spec | {"models": [at_server], "prompts": prompts})
        )
        assert winnow(tmp_path, "run", "campaign.yaml", "--fork", OLD).returncode == 3  # all scores are 0
        asked = len(server.calls)
    ran = rescore(tmp_path, {"type": "regex", "pattern": "^[0-7]"})
    assert ran.returncode in (0, 3), ran.stderr
    assert 12 < reasons(tmp_path)[None] <= asked


REFUSED = [
    ({"type": "exat"}, [], "judge.yaml:2: judge.type: unknown judge 'exat'; did you mean 'exact'?"),
    ({"type": "numeric", "tolerance": -1}, [], "judge.yaml:3: judge.tolerance: "),
    (SAME, ["--name", OLD], "'first' is the campaign whose outputs are judged"),
    (SAME, ["--set", "reuse=all"], "remove reuse and storage"),
    (SAME, ["--set", "seed=12345"], "stored outputs are found by the seed of 'first'"),
    (SAME, ["--set", "dataset.limit=5"], "on the examples of 'first', and --name names the new campaign"),
    (SAME, ["--set", "stopping.delta=0.9"], "--set stopping.delta: delta is the probability of a wrong answ"),
    (SAME, ["--set", "name=other"], "remove dataset and name"),
    (SAME, ["--set", "stopping.bugdet=3"], "--set stopping.bugdet: unknown key; did you mean 'budget'?"),
]


def test_what_cannot_be_judged_again_ends_in_one_sentence(ended):
    for judge, arguments, told in REFUSED:
        refused = rescore(ended, judge, *arguments)
        assert refused.returncode == 2
        assert told in one_message(refused)
    (ended / "judge.yaml").write_text("judge: {type: exact}\nseed: 3\n")
    refused = winnow(ended, "rescore", OLD, "--judge", "judge.yaml")
    assert "judge.yaml:2: seed: a judge's file has only the key judge" in one_message(refused)
    (ended / "judge.yaml").write_text("jugde: {type: exact}\n")
    refused = winnow(ended, "rescore", OLD, "--judge", "judge.yaml")
    assert "judge.yaml:1: contains no judge; write judge: {type: …}" in one_message(refused)
    (ended / "judge.yaml").write_text("\n")
    refused = winnow(ended, "rescore", OLD, "--judge", "judge.yaml")
    assert one_message(refused) == "judge.yaml is empty; write judge: {type: …} into it"
    assert "no campaign" in one_message(rescore(ended, name="nobody"))
    assert rows(ended, "SELECT name FROM campaigns") == [(OLD,)]
    duels = duel_campaigns.write_duels(ended)
    assert winnow(ended, "run", str(duels), "--fork", "duels").returncode in (0, 3)
    assert "'duels' has objective best-duel" in one_message(rescore(ended, name="duels"))
