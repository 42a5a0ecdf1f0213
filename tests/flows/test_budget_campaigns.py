"""A budget of tokens, time, money or comparisons ends a campaign cleanly, and one that is raised goes on."""

import campaign_processes as processes
import certify_campaigns as certify
import pytest
import scripted_engines
from campaign_processes import Kill
from campaigns import one_message, status_json, winnow
from waiting import PATIENCE_S

pytestmark = pytest.mark.usefixtures("plain_runs")

A_ROUND = 2 * processes.BATCH_SIZE
"""Tokens: the scripted model is shown one and makes one for each comparison."""

GOES_ON = "continue with winnow resume survivor --set stopping.budget"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A campaign of two scripted models, ready to run."""
    scripted_engines.provide(monkeypatch, "honest")
    return written(tmp_path)


def written(folder):
    folder.mkdir(exist_ok=True)
    processes.write_campaign(folder, provider="honest")
    return folder


def run(folder, budget, *more):
    return winnow(folder, "run", "campaign.yaml", "--set", f"stopping.budget={budget}", *more)


def test_a_spent_budget_ends_the_run_after_its_round_and_says_which_it_was(folder):
    result = run(folder, f"{{comparisons: 100, tokens: {2 * A_ROUND + 1}}}")
    assert result.returncode == 3, result.stderr
    assert result.stdout.startswith("survivor: undecided")
    assert f"the token budget is spent: 48 of 33; {GOES_ON}" in result.stdout
    assert "--set stopping.budget.tokens=MORE" in result.stdout
    assert "budget       comparisons 24 of 100, tokens 48 of 33" in result.stdout
    assert "tokens 48 of 33" in result.stderr.splitlines()[-1]
    assert processes.rows(folder, "SELECT count(*) FROM rounds") == [(3,)]
    found = status_json(folder)
    assert (found["outcome"], found["reason"], found["stopped_by"]["kind"]) == (
        "undecided",
        "budget",
        "tokens",
    )
    again = winnow(folder, "resume", "survivor", "--storage", processes.storage_of(folder))
    assert again.returncode == 3
    assert processes.rows(folder, "SELECT count(*) FROM rounds") == [(3,)]


def test_a_raised_budget_goes_on_to_what_an_uninterrupted_run_comes_to(folder, tmp_path):
    whole = written(tmp_path / "whole")
    assert run(whole, f"{{comparisons: 100, tokens: {5 * A_ROUND}}}").returncode == 3
    assert run(folder, f"{{comparisons: 100, tokens: {2 * A_ROUND}}}").returncode == 3
    assert processes.rows(folder, "SELECT count(*) FROM rounds") == [(2,)]
    assert run(folder, f"{{comparisons: 100, tokens: {5 * A_ROUND}}}").returncode == 3
    assert processes.history(folder) == processes.history(whole)
    assert processes.rows(folder, "SELECT count(*) FROM rounds") == [(5,)]


def test_without_a_limit_of_comparisons_the_whole_grid_may_be_run(folder):
    # As published: nobody is out before all is told.
    result = run(folder, "{tokens: 100000}", "--set", "selector.params={variant: paper}")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("survivor: tied, exact\n")  # the two models say the same
    assert "144 of 144 comparisons (100.0% of the grid)" in result.stderr


def test_money_ends_a_campaign_by_the_prices_of_the_last_start(folder):
    prices = "execution.prices={one: {input: 1e6, output: 0}, two: {input: 1e6, output: 0}}"
    result = run(folder, "{comparisons: 100, cost: 9}", "--set", prices)
    assert "the cost budget is spent: 16 of 9" in result.stdout
    cheaper = "execution.prices={one: {input: 5e5, output: 0}, two: {input: 5e5, output: 0}}"
    result = run(folder, "{comparisons: 100, cost: 9}", "--set", cheaper)
    assert "the cost budget is spent: 12 of 9" in result.stdout


def test_without_an_error_probability_a_spent_budget_is_the_end_that_was_asked_for(folder):
    result = run(folder, "{tokens: 20}", "--set", "stopping.delta=null")
    assert result.returncode == 0
    assert "heuristic: the token budget is spent: 32 of 20, and no error probability" in result.stdout


def test_a_limit_that_the_algorithm_keeps_to_itself_ends_its_rounds_exactly(folder):
    result = run(folder, "{comparisons: 20, tokens: 1000}")
    assert result.returncode == 3
    assert f"the comparison budget is spent: 20 of 20; {GOES_ON}" in result.stdout
    assert "--set stopping.budget.comparisons=MORE" in result.stdout
    assert processes.rows(folder, "SELECT count(*) FROM comparisons") == [(20,)]


def test_labels_stay_fixed_to_certify_and_other_limits_may_be_raised(tmp_path, monkeypatch):
    for name in ("knows", "slips", "guesses", "grader"):
        scripted_engines.provide(monkeypatch, name)
    certify.write_certify(tmp_path, labelled=certify.N_EXAMPLES)
    result = run(tmp_path, "{human_labels: 60, comparisons: 15}")
    assert result.returncode == 3
    assert f"ended        the comparison budget is spent: 20 of 15; {GOES_ON}" in result.stdout
    refused = run(tmp_path, "{human_labels: 61}")
    assert refused.returncode == 2
    assert "stopping.budget: 60 -> 61" in one_message(refused)
    assert run(tmp_path, "60").returncode == 0
    assert "budget       human labels" in winnow(tmp_path, "status", "survivor").stdout


def test_a_campaign_killed_with_its_budget_nearly_spent_ends_where_it_would_have(tmp_path):
    histories = []
    forks = processes.fork_server()
    for name, kill in (("whole", None), ("killed", Kill(commit=9, after=True))):
        folder = tmp_path / name
        folder.mkdir()
        spec = processes.write_campaign(folder)
        spec.write_text(spec.read_text().replace("budget: 32", "budget: {tokens: 400}"))
        storage = processes.store(spec)
        for each in [kill] if kill is None else [kill, None]:
            process = processes.start(forks, folder, storage, each)
            process.join(PATIENCE_S)
            assert process.exitcode == (0 if each is None else -9)
        histories.append(processes.history(folder))
    assert histories[0] == histories[1]
    assert 1 < len(histories[0]["decisions"]) < 144 / processes.BATCH_SIZE
