"""Campaigns that route from end to end: kills, prompts that arrive, candidates that join, refusals."""

import json
import math
import random
import re
import shutil

import campaign_processes as processes
import pytest
import route_campaigns as route
from campaign_processes import Kill, asked_texts, rows
from route_campaigns import EXPERTS, write_route
from test_command_line import winnow

from storage.database import open_database
from storage.leases import acquire
from storage.records import Holder
from tasks.engines.providers import PROVIDERS
from tasks.leasing import LIFETIME, is_gone, now
from tasks.routing.router import Router

pytestmark = pytest.mark.usefixtures("prefect_api")

ENOUGH = 30
"""Processes after which a campaign that does not end is stuck."""


@pytest.fixture(scope="module")
def forks(prefect_api):
    return processes.fork_server()


@pytest.fixture(autouse=True)
def scripted_models(monkeypatch):
    for name, path in route.PROVIDERS.items():
        monkeypatch.setitem(PROVIDERS, name, path)


@pytest.fixture(scope="module")
def finished(prefect_api, tmp_path_factory):
    """A campaign that has spent its budget; to be read only."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        for name, path in route.PROVIDERS.items():
            patch.setitem(PROVIDERS, name, path)
        write_route(folder)
        done(folder, "run", "campaign.yaml")
    return folder


@pytest.fixture
def answered(tmp_path):
    """A campaign with a few rounds, to be written to."""
    write_route(tmp_path, stopping={"budget": 24})
    done(tmp_path, "run", "campaign.yaml")
    return tmp_path


def done(folder, *arguments):
    """What a command that succeeds prints."""
    result = winnow(folder, *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def refused(folder, *arguments, code=2):
    """The only line that a refused command prints."""
    result = winnow(folder, *arguments)
    assert (result.returncode, result.stdout) == (code, "")
    (line,) = result.stderr.strip().splitlines()
    return line


def asked(folder, view):
    return json.loads(done(folder, "query", "survivor", view, "--json"))


def prepared(folder, **changes):
    """Store a campaign that is to be run by `route.begin`."""
    write_route(folder, **changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return processes.store(folder / "campaign.yaml")


def everything(folder):
    """All rows of all tables but the leases'."""
    tables = [name for (name,) in rows(folder, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: rows(folder, f"SELECT * FROM {name}") for name in tables if name != "leases"}


def spell(number, *more):
    """Arguments for a prompt to spell that has a target."""
    prompt = ["--prompt", route.text("spell", number), "--target", route.answer(number)]
    return ["route", "survivor", *prompt, "--field", "type=spell", *more]


def chosen(folder, numbers, kind):
    """Who an exported policy chooses for prompts of a type."""
    done(folder, "route", "survivor", "--export", "policy")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        router = Router.load("policy")
        return {router.choose(route.text(kind, number)) for number in numbers}


def test_prompts_of_each_type_move_to_the_candidate_that_is_right_on_them(finished):
    picks = asked(finished, "picks")
    late = [row for row in picks if row["until"] > route.BUDGET / 2]
    assert {(row["prompt_type"], row["candidate"]) for row in late} == set(EXPERTS.items())
    assert {row["share"] for row in late} == {row["mean"] for row in late} == {1.0}
    assert sum(row["picks"] for row in picks) == route.BUDGET
    early = [row for row in picks if row["until"] == picks[0]["until"]]
    assert {row["candidate"] for row in early} == set(EXPERTS.values())


def test_status_says_how_well_it_does_beside_a_single_candidate_and_how_to_serve_it(finished):
    status = json.loads(done(finished, "status", "survivor", "--json"))
    outcomes = [row["outcome"] for row in asked(finished, "comparisons")]
    assert (status["state"], status["reason"], status["is_guaranteed"]) == ("decided", "budget", False)
    assert status["standing"]["mean"] == pytest.approx(sum(outcomes) / route.BUDGET)
    assert status["standing"]["late_mean"] == 1.0
    own = [row["outcome"] for row in asked(finished, "comparisons") if row["candidate"] == status["best"]]
    assert status["estimate"] == pytest.approx(sum(own) / len(own))
    told = done(finished, "status", "survivor")
    assert re.search(r"routes +0\.9\d\d mean score of 48 prompts so far; 1\.000 of the last 12", told)
    assert "has the best mean of its own" in told
    assert "heuristic" in told
    assert "winnow route survivor --export DIR" in told


def test_the_report_shows_each_candidates_share_of_each_type(finished):
    told = done(finished, "report", "survivor")
    assert "Shares of the last prompts, by type" in told
    assert re.search(r"candidate +count +spell\ncounter/plain +1 +0\nspeller/plain +0 +1", told)


def test_prompts_come_in_the_order_of_the_dataset_and_each_once(finished):
    keys = [row["example"] for row in asked(finished, "comparisons")]
    assert keys == [f"e{number}" for number in range(route.BUDGET)]


def test_vectors_are_stored_once_of_length_one_and_serve_another_campaign(finished, tmp_path, monkeypatch):
    import numpy as np

    from tasks.embedding.sentence_model import SentenceModel

    stored = rows(finished, "SELECT embedder, vector FROM embeddings")
    assert len(stored) == route.N_EXAMPLES
    assert len({embedder for embedder, _ in stored}) == 1
    vectors = np.array([np.frombuffer(vector, dtype="<f4") for _, vector in stored], dtype=np.float64)
    assert vectors.shape == (route.N_EXAMPLES, 32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    write_route(tmp_path, storage="sqlite:///winnow.db")
    database = tmp_path / "winnow.db"
    database.write_bytes((finished / "winnow.db").read_bytes())
    monkeypatch.setattr(SentenceModel, "embed", lambda self, texts: pytest.fail(f"{texts} embedded again"))
    done(tmp_path, "run", "campaign.yaml", "--fork", "again", "--set", "selector.name=lin-ucb",
         "--set", "selector.params={}", "--set", "stopping.budget=8")  # fmt: skip
    assert rows(tmp_path, "SELECT embedder, vector FROM embeddings") == stored


@pytest.mark.parametrize("after", [False, True], ids=["before-a-commit", "after-a-commit"])
def test_a_campaign_killed_at_commits_is_like_an_uninterrupted_one(forks, finished, tmp_path, after):
    storage = prepared(tmp_path)
    kills = 0
    for attempt in range(ENOUGH):
        before = processes.stored_texts(tmp_path)
        vectors = rows(tmp_path, "SELECT count(*) FROM embeddings")[0][0]
        process = route.begin(
            forks, tmp_path, storage, Kill(commit=(2, 9, 17, 22, 21)[attempt % 5], after=after)
        )
        process.join(120)
        asked_now = [tuple(each[1:]) for each in asked_texts(tmp_path)]
        assert len(asked_now) == len(set(asked_now))
        assert not set(asked_now) & set(before)
        assert len(route.embedded_texts(tmp_path)) == (0 if vectors else route.N_EXAMPLES)
        if process.exitcode == 0:
            break
        assert process.exitcode == -9
        kills += 1
    assert kills >= 3
    assert route.history(tmp_path) == route.history(finished)


def test_a_campaign_killed_at_random_moments_is_like_an_uninterrupted_one(forks, finished, tmp_path):
    storage = prepared(tmp_path)
    chance, kills = random.Random(3), 0
    for attempt in range(ENOUGH):
        process = route.begin(forks, tmp_path, storage)
        process.join(chance.uniform(0.05, 0.3 + 0.3 * attempt))
        if process.exitcode is None:
            process.kill()
            kills += 1
        process.join()
        if process.exitcode == 0:
            break
    assert kills >= 1
    assert route.history(tmp_path) == route.history(finished)


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


def test_what_arrives_changes_what_is_believed_later(answered, monkeypatch):
    def believed():
        done(answered, "route", "survivor", "--export", "policy")
        return Router.load("policy").scores(route.text("spell", 61))["speller/plain"]

    monkeypatch.chdir(answered)
    before = believed()
    wrong = [{"input": route.text("spell", n), "target": "never", "type": "spell"} for n in range(10)]
    (answered / "wrong.jsonl").write_text("".join(json.dumps(row) + "\n" for row in wrong))
    told = json.loads(done(answered, "route", "survivor", "--prompts", "wrong.jsonl", "--json"))
    assert [each["prompt"] for each in told] == [row["input"] for row in wrong]
    assert {each["score"] for each in told} == {0.0}
    assert rows(answered, "SELECT count(*) FROM arrivals") == [(1,)]
    sizes = rows(answered, "SELECT json_array_length(arms) FROM rounds ORDER BY number DESC LIMIT 3")
    assert sizes == [(2,), (route.BATCH_SIZE,), (route.BATCH_SIZE,)]
    assert believed() < before - 0.1


def test_a_prompt_of_no_known_type_is_answered_too(answered):
    untyped = ["route", "survivor", "--prompt", route.text("count", 8), "--target", route.answer(8)]
    assert done(answered, *untyped).startswith("counter/plain")
    assert done(answered, *spell(98)).startswith("speller/plain")
    assert None in {row["prompt_type"] for row in asked(answered, "picks")}
    assert re.search("candidate +count +no type +spell", done(answered, "report", "survivor"))


ARRIVALS_REFUSED = {
    "no target": (
        ["--prompt", "count 1", "--field", "hint="],
        "the judge exact scores an answer to 'count 1' against a target",
    ),
    "an empty target": (["--prompt", "count 1", "--target", "", "--field", "hint="], "give it with --target"),
    "a missing field": (
        ["--prompt", "count 1", "--target", "b", "--field", "type=count"],
        "the prompt 'count 1' has no field 'hint', which a template uses; give it with --field hint=VALUE",
    ),
    "a field that is none": (["--prompt", "x", "--target", "b", "--field", "hint"], "is not key=value"),
    "half a character": (["--prompt", "\udcff", "--target", "b"], "holds half a character"),
    "a prompt without tokens": (["--prompt", "", "--target", "b", "--field", "hint=h"], "has no tokens"),
    "no such file": (["--prompts", "none.jsonl"], "there is no file none.jsonl"),
    "a file without the columns": (["--prompts", "bad.jsonl"], "bad.jsonl, line 1: unknown column 'target'"),
    "nothing to do": ([], "give one of --prompt TEXT, --prompts FILE and --export DIR"),
    "too much to do": (["--prompt", "x", "--export", "policy"], "give one of --prompt"),
    "a target of a file": (
        ["--prompts", "bad.jsonl", "--target", "x"],
        "--target and --field belong to --prompt",
    ),
}


@pytest.fixture(scope="module")
def hinted(prefect_api, tmp_path_factory):
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
    assert "picks is asked of route campaigns" in refused(tmp_path, "query", "survivor", "picks")
    assert everything(tmp_path) == before


def test_a_prompt_for_a_campaign_that_another_process_runs_is_refused_and_not_stored(answered):
    elsewhere = Holder(host="elsewhere", pid=1, process_started_at=0.0)
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


def copy_of(folder, place):
    """The same campaign at another place, and its storage."""
    shutil.copytree(folder, place)
    return place, f"sqlite:///{place}/winnow.db"


def test_prompts_whose_process_was_killed_before_their_round_are_taken_up_by_the_next_run(forks, unfinished):
    folder, storage = unfinished
    process = route.begin_answering(forks, folder, storage, Kill(commit=2, after=True))
    process.join(120)
    assert process.exitcode == -9
    assert rows(folder, "SELECT count(*) FROM arrivals") == [(1,)]
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
        process.join(120)
        assert process.exitcode == (-9 if kill else 0)
        assert rows(copy, "SELECT count(*) FROM rounds") == [(7,)]
        assert rows(copy, "SELECT count(*) FROM decisions") == [(6 if kill else 7,)]
        process = route.begin(forks, copy, storage)
        process.join(120)
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
    process.join(120)
    assert process.exitcode == -9
    assert asked(tmp_path, "comparisons")[-1]["example"] != "arrival-1-1"
    assert done(tmp_path, "resume", "survivor").startswith("survivor: decided")
    last = asked(tmp_path, "comparisons")[-1]
    assert (last["example"], last["outcome"]) == ("arrival-1-1", 1.0)
    before = everything(tmp_path)
    done(tmp_path, "resume", "survivor")
    assert everything(tmp_path) == before


WITH_NEWCOMER = [
    route.model("newcomer", "does_all"),
    route.model("counter", "counts"),
    route.model("speller", "spells"),
]
"""The new model stands first, yet its candidate is the third arm."""

TWO_PROMPTS = [{"name": "plain", "template": "{{ input }}="}, {"name": "other", "template": "{{ input }}:"}]


def test_a_model_that_is_added_joins_and_nothing_learned_is_lost(forks, answered, tmp_path_factory):
    early = route.history(answered)
    again, storage = copy_of(answered, tmp_path_factory.mktemp("again") / "copy")
    write_route(answered, models=WITH_NEWCOMER)
    done(answered, "run", "campaign.yaml")
    late = route.history(answered)
    for table in ("rounds", "comparisons", "decisions"):
        assert late[table][: len(early[table])] == early[table]
    assert late["embeddings"] == early["embeddings"]
    assert late["candidates"] == [
        (0, "counter/plain", 0),
        (1, "speller/plain", 0),
        (2, "newcomer/plain", 6),
    ]
    assert "newcomer/plain" in {row["candidate"] for row in asked(answered, "comparisons")[24:28]}
    prepared(again, models=WITH_NEWCOMER)
    for commit in (4, 9, None):
        process = route.begin(forks, again, storage, Kill(commit=commit, after=True) if commit else None)
        process.join(120)
        assert process.exitcode == (-9 if commit else 0)
    assert route.history(again) == late
    assert "models" in refused_run(answered, models=WITH_NEWCOMER[1:])


def test_a_candidate_that_joined_a_campaign_without_budget_is_shown_as_unknown(answered, monkeypatch):
    write_route(answered, models=WITH_NEWCOMER, stopping={"budget": 24})
    assert "24 comparisons in 6 rounds" in done(answered, "run", "campaign.yaml")
    board = {row["candidate"]: row["estimate"] for row in asked(answered, "leaderboard")}
    assert board.keys() == {"counter/plain", "speller/plain", "newcomer/plain"}
    assert board["newcomer/plain"] is None
    done(answered, "report", "survivor")
    assert chosen(answered, range(60, 70), "spell") == {"speller/plain"}
    monkeypatch.chdir(answered)
    assert math.isnan(Router.load("policy").scores(route.text("spell", 61))["newcomer/plain"])
    assert json.loads(done(answered, *spell(99, "--json")))[0]["candidate"] == "newcomer/plain"


def refused_run(folder, **changes):
    """What is said of a definition that may not take the place of the stored one; nothing changes."""
    before = everything(folder)
    write_route(folder, **changes)
    result = winnow(folder, "run", "campaign.yaml")
    assert result.returncode == 2
    assert "which may not change" in result.stderr
    assert everything(folder) == before
    return result.stderr


CHANGES = {
    "a model less": ({"models": [WITH_NEWCOMER[1]], "prompts": TWO_PROMPTS}, "models"),
    "a model exchanged": ({"models": WITH_NEWCOMER[:2]}, "models"),
    "a model changed": (
        {"models": [*WITH_NEWCOMER[:2], route.model("speller", "does_all")]},
        "models",
    ),
    "another seed": ({"models": WITH_NEWCOMER, "seed": 4}, "seed: 3 -> 4"),
    "another pooling": ({"embedder": {"model": "embedder", "pooling": "last"}}, "pooling: 'mean' -> 'last'"),
    "another type": ({"prompt_type": None}, "prompt_type: 'type' -> None"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_else_changes_is_refused_with_the_difference(finished, case, tmp_path):
    changes, told = CHANGES[case]
    folder, _ = copy_of(finished, tmp_path / "copy")
    assert told in refused_run(folder, storage="sqlite:///winnow.db", **changes)


REFUSED = {
    "an embedder for scores": (
        {"objective": "best-mean", "prompt_type": None},
        "embedder: means nothing to best-mean; leave it out",
    ),
    "a type for duels": (
        {"objective": "best-duel", "embedder": None},
        "prompt_type: means nothing to best-duel",
    ),
    "a type of no field": ({"prompt_type": "tipe"}, "prompt_type: unknown field 'tipe'"),
    "no path": ({"embedder": {"type": "precomputed"}}, "embedder: path is for type: precomputed"),
    "a path for text": ({"embedder": {"path": "vectors.jsonl"}}, "embedder: path is for type: precomputed"),
    "no model": ({"embedder": {"type": "vllm"}}, "embedder: type: vllm needs the folder of a checkpoint"),
    "pooling for vLLM": (
        {"embedder": {"type": "vllm", "model": "embedder", "pooling": "cls"}},
        "embedder: vLLM pools as the checkpoint says",
    ),
    "an unknown checkpoint": ({"embedder": {"model": "nowhere"}}, "embedder.model: there is no checkpoint"),
    "an unknown embedder": ({"embedder": {"type": "word2vec"}}, "embedder.type: "),
    "a text of no field": ({"embedder": {"model": "embedder", "text": "{{ x }}"}}, "embedder.text: "),
    "the target": ({"embedder": {"model": "embedder", "text": "{{ target }}"}}, "embedder.text: "),
    "no vectors": (
        {"embedder": {"type": "precomputed", "path": "vectors.jsonl"}},
        "embedder.path: there is no file vectors.jsonl",
    ),
    "an epsilon": ({"stopping": {"budget": 10, "epsilon": 0.1}}, "stopping: epsilon means nothing to route"),
    "a history": ({"history": ["scores.csv"]}, "history: means nothing to route; leave it out"),
    "a selector of benchmarks": ({"selector": {"name": "ucb-e"}}, "selector.name: ucb-e"),
    "a kernel that is none": (
        {"selector": {"name": "pak-ucb", "params": {"kernel": "cubic"}}},
        "selector: kernel must be ",
    ),
    "the dimension": (
        {"selector": {"name": "pak-ucb", "params": {"dim": 3}}},
        "selector.params.dim: is the length",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_campaign_that_makes_no_sense_is_refused_in_one_sentence(tmp_path, finished, case):
    changes, message = REFUSED[case]
    for name in ("counter", "speller", "newcomer", "embedder"):
        (tmp_path / name).symlink_to(finished / name)
    write_route(tmp_path, **changes)
    line = refused(tmp_path, "run", "campaign.yaml")
    assert message in line
    assert line.partition("campaign.yaml:")[2].partition(":")[0].isdigit()
    assert not (tmp_path / "winnow.db").exists()


def test_vectors_made_elsewhere_route_without_an_embedder(tmp_path):
    vectors = [
        {"id": f"e{n}", "vector": [2.0, 0.1] if n % 2 else [0.1, 2.0]} for n in range(route.N_EXAMPLES)
    ]
    (tmp_path / "vectors.jsonl").write_text("".join(json.dumps(row) + "\n" for row in vectors))
    write_route(tmp_path, embedder={"type": "precomputed", "path": "vectors.jsonl"})
    done(tmp_path, "run", "campaign.yaml")
    late = [row for row in asked(tmp_path, "picks") if row["until"] > route.BUDGET / 2]
    assert {(row["prompt_type"], row["candidate"]) for row in late} == set(EXPERTS.items())
    assert rows(tmp_path, "SELECT 1 FROM embeddings") == []
    told = refused(tmp_path, *spell(1))
    assert "vectors that were made elsewhere have none of a prompt that arrives" in told
