"""Prompts that arrive while a campaign routes: answered, learned from, refused, cut off."""

import json
import re
import signal
from contextlib import closing

import campaign_processes as processes
import pytest
import route_campaigns as route
import scripted_engines
from campaign_processes import Kill, rows
from campaigns import winnow
from route_campaigns import write_route
from route_commands import asked, chosen, copy_of, done, everything, prepared, refused, spell
from waiting import PATIENCE_S

from winnow.flows.api.results import Results
from winnow.flows.exit_codes import FORCED
from winnow.storage.engine.database import open_database
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.leases import acquire
from winnow.storage.records.record_types import Holder
from winnow.tasks.campaign.lease import LIFETIME, is_gone, now
from winnow.tasks.engines.known_providers import PROVIDERS
from winnow.tasks.engines.pool.pool import EnginePool
from winnow.tasks.objectives.route.arrivals import read_prompts, store_arrival
from winnow.tasks.objectives.route.router import Router
from winnow.tasks.setup.open_campaign import reopen_campaign

pytestmark = pytest.mark.usefixtures("plain_runs")


def test_a_prompt_that_arrives_is_answered_stored_and_learned_from(answered):
    before = asked(answered, "comparisons")
    told = done(answered, *spell(99)).splitlines()
    assert told == ["speller/plain (score 1)", route.answer(99)]
    (new,) = [row for row in asked(answered, "comparisons") if row not in before]
    assert (new["candidate"], new["outcome"], new["text"]) == ("speller/plain", 1.0, route.answer(99))
    assert new["example"] == "arrival-1-1"
    assert rows(answered, "SELECT fields, targets FROM examples ORDER BY id DESC LIMIT 1") == [
        (json.dumps({"input": route.text("spell", 99), "type": "spell"}), json.dumps([route.answer(99)]))
    ]
    assert chosen(answered, range(60, 70), "spell") == {"speller/plain"}
    (answer,) = json.loads(done(answered, *spell(100, "--json")))
    assert answer == {
        "prompt": route.text("spell", 100),
        "candidate": "speller/plain",
        "text": route.answer(100),
        "score": 1.0,
        "reason": None,
    }


def test_prompts_that_nobody_is_left_to_answer_are_no_success(tmp_path, monkeypatch):
    scripted_engines.provide(monkeypatch, "absent")
    models = [route.model("counter", "absent"), route.model("speller", "absent")]
    prepared(tmp_path, models=models)
    assert winnow(tmp_path, "run", "campaign.yaml").returncode == 1
    route.write_prompts(tmp_path / "more.jsonl", range(90, 93))
    result = winnow(tmp_path, "route", "survivor", "--prompts", "more.jsonl", "--json")
    assert (result.returncode, json.loads(result.stdout)) == (1, [])
    assert (
        "3 of 3 stored prompts have no answer: survivor has no candidate left; winnow status survivor "
        "says why"
    ) in result.stderr


def test_what_arrives_changes_what_is_believed_later(answered, monkeypatch):
    def believed():
        done(answered, "route", "survivor", "--export", "policy")
        return Router.load("policy").scores(route.text("spell", 61))["speller/plain"]

    monkeypatch.chdir(answered)
    before = believed()
    exported = Results("sqlite:///winnow.db")["survivor"].export_policy("by a program")
    assert Router.load("by a program").scores(route.text("spell", 61))["speller/plain"] == before
    assert exported.prompts == len(rows(answered, "SELECT 1 FROM comparisons"))
    wrong = [{"input": route.text("spell", n), "target": "never", "type": "spell"} for n in range(10)]
    (answered / "wrong.jsonl").write_text("".join(json.dumps(row) + "\n" for row in wrong))
    told = json.loads(done(answered, "route", "survivor", "--prompts", "wrong.jsonl", "--json"))
    assert [each["prompt"] for each in told] == [row["input"] for row in wrong]
    assert {each["score"] for each in told} == {0.0}
    assert rows(answered, "SELECT count(*) FROM stream_batches") == [(1,)]
    grid = 2 * (route.N_EXAMPLES + 10)
    assert f"of the full grid of {grid}" in done(answered, "status", "survivor")
    sizes = rows(answered, "SELECT json_array_length(arms) FROM rounds ORDER BY number DESC LIMIT 3")
    assert sizes == [(2,), (route.BATCH_SIZE,), (route.BATCH_SIZE,)]
    assert believed() < before - 0.1


