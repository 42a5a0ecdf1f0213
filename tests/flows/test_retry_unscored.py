"""Outputs that an engine failed to give are asked again: kills, budgets, what is stored and refused."""

import sqlite3
from contextlib import closing
from zlib import crc32

import pytest
import scripted_engines
from ahead_campaigns import finish_with_kills, history, run, write
from campaign_processes import rows
from campaigns import one_message, winnow
from without_prefect import leave_prefect_out

from winnow.storage.admin.check import problems
from winnow.storage.engine.database import open_database
from winnow.storage.queries.exports import scored_examples
from winnow.storage.queries.objective.paired import draws
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.campaign.campaign import opened_campaign
from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.errors import SpecError
from winnow.tasks.queries.status import campaign_status
from winnow.tasks.setup.retries import plan_retry


class Outage:
    """While a server is down, a share of its answers are time-outs."""

    def __init__(self):
        self.share, self.reason, self.asked = 0, "timed_out", []


@pytest.fixture
def outage(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    leave_prefect_out(monkeypatch)
    scripted_engines.provide(monkeypatch, "joining")
    found, answer = Outage(), scripted_engines.JoiningEngine.generate

    def generate(self, requests):
        answers = answer(self, requests)
        found.asked += [request.prompt for request in requests]
        return [
            GenerationFailure(reason=found.reason, detail="no answer within 5 s")
            if crc32(request.prompt.encode()) % 100 < found.share
            else each
            for request, each in zip(requests, answers, strict=True)
        ]

    monkeypatch.setattr(scripted_engines.JoiningEngine, "generate", generate)
    return found


def retried(path, folder, reason=None):
    with opened_campaign(f"sqlite:///{folder}/winnow.db", "ahead") as campaign:
        return plan_retry(campaign, reason)


def told(folder):
    return rows(
        folder,
        "SELECT r.number, x.candidate_a_id, x.example_id, x.outcome, x.reason FROM comparisons x "
        "JOIN rounds r ON r.id = x.round_id ORDER BY r.number, x.position",
    )


def checked(folder):
    with closing(open_database(f"sqlite:///{folder}/winnow.db")) as database, database.reading() as session:
        return problems(session)


def status(folder):
    with opened_campaign(f"sqlite:///{folder}/winnow.db", "ahead") as campaign, campaign.look() as look:
        return campaign_status(look)


NO_LIMIT = {"stopping": {"delta": 0.05}}


@pytest.mark.parametrize("lookahead", [0, 2])
def test_failed_outputs_are_asked_again_and_count_from_then_on(outage, tmp_path, lookahead):
    path = write(tmp_path, lookahead=lookahead, **NO_LIMIT)
    outage.share = 30
    run(path)
    before, n_rounds = told(tmp_path), len(rows(tmp_path, "SELECT 1 FROM rounds"))
    n_failed = sum(outcome is None for *_, outcome, _ in before)
    was = status(tmp_path)
    outage.share, outage.asked = 0, []
    plan = retried(path, tmp_path)
    assert (plan.pairs, plan.dropped, not plan.others) == (n_failed, 0, True)
    assert status(tmp_path).state == "interrupted"
    run(path)
    after = told(tmp_path)
    assert after[: len(before)] == before  # no row was changed
    again = [row for row in after if n_rounds <= row[0] < n_rounds + plan.rounds]
    assert [row[1:3] for row in again] == [row[1:3] for row in before if row[3] is None]
    assert all(outcome is not None for *_, outcome, _ in again)
    assert checked(tmp_path) == []
    now = status(tmp_path)
    assert now.state == "ended"
    assert was.answer.claim.kind == "none"
    assert now.answer.claim.kind in ("exact", "proven")
    assert now.totals["comparisons"] == now.totals["answered"] == len({row[1:3] for row in after})
    counts = rows(tmp_path, "SELECT sum(comparisons) FROM candidate_stats WHERE reason <> ''")
    assert counts == [(None,)]
    assert retried(path, tmp_path).pairs == 0
    with opened_campaign(f"sqlite:///{tmp_path}/winnow.db", "ahead") as campaign, campaign.look() as look:
        session, id_ = look.session, look.record.id
        drawn = draws(session, id_)
        for candidate in campaign_records.candidate_ids(session, id_):
            listed = [row["example"] for row in scored_examples(session, candidate)]
            assert len(listed) == len(set(listed)) > 0
        # in the order of the first draws, by which statements on new examples go
        firsts = list(dict.fromkeys(row[1:3] for row in after))
        assert [(each.candidate + 1, each.example + 1) for each in drawn] == firsts
        assert all(each.outcome is not None for each in drawn)


def test_killed_at_every_commit_boundary_a_retry_ends_as_uninterrupted(outage, tmp_path):
    found = []
    for name in ("whole", "killed"):
        outage.share = 30
        path = write(tmp_path / name, batch_size=12, fail_on_error=1.0, **NO_LIMIT)
        run(path)
        outage.share = 0
        assert retried(path, tmp_path / name).rounds > 2
        if name == "whole":
            run(path)
        else:
            assert finish_with_kills(path, [(3, False), (3, True)]) > 6
        assert checked(tmp_path / name) == []
        found.append(history(tmp_path / name))
    assert found[0] == found[1]


def test_what_fails_once_more_can_be_asked_once_more(outage, tmp_path):
    path = write(tmp_path, batch_size=16, **NO_LIMIT)
    outage.share = 30
    run(path)
    outage.share = 8
    retried(path, tmp_path)
    run(path)
    outage.share = 0
    assert 0 < retried(path, tmp_path).pairs < 20
    run(path)
    assert checked(tmp_path) == []
    assert status(tmp_path).answer.claim.kind in ("exact", "proven")


def test_what_stays_missing_is_worth_what_it_was_and_can_be_asked_by_its_reason(outage, tmp_path):
    path = write(tmp_path, **NO_LIMIT)
    outage.share, outage.reason = 20, "refused"
    run(path)
    plan = retried(path, tmp_path)
    assert plan.pairs == 0
    assert plan.others["refused"] > 5
    assert "outputs missing for other reasons" in plan.sentence
    assert retried(path, tmp_path, "refused").pairs == plan.others["refused"]
    run(path)  # and are refused again
    assert checked(tmp_path) == []
    n_pairs = len({row[1:3] for row in told(tmp_path)})
    ((counted,),) = rows(tmp_path, "SELECT sum(comparisons) FROM candidate_stats")
    assert counted == n_pairs
    assert retried(path, tmp_path, "refused").pairs == plan.others["refused"]


def test_answered_retries_are_paid_from_the_budget_of_comparisons(outage, tmp_path):
    path = write(tmp_path, stopping={"budget": 60, "delta": 0.05})
    outage.share = 30
    run(path)
    assert status(tmp_path).totals["answered"] >= 60
    with pytest.raises(SpecError, match="budget is spent"):
        retried(path, tmp_path)
    write(tmp_path, stopping={"budget": 70, "delta": 0.05})
    outage.share = 0
    from ahead_campaigns import stored

    stored(path)
    room = 70 - status(tmp_path).totals["answered"]
    assert retried(path, tmp_path).pairs == room
    run(path)
    assert status(tmp_path).totals["answered"] >= 70
    assert checked(tmp_path) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"selector": {"name": "row-mean"}},
        {"selector": {"name": "ucb-e"}},
        {"holdout": 0.3},
    ],
)
def test_campaigns_that_accept_no_later_scores_refuse_in_a_sentence(outage, tmp_path, changes):
    path = write(tmp_path, **changes)
    outage.share = 20
    run(path)
    before = rows(tmp_path, "SELECT count(*) FROM rounds")
    with pytest.raises(SpecError, match="accepts no later scores"):
        retried(path, tmp_path)
    assert rows(tmp_path, "SELECT count(*) FROM rounds") == before


