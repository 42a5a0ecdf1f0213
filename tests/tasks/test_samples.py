"""Several texts of a candidate for each example: what is stored of them, and what stays right beside them."""

import json
import sqlite3
from contextlib import closing

import pytest
import yaml
from scripted_engines import SCRIPTED, provide_all
from stepwise_campaigns import begun, prune, run_campaign, run_round, write_campaign

from winnow.storage.admin.check import problems
from winnow.storage.queries import campaign_views, costs, unscored
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.answer.status_lines import status_lines
from winnow.tasks.campaign.look import Look
from winnow.tasks.engines.known_providers import PROVIDERS
from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.errors import SpecError
from winnow.tasks.queries.check_texts import findings
from winnow.tasks.queries.status import campaign_status
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.spec.campaign import CampaignSpec

PAIRS, N = 32, 3
PARTS = [{"type": "exact"}, {"type": "json-schema", "schema": {}}]
BEST_OF = {"type": "best-of", "judges": PARTS}
REFUSED = GenerationFailure(reason="refused", detail="not this one")


@pytest.fixture(autouse=True)
def scripted_models(monkeypatch):
    provide_all(monkeypatch)
    monkeypatch.setitem(PROVIDERS, "guesses", SCRIPTED["wavers"])


WARM = [{"name": "warm", "temperature": 1.0}]


def written(folder, name="several", samples=N, **changes):
    return write_campaign(folder, name, **{"generate_configs": WARM, "samples": samples, **changes})


def rows(folder, query):
    with closing(sqlite3.connect(folder / "results.db")) as connection:
        return connection.execute(query).fetchall()


def asked(database, view, name="several"):
    with database.reading() as session:
        return list(view(session, campaign_records.get_campaign(session, name).id))


def wrong(database):
    with database.reading() as session:
        return [*problems(session), *(str(each) for each in findings(session))]


def test_each_pair_has_its_texts_with_seeds_of_their_own_and_one_score(tmp_path, database):
    run_campaign(database, written(tmp_path))
    found = asked(database, campaign_views.outputs)
    assert len(found) == PAIRS * N
    by_pair = {}
    for row in found:
        by_pair.setdefault((row["candidate"], row["example"]), []).append(row)
    for of_pair in by_pair.values():
        assert [row["output"] for row in of_pair] == list(range(N))
        assert {row["outcome"] for row in of_pair} == {sum(row["score"] for row in of_pair) / N}
    assert any(0.0 < row["outcome"] < 1.0 for row in found)
    counts = "SELECT count(*), count(DISTINCT seed), count(DISTINCT replicate) FROM generations"
    seeds = rows(tmp_path, counts)
    assert seeds == [(PAIRS * N, PAIRS * N, N)]
    assert wrong(database) == []


def test_costs_stats_and_texts_count_every_text_and_each_pair_once(tmp_path, database):
    run_campaign(database, written(tmp_path))
    board = asked(database, campaign_views.leaderboard)
    assert [row["scored"] for row in board] == [8] * 4
    assert [row["output_tokens"] for row in board] == [8 * N] * 4  # of one token each
    paid = asked(database, costs.costs)
    assert [(row["candidate"] is None, row["generations"]) for row in paid] == [(False, 8 * N)] * 4
    totals = asked(database, lambda *given: [campaign_views.totals(*given)])[0]
    assert (totals["comparisons"], totals["generations"]) == (PAIRS, PAIRS * N)
    assert asked(database, unscored.texts_by_candidate) == [8] * 4
    shares = rows(tmp_path, "SELECT sum(texts), sum(comparisons), sum(truncated) FROM candidate_stats")
    assert shares == [(PAIRS * N, PAIRS, 0)]