def test_a_file_given_again_is_asked_only_what_is_new(answered):
    file = answered / "more.jsonl"

    def give(prompts):
        """Of these ids and numbers; what was asked, and what is said of the others."""
        given = [
            {"input": route.text("spell", n), "target": route.answer(n), "type": "spell"} for _, n in prompts
        ]
        lines = [
            json.dumps(row if id_ is None else {"id": id_, **row})
            for (id_, _), row in zip(prompts, given, strict=True)
        ]
        file.write_text("\n".join(lines))
        result = winnow(answered, "route", "survivor", "--prompts", "more.jsonl", "--json")
        assert result.returncode == 0, result.stderr
        return [each["prompt"] for each in json.loads(result.stdout)], result.stderr

    def spelled(*numbers):
        return [route.text("spell", n) for n in numbers]

    assert give([("p", 90), (7, 91)]) == (spelled(90, 91), "")
    again = give([("p", 90), (7, 91), ("r", 92)])
    assert again == (spelled(92), "2 of 3 prompts with these ids are already stored and not added again\n")
    # Ids of other prompts, as where each file counts its rows anew.
    assert give([("p", 93), ("e0", 94)]) == (spelled(93, 94), "")
    assert give([("p", 93), ("e0", 94)])[0] == []
    assert [give([(None, 90), (None, 93)])[0] for _ in range(2)] == [spelled(90, 93)] * 2
    assert give([(None, 93), (None, 93)]) == (spelled(93, 93), "")
    stored = [key for (key,) in rows(answered, "SELECT key FROM examples ORDER BY id DESC LIMIT 11")][::-1]
    assert [key.partition("~")[0] for key in stored] == ["p", "7", "r", "p", "e0"] + [
        f"arrival-{n}-{place}" for n in (4, 5, 6) for place in (1, 2)
    ]


def test_prompts_of_a_file_that_were_stored_and_never_answered_are_not_told_as_answered(
    answered, monkeypatch
):
    row = {"id": "left", "input": route.text("spell", 95), "target": route.answer(95), "type": "spell"}
    (answered / "left.jsonl").write_text(json.dumps(row))
    monkeypatch.chdir(answered)
    storage = "sqlite:///winnow.db"
    with closing(open_database(storage)) as database:
        with database.reading() as session:
            campaign = campaign_records.get_campaign(session, "survivor")
        reopened = reopen_campaign(database, "survivor", storage)
        store_arrival(database, *reopened, read_prompts("left.jsonl", campaign))
    again = winnow(answered, "route", "survivor", "--prompts", "left.jsonl", "--json")
    assert (again.returncode, json.loads(again.stdout)) == (0, [])
    assert again.stderr == (
        "1 of 1 prompt with these ids is already stored and not added again\n1 prompt that arrived before "
        "has no answer yet: winnow route survivor --unanswered --storage sqlite:///winnow.db\n"
    )
    (told,) = json.loads(done(answered, "route", "survivor", "--unanswered", "--json"))
    assert told["prompt"] == row["input"]


def test_prompts_of_a_file_that_the_campaign_has_not_come_to_yet_are_not_told_as_asked(answered):
    rows_of_data = (answered / "data.jsonl").read_text().splitlines()
    (answered / "part.jsonl").write_text("\n".join([rows_of_data[0], *rows_of_data[-2:]]))
    result = winnow(answered, "route", "survivor", "--prompts", "part.jsonl")
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr == (
        "3 of 3 prompts with these ids are already stored and not added again\n2 of them are from the "
        "campaign's own dataset and not sent yet; to send them, run: winnow resume survivor --set "
        "stopping.budget=MORE --storage sqlite:///winnow.db\n"
    )
    done(answered, "resume", "survivor", "--set", f"stopping.budget={route.N_EXAMPLES}")
    assert "not sent yet" not in winnow(answered, "route", "survivor", "--prompts", "part.jsonl").stderr


def test_a_prompt_of_no_known_type_is_answered_too(answered):
    untyped = ["route", "survivor", "--prompt", route.text("count", 8), "--target", route.answer(8)]
    assert done(answered, *untyped).startswith("counter/plain")
    assert done(answered, *spell(98)).startswith("speller/plain")
    assert None in {row["prompt_type"] for row in asked(answered, "picks")}
    assert re.search("candidate +count +no type +spell", done(answered, "report", "survivor"))


