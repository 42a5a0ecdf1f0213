"""Campaigns that route from end to end: what is learned, stored and shown, kills, refusals."""

import json
import re

import campaign_processes as processes
import pytest
import route_campaigns as route
from campaign_processes import Kill, asked_texts, rows
from route_campaigns import EXPERTS, write_route
from route_commands import asked, done, prepared, refused, spell
from waiting import PATIENCE_S

pytestmark = pytest.mark.usefixtures("plain_runs")

ENOUGH = 30
"""Processes after which a campaign that does not end is stuck."""


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
    assert (status["outcome"], status["reason"], status["is_guaranteed"]) == ("policy", "budget", False)
    assert status["standing"]["mean"] == pytest.approx(sum(outcomes) / route.BUDGET)
    assert status["standing"]["late_mean"] == 1.0
    own = [row["outcome"] for row in asked(finished, "comparisons") if row["candidate"] == status["best"]]
    assert status["estimate"] == pytest.approx(sum(own) / len(own))
    told = done(finished, "status", "survivor")
    assert re.search(
        r"routes +mean score 0\.9\d\d on the 48 prompts scored so far; 1\.000 on the last 12 of them", told
    )
    assert "has the highest mean" in told
    assert "heuristic" in told
    assert "winnow route survivor --export DIR" in told


def test_the_report_shows_each_candidates_share_of_each_type(finished):
    told = done(finished, "report", "survivor")
    assert "Shares of the last prompts, by type" in told
    assert re.search(
        r"candidate +count +spell\ncounter/plain +1\.000 +0\.000\nspeller/plain +0\.000 +1\.000", told
    )


def test_prompts_come_in_the_order_of_the_dataset_and_each_once(finished):
    keys = [row["example"] for row in asked(finished, "comparisons")]
    assert keys == [f"e{number}" for number in range(route.BUDGET)]


def test_vectors_are_stored_once_of_length_one_and_serve_another_campaign(finished, tmp_path, monkeypatch):
    import numpy as np

    from winnow.tasks.embedding.sentence_model import SentenceModel

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
        process.join(PATIENCE_S)
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


REFUSED = {
    "an embedder for scores": (
        {"objective": "best-mean", "prompt_type": None},
        "embedder: does not apply to best-mean; remove it",
    ),
    "a type for duels": (
        {"objective": "best-duel", "embedder": None},
        "prompt_type: does not apply to best-duel",
    ),
    "a type of no field": ({"prompt_type": "tipe"}, "prompt_type: unknown field 'tipe'"),
    "no path": ({"embedder": {"type": "precomputed"}}, "embedder: type: precomputed needs path"),
    "a path for text": (
        {"embedder": {"path": "vectors.jsonl"}},
        "embedder: path is only for type: precomputed",
    ),
    "no model": ({"embedder": {"type": "vllm"}}, "embedder: type: vllm needs model, the folder of"),
    "pooling for vLLM": (
        {"embedder": {"type": "vllm", "model": "embedder", "pooling": "cls"}},
        "embedder: vLLM pools as the checkpoint's configuration says",
    ),
    "an unknown checkpoint": ({"embedder": {"model": "nowhere"}}, "embedder.model: there is no checkpoint"),
    "an unknown embedder": ({"embedder": {"type": "word2vec"}}, "embedder.type: "),
    "a text of no field": ({"embedder": {"model": "embedder", "text": "{{ x }}"}}, "embedder.text: "),
    "the target": ({"embedder": {"model": "embedder", "text": "{{ target }}"}}, "embedder.text: "),
    "no vectors": (
        {"embedder": {"type": "precomputed", "path": "vectors.jsonl"}},
        "embedder.path: there is no file vectors.jsonl",
    ),
    "an epsilon": ({"stopping": {"budget": 10, "epsilon": 0.1}}, "stopping: epsilon does not apply to route"),
    "a history": ({"history": ["scores.csv"]}, "history: does not apply to route; remove it"),
    "a selector of benchmarks": ({"selector": {"name": "ucb-e"}}, "selector.name: ucb-e"),
    "a kernel that is none": (
        {"selector": {"name": "pak-ucb", "params": {"kernel": "cubic"}}},
        "selector: kernel must be ",
    ),
    "the dimension": (
        {"selector": {"name": "pak-ucb", "params": {"dim": 3}}},
        "selector.params.dim: is set to the length",
    ),
    **{
        f"the selector's {name}": (
            {"selector": {"name": "pak-ucb", "params": {name: "x"}}},
            f"selector.params.{name}: is not a parameter",
        )
        for name in ("name", "n_arms", "n_examples")
    },
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
    assert "a file of precomputed vectors has no vector for a new prompt" in told