def test_another_campaign_uses_the_texts_and_keeps_them_when_the_first_is_deleted(tmp_path, database):
    run_campaign(database, written(tmp_path, "first"))
    run_campaign(database, written(tmp_path, "several", {"n": N, "reduce": "pass@2"}, numbers=range(8)))
    assert rows(tmp_path, "SELECT count(*) FROM generations") == [(PAIRS * N,)]
    taken = asked(database, costs.reuse)
    assert sum(row["generations"] for row in taken) == PAIRS * N
    assert rows(tmp_path, "SELECT count(*) FROM pins") == [(0,)]
    prune(database, "first")
    assert rows(tmp_path, "SELECT count(*), count(round_id) FROM generations") == [(PAIRS * N, 0)]
    assert wrong(database) == []
    prune(database, "several")
    assert rows(tmp_path, "SELECT count(*) FROM generations UNION ALL SELECT count(*) FROM outputs") == [
        (0,), (0,)
    ]  # fmt: skip


def test_one_text_more_reuses_those_that_there_are(tmp_path, database):
    run_campaign(database, written(tmp_path, "first"))
    run_campaign(database, written(tmp_path, "several", N + 1))
    assert rows(tmp_path, "SELECT count(*) FROM generations") == [(PAIRS * (N + 1),)]


def test_a_pair_that_lacks_a_text_has_no_outcome_and_its_texts_are_kept(tmp_path, database):
    with begun(database, written(tmp_path)) as campaign:
        engines = campaign.engines.answers

        def failing(groups, later, **others):
            for number, answers in engines(groups, later=later, **others):
                yield number, [answers[0], REFUSED, *answers[2:]] if number == 0 else answers

        campaign.engines.answers = failing
        run_round(campaign)
    outcomes = rows(
        tmp_path,
        "SELECT c.reason, c.generation_a_id IS NULL, count(*), sum(o.reason = 'output_missing') "
        "FROM comparisons c JOIN outputs o ON o.comparison_id = c.id GROUP BY 1, 2 ORDER BY 1",
    )
    assert outcomes == [(None, 0, (PAIRS - 1) * N, None), ("refused", 1, N - 1, N - 1)]
    assert rows(tmp_path, "SELECT sum(answered), sum(scored) FROM decisions") == [(PAIRS - 1, PAIRS - 1)]
    assert wrong(database) == []


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE outputs SET score = 1 - score WHERE comparison_id = 1", "the scores of its outputs give"),
        (
            "UPDATE comparisons SET outcome = 0.9 WHERE id = 1",
            "its outcome is 0.9, but the scores of its outputs give",
        ),
        ("DELETE FROM outputs WHERE comparison_id = 1 AND number = 2", "and only 2 have scores"),
        (
            "UPDATE outputs SET generation_id = (SELECT generation_id FROM outputs WHERE comparison_id = 1 "
            "AND number = 1) WHERE comparison_id = 1 AND number = 2",
            "output 2 of several was generated with another model, sampling or seed",
        ),
        (
            "UPDATE outputs SET generation_id = (SELECT generation_id FROM outputs WHERE comparison_id = 5 "
            "AND number = 1) WHERE comparison_id = 1 AND number = 1",
            "output 1 of several is the answer to another prompt",
        ),
    ],
)
def test_the_check_finds_what_was_changed(tmp_path, database, statement, said):
    run_campaign(database, written(tmp_path, samples={"n": N, "reduce": "mean"}, seed=4))
    with closing(sqlite3.connect(tmp_path / "results.db")) as connection, connection:
        connection.execute(statement)
    assert any(said in each for each in wrong(database))


def test_the_calls_of_a_judge_are_checked_for_each_text(tmp_path, database):
    judge = {
        "type": "llm",
        "rubric": "Is it right?",
        "reference": True,
        "read": "text",
        "scale": "yes/no",
        "models": [{"name": "judge", "provider": "compares", "model": str(tmp_path / "judge")}],
    }
    run_campaign(database, written(tmp_path, judge=judge))
    assert rows(tmp_path, "SELECT count(*) FROM judgments") == [(PAIRS * N,)]
    assert wrong(database) == []
    with closing(sqlite3.connect(tmp_path / "results.db")) as connection, connection:
        connection.execute("DELETE FROM judgments WHERE id = 3")
    assert any("makes a call that is not stored" in each for each in wrong(database))