ARRIVALS_REFUSED = {
    "no target": (
        ["--prompt", "count 1", "--field", "hint="],
        "the judge exact needs a target for 'count 1'",
    ),
    "an empty target": (["--prompt", "count 1", "--target", "", "--field", "hint="], "give it with --target"),
    "a missing field": (
        ["--prompt", "count 1", "--target", "b", "--field", "type=count"],
        "the prompt 'count 1' has no field 'hint', which a template uses; give it with --field hint=VALUE",
    ),
    "a field that is none": (["--prompt", "x", "--target", "b", "--field", "hint"], "is not key=value"),
    "half a character": (["--prompt", "\udcff", "--target", "b"], "contains half of a character"),
    "a prompt without tokens": (["--prompt", "", "--target", "b", "--field", "hint=h"], "has no tokens"),
    "no such file": (["--prompts", "none.jsonl"], "there is no file none.jsonl"),
    "a file without the columns": (["--prompts", "bad.jsonl"], "bad.jsonl, line 1: no target is named"),
    "nothing to do": ([], "give one of --prompt TEXT, --prompts FILE, --unanswered and --export DIR"),
    "all and one": (["--unanswered", "--prompt", "x"], "give one of --prompt"),
    "too much to do": (["--prompt", "x", "--export", "policy"], "give one of --prompt"),
    "a target of a file": (
        ["--prompts", "bad.jsonl", "--target", "x"],
        "--target and --field belong to --prompt",
    ),
}


