"""A first look at each candidate's outputs before it can be eliminated, and candidates left out by it."""

import json
from contextlib import closing
from dataclasses import replace

import pytest
from sqlalchemy import text
from stepwise_campaigns import begun, write_campaign
from stored_campaigns import new_database

from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import outcomes as outcome_records
from winnow.tasks.answer.sentences.answer_lines import answer_lines
from winnow.tasks.campaign.look import Look
from winnow.tasks.objectives import runner
from winnow.tasks.objectives.runner import Runner
from winnow.tasks.queries.check_decisions import decision_findings
from winnow.tasks.queries.status import campaign_status
from winnow.tasks.queries.warnings.first_outputs import ENOUGH, FirstOutputs
from winnow.tasks.rounds.record import decide_round
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign
from winnow.tasks.spec.stored_spec import LEFT_OUT

pytestmark = pytest.mark.usefixtures("scripted_models")

N_EXAMPLES = 60
LOOKED_AT = 1
"""Number of the round that has the fourth output of each candidate; the first one has two of each."""
TALKS = {"talks/plain"}
PLAIN = [{"name": "plain", "template": "{{ input }}="}]


@pytest.fixture
def path(tmp_path):
    """Three models, one of which wraps every right answer in a sentence."""
    return write_campaign(
        tmp_path,
        "small",
        numbers=range(N_EXAMPLES),
        models=[
            {"name": name, "provider": name, "model": str(tmp_path / "one")}
            for name in ("knows", "guesses", "talks")
        ],
        prompts=PLAIN,
        selector={"name": "champion"},
        batch_size=12,
        stopping={"budget": 3 * N_EXAMPLES, "delta": 0.05},
    )


class Watcher:
    """Takes the first look, and leaves out what looks wrong if it is to."""

    def __init__(self, *, leaves_out=False, most=99):
        self.first, self.leaves_out, self.most = FirstOutputs(), leaves_out, most
        self.found, self.warned, self.rounds = {}, [], 0

    @property
    def wants_to_stop(self):
        return self.rounds >= self.most

    def round_judged(self, campaign, judged):
        status = campaign.selector.decision().status
        found = self.first.look(campaign, judged)
        for each in found.suspects:
            assert each.name not in self.found
            self.found[each.name] = (judged.round_.number, status[each.arm], each.sentences)
        self.warned += found.warnings
        return [each.arm for each in found.suspects] if self.leaves_out else ()

    def round_done(self, campaign, round_, decision):
        self.rounds += 1


def run(database, path, watcher):
    with begun(database, path) as campaign, Runner(campaign, watcher) as stream:
        stream.run()
        return campaign


def stored(database):
    rounds = "SELECT number, arms, examples FROM rounds ORDER BY number"
    decided = "SELECT claim, reason, stop, best_lower, best_upper FROM decisions ORDER BY id"
    with database.reading() as session:
        found = [tuple(row) for query in (rounds, decided) for row in session.execute(text(query))]
        id_ = campaign_records.get_campaign(session, "small").id
        decision = outcome_records.latest_decision(session, id_)
    return found, replace(decision, decided_at=None)


def dying_in(number):
    """The step that decides, which is killed in a round."""

    def decide(campaign, round_, comparisons):
        if round_.number == number:
            raise RuntimeError
        return decide_round(campaign, round_, comparisons)

    return decide


def status_of(database):
    with database.reading() as session:
        look = Look(session, campaign_records.get_campaign(session, "small"))
        return campaign_status(look), look.record, list(decision_findings(session))


def test_a_candidate_is_looked_at_before_it_can_be_eliminated(database, path):
    watcher = Watcher()
    run(database, path, watcher)
    assert watcher.found.keys() == TALKS
    for number, status, sentences in watcher.found.values():
        assert (number, status) == (LOOKED_AT, "active")
        assert "scored 0 on all" in sentences[0]
        assert "got 'It is " in sentences[0]
        assert "its target is '" in sentences[0]
    [warning] = watcher.warned
    assert warning.kind == "zero-holds-target"
    assert set(warning.about) == TALKS


def test_a_look_changes_nothing(database, path, tmp_path):
    run(database, path, Watcher())
    with closing(new_database(tmp_path / "other.db")) as other:
        with begun(other, path) as campaign, Runner(campaign) as stream:
            stream.run()
        assert stored(other) == stored(database)


def test_few_examples_are_all_that_there_will_be(database, tmp_path, path):
    few = write_campaign(
        tmp_path,
        "few",
        numbers=range(1, ENOUGH - 1),
        models=[
            {"name": each, "provider": each, "model": str(tmp_path / "one")} for each in ("knows", "talks")
        ],
        prompts=PLAIN,
    )
    watcher = Watcher()
    run(database, few, watcher)
    assert watcher.found.keys() == TALKS


def test_outputs_of_an_earlier_run_count(database, path):
    """With 3 outputs a round no candidate has enough before the campaign goes on."""
    change = path.read_text().replace("batch_size: 12", "batch_size: 3").replace("champion", "row-mean")
    path.write_text(change)
    first, then = Watcher(most=1), Watcher()
    run(database, path, first)
    assert not first.found
    run(database, path, then)
    assert then.found.keys() == TALKS


def test_a_candidate_left_out_is_dropped_and_the_answer_says_so(database, path):
    watcher = Watcher(leaves_out=True)
    run(database, path, watcher)
    status, record, findings = status_of(database)
    assert record.execution[LEFT_OUT] == dict.fromkeys(TALKS, LOOKED_AT)
    answer = status.answer
    assert {each.name for each in answer.dropped} == TALKS
    lines = [sentence for _, sentence in answer_lines(answer)]
    assert any(line.startswith("talks/plain: excluded by a user in round 2") for line in lines)
    assert not [each for each in findings if each.is_wrong]
    with database.reading() as session:
        asked = session.execute(text("SELECT arms FROM rounds WHERE number > 1")).scalars()
        assert 2 not in {arm for arms in asked for arm in json.loads(arms)}


def test_a_resumed_campaign_decides_what_an_uninterrupted_one_does(database, path, tmp_path, monkeypatch):
    """It is killed after the answer was stored and before the round is, and between later rounds."""
    run(database, path, Watcher(leaves_out=True))
    with closing(new_database(tmp_path / "killed.db")) as killed:
        with monkeypatch.context() as patch:
            patch.setattr(runner, "decide_round", dying_in(LOOKED_AT))
            with pytest.raises(RuntimeError):
                run(killed, path, Watcher(leaves_out=True))
        run(killed, path, Watcher(most=1))
        run(killed, path, Watcher())
        assert stored(killed) == stored(database)


def test_a_campaign_keeps_who_was_left_out_when_its_file_is_run_again(database, path):
    run(database, path, Watcher(leaves_out=True, most=2))
    changed = path.read_text() + "tags: [id]\n"
    path.write_text(changed)
    record = open_campaign(database, check_campaign_file(str(path)))
    assert record.execution["tags"] == ["id"]
    assert record.execution[LEFT_OUT].keys() == TALKS
