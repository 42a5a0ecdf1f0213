"""How much better another candidate can be, in a stored campaign: on every surface, and after a resume."""

import json
import sqlite3
from contextlib import closing

import pytest
import scripted_engines
from campaigns import winnow
from scored_campaigns import write_scored

import winnow as winnow_package

pytestmark = pytest.mark.usefixtures("plain_runs")

NAMES = ("knows", "slips")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A campaign that ended undecided, and another one that was stopped before that and went on."""
    folder = tmp_path_factory.mktemp("excess")
    with pytest.MonkeyPatch.context() as patch:
        for name in NAMES:
            scripted_engines.provide(patch, name)
        write_scored(folder, NAMES, {"name": "champion"}, epsilon=0, budget=120)
        assert winnow(folder, "run", "campaign.yaml").returncode == 3
        halved = ("--fork", "halved", "--set", "stopping.budget=60")
        assert winnow(folder, "run", "campaign.yaml", *halved).returncode == 3
        going_on = ("resume", "halved", "--set", "stopping.budget=120", "--storage", place(folder))
        assert winnow(folder, *going_on).returncode == 3
    return folder


def place(folder):
    return f"sqlite:///{folder}/winnow.db"


def stated(folder, name):
    """The statements of all decisions, in order."""
    query = (
        "SELECT d.claim FROM decisions d JOIN rounds r ON r.id = d.round_id JOIN campaigns c "
        "ON c.id = r.campaign_id WHERE c.name = ? ORDER BY r.number"
    )
    with closing(sqlite3.connect(folder / "winnow.db")) as database:
        return [json.loads(claim).get("excess") for (claim,) in database.execute(query, (name,))]


def test_the_same_history_states_the_same_whether_it_was_stopped_or_not(folder):
    straight, halved = stated(folder, "survivor"), stated(folder, "halved")
    assert straight == halved
    assert None not in straight[2:]
    most = [each["most"] for each in straight if each is not None]
    assert most == sorted(most, reverse=True)
    checked = winnow(folder, "db", "check", "--storage", place(folder))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_surface_says_it(folder):
    status = json.loads(winnow(folder, "status", "survivor", "--json", "--storage", place(folder)).stdout)
    found = status["excess"]
    last = stated(folder, "survivor")[-1]
    assert (found["most"], found["delta"], found["claim"]) == (last["most"], 0.05, "proven")
    said = f"no candidate is better than {found['over']} by more than {found['most']:.3f} (95% confidence)"
    shown = {
        "status": winnow(folder, "status", "survivor", "--storage", place(folder)).stdout,
        "report": winnow(folder, "report", "survivor", "--storage", place(folder)).stdout,
    }
    place_of_page = ("--html", "page.html", "--storage", place(folder))
    assert winnow(folder, "report", "survivor", *place_of_page).returncode == 0
    shown["page"] = (folder / "page.html").read_text()
    assert {surface for surface, text in shown.items() if said not in " ".join(text.split())} == set()
    assert "How much better another candidate can be" in shown["page"]


def test_a_selection_without_a_database_has_it_too():
    def score(candidate, example):
        return float(example % candidate > 0)

    found = winnow_package.select(score, [5, 6, 7], range(200), delta=0.05, budget=150)
    assert found.claim.kind == "none"
    assert 0.0 < found.decision.excess.most < 0.5


def test_a_file_does_not_turn_it_on_or_off(folder, monkeypatch):
    for name in NAMES:
        scripted_engines.provide(monkeypatch, name)
    ran = winnow(folder, "run", "campaign.yaml", "--fork", "off", "--set", "selector.params.excess=false")
    assert ran.returncode == 2
    assert "selector.params.excess: new campaigns always report" in ran.stderr