@pytest.fixture(scope="module")
def hinted(plain_runs, tmp_path_factory):
    """A stored campaign whose prompts are made of a field that may be null."""
    folder = tmp_path_factory.mktemp("hinted")
    template = "{{ input }} {{ hint | default('', true) }}"
    write_route(folder, prompts=[{"name": "plain", "template": template}])
    data = [json.loads(line) | {"hint": None} for line in (folder / "data.jsonl").read_text().splitlines()]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data))
    (folder / "bad.jsonl").write_text('{"input": "count 1"}\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, path in route.PROVIDERS.items():
            patch.setitem(PROVIDERS, name, path)
        processes.store(folder / "campaign.yaml")
    return folder


@pytest.mark.parametrize("case", ARRIVALS_REFUSED)
def test_a_prompt_that_cannot_be_answered_is_refused_in_a_sentence_and_nothing_is_stored(hinted, case):
    arguments, message = ARRIVALS_REFUSED[case]
    before = everything(hinted)
    code = 1 if case == "a prompt without tokens" else 2
    assert message in refused(hinted, "route", "survivor", *arguments, code=code)
    assert everything(hinted) == before


def test_a_prompt_for_an_unknown_campaign_or_one_of_another_objective_is_refused(tmp_path):
    processes.store(processes.write_campaign(tmp_path))
    before = everything(tmp_path)
    told = refused(tmp_path, *spell(1), code=1)
    assert "'survivor' is a best-mean campaign; only route campaigns answer prompts" in told
    told = refused(tmp_path, "route", "survivor", "--export", "policy", code=1)
    assert "'survivor' is a best-mean campaign; only route campaigns have a policy" in told
    assert not (tmp_path / "policy").exists()
    told = refused(tmp_path, "route", "survivr", "--prompt", "x", "--target", "y", code=1)
    assert "no campaign is named 'survivr'; there are: survivor" in told
    assert "only route campaigns have the view picks" in refused(tmp_path, "query", "survivor", "picks")
    assert everything(tmp_path) == before


def test_a_prompt_for_a_campaign_that_another_process_runs_is_refused_and_not_stored(answered):
    elsewhere = Holder(host="elsewhere", pid=1, boot_id="b", pid_namespace="1", started_ticks=0)
    database = open_database(f"sqlite:///{answered}/winnow.db")
    acquire(database, 1, elsewhere, now=now(), lifetime=LIFETIME, is_gone=is_gone)
    database.close()
    before = everything(answered)
    assert "is being run by process 1 on elsewhere" in refused(answered, *spell(1), code=1)
    assert everything(answered) == before


@pytest.fixture
def unfinished(answered):
    """A campaign that has prompts and budget left, and its storage."""
    return answered, prepared(answered)


def test_prompts_whose_process_was_killed_before_their_round_are_taken_up_by_the_next_run(forks, unfinished):
    folder, storage = unfinished
    process = route.begin_answering(forks, folder, storage, Kill(commit=2, after=True))
    process.join(PATIENCE_S)
    assert process.exitcode == -9
    assert rows(folder, "SELECT count(*) FROM stream_batches") == [(1,)]
    assert rows(folder, "SELECT count(*) FROM rounds") == [(6,)]
    done(folder, "run", "campaign.yaml", "--set", f"stopping.budget={route.N_EXAMPLES + 1}")
    (answer,) = [row for row in asked(folder, "comparisons") if row["example"] == "arrival-1-1"]
    assert (answer["candidate"], answer["outcome"]) == ("speller/plain", 1.0)
    assert len(asked(folder, "comparisons")) == route.N_EXAMPLES + 1


def test_prompts_whose_process_was_killed_in_their_round_are_answered_as_without_a_kill(
    forks, unfinished, tmp_path_factory
):
    folder, _ = unfinished
    place = tmp_path_factory.mktemp("copies")
    histories = []
    kills = [Kill(commit=commit, after=after) for commit, after in ((4, True), (5, False), (5, True))]
    for number, kill in enumerate([None, *kills]):
        copy, storage = copy_of(folder, place / str(number))
        process = route.begin_answering(forks, copy, storage, kill)
        process.join(PATIENCE_S)
        assert process.exitcode == (-9 if kill else 0)
        assert rows(copy, "SELECT count(*) FROM rounds") == [(7,)]
        assert rows(copy, "SELECT count(*) FROM decisions") == [(6 if kill else 7,)]
        process = route.begin(forks, copy, storage)
        process.join(PATIENCE_S)
        assert process.exitcode == 0
        histories.append(route.history(copy))
    assert len(histories[0]["comparisons"]) == route.BUDGET
    assert all(history == histories[0] for history in histories)


@pytest.mark.parametrize(
    ("budget", "commit"), [(1000, 2), (24, 4)], ids=["no-prompt-was-left", "no-budget-was-left"]
)
def test_prompts_that_were_cut_off_after_the_campaign_had_ended_are_answered_on_resume(
    forks, tmp_path, budget, commit
):
    write_route(tmp_path, stopping={"budget": budget})
    done(tmp_path, "run", "campaign.yaml")
    storage = f"sqlite:///{tmp_path}/winnow.db"
    process = route.begin_answering(forks, tmp_path, storage, Kill(commit=commit, after=True))
    process.join(PATIENCE_S)
    assert process.exitcode == -9
    assert asked(tmp_path, "comparisons")[-1]["example"] != "arrival-1-1"
    assert done(tmp_path, "resume", "survivor").startswith("survivor: policy, heuristic")
    last = asked(tmp_path, "comparisons")[-1]
    assert (last["example"], last["outcome"]) == ("arrival-1-1", 1.0)
    before = everything(tmp_path)
    done(tmp_path, "resume", "survivor")
    assert everything(tmp_path) == before


def test_prompts_left_by_an_interruption_are_answered_later_as_without_it(answered, tmp_path_factory):
    """Though the campaign's budget is spent, and its file never named them."""
    whole, _ = copy_of(answered, tmp_path_factory.mktemp("copies") / "whole")
    left = range(90, 90 + 2 * route.BATCH_SIZE + 1)
    for folder in (answered, whole):
        route.write_prompts(folder / "more.jsonl", left)
    arrive = ["route", "survivor", "--prompts", "more.jsonl", "--json", "--trust"]
    told = json.loads(done(whole, *arrive))
    assert "arrived" not in done(whole, "status", "survivor")

    generate, calls = EnginePool.generate, []

    def interrupted(*given, **options):
        calls.append(given)
        if len(calls) > rounds_before:
            raise KeyboardInterrupt
        return generate(*given, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EnginePool, "generate", interrupted)
        rounds_before = len({each["candidate"] for each in told[: route.BATCH_SIZE]})
        stopped = winnow(answered, *arrive)
    assert (stopped.returncode, json.loads(stopped.stdout)) == (FORCED, told[: route.BATCH_SIZE])
    assert "run: winnow route survivor --unanswered --storage sqlite:///winnow.db" in stopped.stderr
    n_left = len(left) - route.BATCH_SIZE
    status = done(answered, "status", "survivor")
    assert f"arrived      {n_left} prompts that arrived later have no output yet" in status
    named = "run winnow route survivor --unanswered --storage sqlite:///winnow.db"
    assert named in " ".join(status.split())

    rest = json.loads(done(answered, "route", "survivor", "--unanswered", "--json"))
    assert rest == told[route.BATCH_SIZE :]
    assert route.history(answered) == route.history(whole)
    assert done(answered, "route", "survivor", "--unanswered") == (
        "every prompt that arrived at survivor has an answer\n"
    )
    assert json.loads(done(answered, "route", "survivor", "--unanswered", "--json")) == []


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_whatever_signal_stops_it_what_answers_the_rest_is_told(answered, monkeypatch, number, code):
    monkeypatch.setattr(EnginePool, "generate", lambda *given, **options: signal.raise_signal(number))
    stopped = winnow(answered, *spell(97))
    assert (stopped.returncode, stopped.stdout) == (code, "")
    assert "run: winnow route survivor --unanswered --storage sqlite:///winnow.db" in stopped.stderr