def test_the_text_is_scored_that_another_judge_likes_best_without_knowing_the_target(tmp_path, database):
    chooser = {
        "type": "llm",
        "rubric": "Is it a letter that you like?",
        "scale": "yes/no",
        "read": "text",
        "models": [{"name": "judge", "provider": "likes", "model": str(tmp_path / "judge")}],
    }
    judge = {"type": "best-of", "judges": [{"type": "exact"}, chooser]}
    run_campaign(database, written(tmp_path, samples={"n": N, "reduce": "best-of"}, judge=judge))
    of_pairs = rows(
        tmp_path,
        "SELECT c.outcome, max(o.score), max(o.preference), min(o.preference), g.text FROM comparisons c "
        "JOIN outputs o ON o.comparison_id = c.id JOIN generations g ON g.id = c.generation_a_id "
        "GROUP BY c.id",
    )
    assert all(outcome == best == liked == (text != "x") for outcome, best, liked, _, text in of_pairs)
    assert {(liked, disliked) for _, _, liked, disliked, _ in of_pairs} >= {(1.0, 0.0), (1.0, 1.0)}
    assert rows(tmp_path, "SELECT count(*) FROM judgments") == [(PAIRS * N,)]
    shown = rows(tmp_path, "SELECT text FROM prompts WHERE text LIKE '%letter that you like%'")
    assert shown
    assert not any("reference" in text for (text,) in shown)
    assert wrong(database) == []
    with database.reading() as session:
        status = campaign_status(Look(session, campaign_records.get_campaign(session, "several")))
    lines = dict(status_lines(status.answer, status.totals))
    assert lines["judge"].startswith("scores come from rules and from verdicts of judge on outputs")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"generate_configs": [{"name": "greedy"}]}, "samples: candidate 'one/plain/greedy' is greedy"),
        ({"samples": {"n": 4, "reduce": "best-of"}}, "samples: judge best-of and samples: {reduce: best-of}"),
        ({"judge": BEST_OF}, "judge.type: judge best-of and samples: {reduce: best-of} need each other"),
        (
            {"judge": BEST_OF | {"judges": PARTS[:1]}},
            "judge.judges: must be two judges, one that scores and one",
        ),
        *(
            (
                {"judge": {"type": name, "judges": [*PARTS, BEST_OF], **more}},
                "judge.judges[2].type: best-of chooses among the outputs of a pair, which a nested judge",
            )
            for name, more in (("all", {}), ("any", {}), ("weighted", {"weights": [1, 1, 1]}))
        ),
        (
            {"judge": {"type": "all", "judges": [{"type": "any", "judges": [BEST_OF]}]}},
            "judge.judges[0].judges[0].type: best-of chooses among the outputs of a pair",
        ),
        (
            {
                "judge": BEST_OF | {"judges": [BEST_OF, PARTS[0]]},
                "samples": {"n": 4, "reduce": "best-of"},
            },
            "judge.judges[0].type: best-of chooses among the outputs of a pair",
        ),
        (
            {"metrics": [{"name": "chosen", "judge": BEST_OF}]},
            "metrics[0].judge.type: judge best-of chooses among the outputs of a pair, and a metric is the",
        ),
        ({"samples": 0}, "samples.n: must be at least 2"),
        ({"samples": 101}, "samples.n: must be at most 100"),
        (
            {"samples": {"n": 4, "reduce": "median"}},
            "samples.reduce: must be mean, majority, best-of",
        ),
        ({"samples": {"n": 4, "reduce": "pass@5"}}, "samples: pass@5 needs at least 5 outputs, and n is 4"),
        ({"samples": {"n": 4, "reduce": "pass^5"}}, "samples: pass^5 needs at least 5 outputs, and n is 4"),
        (
            {"objective": "best-duel", "selector": {"name": "llm-po"}},
            "samples: a duel compares one output of each candidate",
        ),
    ],
)
def test_what_cannot_be_is_refused_where_it_stands(tmp_path, changes, said):
    path = written(tmp_path, **changes)
    with pytest.raises(SpecError) as caught:
        check_campaign_file(str(path))
    assert said in str(caught.value)


