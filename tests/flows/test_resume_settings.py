"""A stored campaign goes on with other settings, and its file is not needed for it."""

import json

import campaign_processes as processes
import pytest
from campaigns import one_message, winnow

pytestmark = pytest.mark.usefixtures("plain_runs")


@pytest.fixture
def finished(tmp_path):
    """A campaign that has spent its budget."""
    processes.write_campaign(tmp_path)
    assert winnow(tmp_path, "run", "campaign.yaml").returncode == 3
    return tmp_path


@pytest.fixture
def unfiled(finished):
    """One whose file is gone."""
    (finished / "campaign.yaml").unlink()
    return finished


def stored(folder):
    return processes.rows(folder, "SELECT spec, execution FROM campaigns")


DECIDED = (
    "SELECT r.number, r.arms, r.examples, d.claim FROM rounds r JOIN decisions d ON d.round_id = r.id "
    "JOIN campaigns c ON c.id = r.campaign_id WHERE c.name = '{}' ORDER BY r.number"
)


def test_who_learns_from_a_campaign_goes_on_as_it_began_though_that_one_went_on(finished):
    learning = ["--set", "history=[campaign:survivor]", "--set", "selector={name: champion}"]

    def learn(name, budget):
        return winnow(
            finished, "run", "campaign.yaml", "--fork", name, *learning, "--set", f"stopping.budget={budget}"
        )

    assert [learn("whole", 36).returncode, learn("learner", 12).returncode] == [3, 3]
    assert winnow(finished, "resume", "survivor", "--set", "stopping.budget=48").returncode == 3
    assert learn("later", 12).returncode == 3
    resumed = winnow(finished, "resume", "learner", "--set", "stopping.budget=24")
    assert (resumed.returncode, resumed.stderr.count("changed")) == (3, 0)
    assert learn("learner", 36).returncode == 3
    told, of_whole = (processes.rows(finished, DECIDED.format(name)) for name in ("learner", "whole"))
    assert told == of_whole
    histories = "SELECT name, spec FROM campaigns WHERE name IN ('learner', 'later')"
    prints = {
        name: json.loads(spec)["history_fingerprint"] for name, spec in processes.rows(finished, histories)
    }
    assert prints["learner"] != prints["later"]


def test_a_larger_budget_goes_on_as_it_does_by_the_file(finished):
    assert winnow(finished, "run", "campaign.yaml", "--fork", "again").returncode == 3
    by_file = winnow(finished, "run", "campaign.yaml", "--fork", "again", "--set", "stopping.budget=40")
    (finished / "campaign.yaml").unlink()
    result = winnow(finished, "resume", "survivor", "--set", "stopping.budget=40", "--set", "tags=[input]")
    assert by_file.returncode == result.returncode == 3
    assert "40 comparisons in 5 rounds" in result.stdout
    command = "winnow resume survivor --set stopping.budget=MORE --storage sqlite:///winnow.db"
    assert f"continue with {command}" in result.stdout
    by_settings = processes.rows(finished, DECIDED.format("survivor"))
    assert by_settings == processes.rows(finished, DECIDED.format("again"))
    assert json.loads(winnow(finished, "show", "survivor", "--json").stdout)["execution"]["tags"] == ["input"]


def test_a_file_that_lowers_the_budget_is_taken_and_that_is_said(finished):
    raised = winnow(finished, "resume", "survivor", "--set", "stopping.budget=40")
    assert "budget" not in raised.stderr
    lowered = winnow(finished, "run", "campaign.yaml")
    assert lowered.stderr == (
        "the definition lowers the budget of campaign 'survivor' from now on: comparisons 32 (before: "
        "40); if the definition is outdated, raise its stopping.budget\n"
    )
    assert winnow(finished, "run", "campaign.yaml").stderr == ""
    more = winnow(finished, "run", "campaign.yaml", "--set", "stopping.budget={comparisons: 40, tokens: 9}")
    assert "from now on: tokens 9 (before: no limit); if the definition is outdated, raise" in more.stderr
    as_json = winnow(finished, "run", "campaign.yaml", "--log-format", "json")
    assert json.loads(as_json.stderr.splitlines()[0])["event"] == "budget_lowered"


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("seed=4", "seed: 11 -> 4"),
        ("stopping.delta=0.2", "stopping.delta: 0.05 -> 0.2"),
        ("reuse=only", "reuse: 'all' -> 'only'"),
        ("exclude=[{model: two}]", "exclude: [] -> [{'model': 'two'"),
        ("models[0].name=other", "models[other] is new"),
        (
            "storage=sqlite:///other.db",
            "name and storage of a stored campaign cannot change; remove name and storage",
        ),
        ("name=other", "name and storage of a stored campaign cannot change; remove name and storage"),
        ("stopping.budget=0", "--set stopping.budget: must be at least 1 (got 0)"),
        ("budget=40", "--set budget: unknown key; did you mean 'stopping.budget'?"),
        ("stopping.budget", "write key=value, for example --set stopping.budget=2000"),
    ],
)
def test_what_may_not_change_is_refused_and_nothing_is_written(unfiled, setting, said):
    before = stored(unfiled)
    result = winnow(unfiled, "resume", "survivor", "--set", setting)
    assert result.returncode == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert stored(unfiled) == before


def test_settings_are_of_one_campaign_that_there_is(unfiled):
    refused = winnow(unfiled, "resume", "--all", "--set", "stopping.budget=40")
    assert refused.returncode == 2
    assert "--set changes one campaign: name it instead of --all" in one_message(refused)
    unknown = winnow(unfiled, "resume", "survivr", "--set", "stopping.budget=40")
    assert unknown.returncode == 1
    assert "no campaign is named 'survivr'; there are: survivor" in one_message(unknown)


def test_what_a_setting_needs_is_allowed_with_it_and_all_else_is_asked_for(unfiled, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("logs")
    result = winnow(
        unfiled,
        "resume",
        "survivor",
        "--set",
        "stopping.budget=40",
        "--set",
        f"execution.log_folder={elsewhere}",
    )
    assert result.returncode == 3, result.stderr
    assert json.loads(winnow(unfiled, "show", "survivor", "--json").stdout)["execution"]["execution"][
        "log_folder"
    ] == str(elsewhere)