def test_dropped_candidates_stay_dropped(outage, tmp_path):
    path = write(tmp_path, fail_on_error=0.2, **NO_LIMIT)
    outage.share = 40
    run(path)
    dropped = "SELECT DISTINCT candidate_id FROM standings WHERE status = 'dropped'"
    was_dropped = rows(tmp_path, dropped)
    plan = retried(path, tmp_path)
    assert plan.dropped > 0
    assert "stays dropped" in plan.sentence
    outage.share = 0
    run(path)
    assert rows(tmp_path, dropped) == was_dropped != []
    later = (
        f"SELECT 1 FROM standings WHERE status <> 'dropped' AND candidate_id IN ({dropped}) AND round_id > "
    )
    assert rows(tmp_path, later + "(SELECT min(round_id) FROM standings WHERE status = 'dropped')") == []
    assert checked(tmp_path) == []


def test_a_pair_has_one_score_in_the_database(outage, tmp_path):
    path = write(tmp_path, **NO_LIMIT)
    run(path)
    with closing(sqlite3.connect(tmp_path / "winnow.db")) as connection:
        columns = "candidate_a_id, example_id, judge, no_answer"
        copied = (
            f"INSERT INTO comparisons (round_id, position, outcome, {columns}) "
            f"SELECT round_id, 999, 1.0, {columns} FROM comparisons LIMIT 1"
        )
        with pytest.raises(sqlite3.IntegrityError, match="candidate_example"):
            connection.execute(copied)


AGENT = """\
from pathlib import Path
from zlib import crc32

def answer(example, params):
    number = int(example["input"])
    if Path(params["folder"], "down").exists() and crc32(b"%d" % number) % 3 == 0:
        raise TimeoutError("no answer")
    return "abcdefg"[number % 7] if number % params["wrong_in"] else "?"
"""


def test_the_command_asks_an_agent_again_and_says_what_it_does(tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    models = [
        {"name": name, "provider": "python", "function": "agent.py:answer",
         "params": {"folder": [str(tmp_path)], "wrong_in": [wrong_in]}}
        for name, wrong_in in (("good", 19), ("bad", 2))
    ]  # fmt: skip
    path = write(tmp_path, models=models, prompts=[], lookahead="auto", batch_size=20, **NO_LIMIT)
    (tmp_path / "down").touch()
    first = winnow(tmp_path, "run", str(path), "--trust")
    assert first.returncode in (0, 3), first.stderr
    (tmp_path / "down").unlink()
    n_failed = sum(outcome is None for *_, outcome, _ in told(tmp_path))
    assert n_failed > 5
    again = winnow(tmp_path, "resume", "ahead", "--retry-unscored", "--trust")
    assert again.returncode == 0, again.stderr
    assert f"requesting {n_failed} outputs again in" in again.stderr
    check = winnow(tmp_path, "db", "check")  # makes the last decision again
    assert check.returncode == 0, check.stdout + check.stderr
    assert checked(tmp_path) == []
    once_more = winnow(tmp_path, "resume", "ahead", "--retry-unscored", "--trust")
    assert (once_more.returncode, "no output is requested again" in once_more.stderr) == (0, True)
    for arguments in (["--all", "--retry-unscored"], ["ahead", "--reason", "timed_out"]):
        wrong = winnow(tmp_path, "resume", *arguments)
        assert (wrong.returncode, one_message(wrong).count("--")) == (2, 2)