def test_one_text_is_the_campaign_without_the_key_and_several_are_another_one(tmp_path):
    def spec(samples):
        path = written(tmp_path, samples=samples)
        return CampaignSpec.model_validate(yaml.safe_load(path.read_text()))

    assert "samples" not in spec(None).identity()
    assert spec(1).identity() == spec(None).identity()
    assert spec(4).identity()["samples"] == {"n": 4, "reduce": "mean"}
    again = CampaignSpec.from_stored(
        json.loads(json.dumps(spec(4).identity())), spec(4).execution_fields(), spec(4).storage
    )
    assert again == spec(4)
    checked = check_campaign_file(str(written(tmp_path, samples=4)))
    assert "at most all of them are run, 32 a round, each of 4 texts (mean)" in checked.size


def certifying(folder):
    """Of 8 examples with their labels, all of which one round asks of two candidates."""
    return written(
        folder,
        objective="certify",
        prompts=[{"name": "plain", "template": "{{ input }}="}],
        certify={"alpha": 0.3, "cost": "custom", "costs": {"one/plain/warm": 1, "two/plain/warm": 2}},
        selector={"name": "r-eval"},
        batch_size=8,
        stopping={"budget": 8, "delta": 0.1},
    )


def routing(folder):
    """Of 8 prompts, all of which one round asks."""
    (folder / "vectors.jsonl").write_text(
        "".join(json.dumps({"id": f"e{each}", "vector": [1.0, float(each)]}) + "\n" for each in range(8))
    )
    return written(
        folder,
        samples={"n": N, "reduce": "pass@2"},
        objective="route",
        embedder={"type": "precomputed", "path": str(folder / "vectors.jsonl")},
        selector={"name": "lin-ucb"},
        batch_size=8,
        stopping={"budget": 8},
    )


@pytest.mark.parametrize(("campaign", "told"), [(certifying, "1.0 - human_loss"), (routing, "outcome")])
def test_other_objectives_are_told_what_the_texts_come_to(tmp_path, database, campaign, told):
    path = campaign(tmp_path)
    assert f"each of {N} texts" in check_campaign_file(str(path)).size
    run_campaign(database, path)
    found = asked(database, campaign_views.outputs)
    pairs = {(row["candidate"], row["example"], row["outcome"]) for row in found}
    assert len(found) == N * len(pairs)
    assert any(0.0 < outcome < 1.0 for *_, outcome in pairs)
    said = rows(tmp_path, f"SELECT outcome, {told} FROM comparisons")
    assert [outcome for outcome, _ in said] == pytest.approx([score for _, score in said])
    assert len(said) == len(pairs)
    assert rows(tmp_path, "SELECT count(*), count(DISTINCT seed) FROM generations") == [(len(found),) * 2]
    assert wrong(database) == []
    with closing(sqlite3.connect(tmp_path / "results.db")) as connection, connection:
        connection.execute("UPDATE outputs SET score = 1 - score WHERE comparison_id = 1")
    assert any("the scores of its outputs give" in each for each in wrong(database))


def test_the_answer_says_what_a_score_is(tmp_path, database):
    run_campaign(database, written(tmp_path, samples={"n": 4, "reduce": "pass@2"}))
    run_campaign(database, write_campaign(tmp_path, "plain"))
    with database.reading() as session:
        statuses = {
            name: campaign_status(Look(session, campaign_records.get_campaign(session, name)))
            for name in ("several", "plain")
        }
    lines = {name: dict(status_lines(each.answer, each.totals)) for name, each in statuses.items()}
    assert lines["several"]["score"] == "of an example: pass@2 of the 4 outputs that were drawn"
    assert "score" not in lines["plain"]
