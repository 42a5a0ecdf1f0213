"""Metrics whose judges ask models: asked once, and kept apart from the objective's judge."""

import shutil
import sqlite3
from contextlib import closing

import pytest
import yaml
from scripted_engines import SCRIPTED, provide_all
from stepwise_campaigns import Steps, begun, prune, run_campaign, write_campaign
from stored_campaigns import new_database

from winnow.storage.engine.database import open_database
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.campaign.budget import devices_by_model
from winnow.tasks.campaign.look import Look
from winnow.tasks.data.hub_cache import revisions_of
from winnow.tasks.engines.known_providers import PROVIDERS
from winnow.tasks.errors import SpecError
from winnow.tasks.queries import breakdowns
from winnow.tasks.queries.check_texts import findings
from winnow.tasks.queries.warnings.from_spec import own_judge
from winnow.tasks.setup.definition_changes import IdentityChanged
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign
from winnow.tasks.setup.trust import permissions
from winnow.tasks.simulation.forecast.ceiling import plan_ceiling
from winnow.tasks.simulation.forecast.tokens import all_uses
from winnow.tasks.spec.campaign import CampaignSpec

N_PAIRS = 32


def rater(folder, name="judging", provider="compares", **params):
    """A judge that is a model; the one that `compares` says what `exact` says."""
    model = {"name": name, "provider": provider, "model": str(folder / "judge")}
    judge = {"type": "llm", "rubric": "The same?", "scale": "yes/no", "reference": True, "read": "text"}
    return judge | {"model": model} | params


def metric(name, judge):
    return {"name": name, "judge": judge}


@pytest.fixture(autouse=True)
def scripted(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    provide_all(monkeypatch)


def rows(database, query):
    with database.reading() as session:
        return [tuple(row) for row in session.connection().exec_driver_sql(query)]


def wrong(database):
    with database.reading() as session:
        return [each.sentence for each in findings(session)]


REPLIES = "SELECT count(*) FROM generations WHERE model = 'judging'"
VALUES = """
    SELECT m.name, c.outcome, m.score, m.reason FROM metrics m JOIN comparisons c ON c.id = m.comparison_id
"""


def test_a_model_gives_the_values_and_the_judge_alone_the_outcomes(database, tmp_path):
    run_campaign(database, write_campaign(tmp_path, "plain"))
    run_campaign(database, write_campaign(tmp_path, "asked", metrics=[metric("same", rater(tmp_path))]))
    found = rows(database, VALUES)
    assert len(found) == N_PAIRS
    assert {name for name, *_ in found} == {"same"}
    assert all(outcome == score and reason is None for _, outcome, score, reason in found)
    assert {score for *_, score, _ in found} == {0.0, 1.0}
    judged = "SELECT metric, judge, count(*), count(verdict) FROM judgments GROUP BY metric, judge"
    assert rows(database, judged) == [("same", "judging", N_PAIRS, N_PAIRS)]
    # Who scores, and which examples are drawn, is what it is without metrics.
    assert len(rows(database, "SELECT DISTINCT judge FROM comparisons")) == 1
    plans = rows(database, "SELECT arms, examples FROM rounds ORDER BY id")
    assert plans[0] == plans[1]
    paid = rows(database, "SELECT role, name, generations FROM v_costs WHERE role = 'judge'")
    assert paid == [("judge", "judging", rows(database, REPLIES)[0][0])]
    assert wrong(database) == []


def test_judges_that_ask_a_model_the_same_have_one_reply_each_under_its_own_name(database, tmp_path):
    judge = rater(tmp_path)
    metrics = [metric("first", judge), metric("second", judge)]
    run_campaign(database, write_campaign(tmp_path, "thrice", judge=judge, metrics=metrics))
    counted = rows(database, "SELECT metric, count(*) FROM judgments GROUP BY metric ORDER BY metric")
    assert counted == [(None, N_PAIRS), ("first", N_PAIRS), ("second", N_PAIRS)]
    ((replies,),) = rows(database, REPLIES)
    assert replies == rows(database, "SELECT count(DISTINCT generation_id) FROM judgments")[0][0] <= N_PAIRS
    numbers = rows(database, "SELECT comparison_id, group_concat(number) FROM judgments GROUP BY 1")
    assert {each for _, each in numbers} == {"0,1,2"}
    assert wrong(database) == []


def test_of_several_texts_each_is_asked_about_and_the_mean_counts(database, tmp_path, monkeypatch):
    monkeypatch.setitem(PROVIDERS, "guesses", SCRIPTED["wavers"])
    changes = {
        "samples": {"n": 3, "reduce": "mean"},
        "generate_configs": [{"name": "warm", "temperature": 1.0}],
        "metrics": [metric("same", rater(tmp_path))],
    }
    run_campaign(database, write_campaign(tmp_path, "several", **changes))
    found = rows(database, VALUES)
    assert all(outcome == pytest.approx(score) for _, outcome, score, _ in found)
    assert any(0.0 < score < 1.0 for *_, score, _ in found)
    assert rows(database, "SELECT count(*) FROM judgments") == [(3 * N_PAIRS,)]
    assert wrong(database) == []


def test_a_reply_that_says_nothing_leaves_the_value_open_with_its_reason(database, tmp_path):
    mute = rater(tmp_path, provider="knows", max_reasks=0)
    run_campaign(database, write_campaign(tmp_path, "mute", metrics=[metric("same", mute)]))
    assert {(score, reason) for _, _, score, reason in rows(database, VALUES)} == {(None, "verdict_missing")}
    assert rows(database, "SELECT count(*) FROM comparisons WHERE outcome IS NULL") == [(0,)]
    with database.reading() as session:
        campaign = campaign_records.get_campaign(session, "mute")
        assert {row["mean"] for row in breakdowns.metrics(Look(session, campaign))} == {None}


def test_who_goes_on_with_a_round_asks_for_no_reply_again(database, tmp_path):
    path = write_campaign(tmp_path, "cut", metrics=[metric("same", rater(tmp_path))])
    with begun(database, path) as campaign:
        steps = Steps(campaign)
        steps.generate()
        steps.judge()  # and there it ends
    made = rows(database, "SELECT id, key FROM generations ORDER BY id")
    assert rows(database, REPLIES)[0][0] > 0
    run_campaign(database, path)
    assert rows(database, "SELECT id, key FROM generations ORDER BY id") == made
    assert rows(database, "SELECT count(*) FROM judgments") == [(N_PAIRS,)]


@pytest.mark.parametrize("between", [None, "generate", "judge"])
def test_replies_of_a_campaign_that_is_deleted_stay_while_another_one_uses_them(database, tmp_path, between):
    metrics = [metric("same", rater(tmp_path))]
    run_campaign(database, write_campaign(tmp_path, "first", metrics=metrics))
    ((replies,),) = rows(database, REPLIES)
    second = write_campaign(tmp_path, "second", metrics=metrics)
    run_campaign(database, second, between={between: lambda: prune(database, "first")} if between else None)
    if between is None:
        prune(database, "first")
    assert rows(database, REPLIES) == [(replies,)]
    assert rows(database, "SELECT count(*) FROM judgments WHERE generation_id IS NULL") == [(0,)]
    assert wrong(database) == []
    prune(database, "second")
    assert rows(database, REPLIES) == [(0,)]
    assert rows(database, "SELECT count(*) FROM judgments") == [(0,)]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("metrics")
    database = new_database(folder / "results.db")
    with pytest.MonkeyPatch.context() as patch:
        provide_all(patch)
        metrics = [metric("same", rater(folder)), metric("liked", rater(folder, "liking", "likes"))]
        run_campaign(database, write_campaign(folder, "both", judge=rater(folder), metrics=metrics))
    database.close()
    return folder / "results.db"


@pytest.mark.parametrize(
    ("change", "sentence", "is_wrong"),
    [
        (
            "generation_id = (SELECT max(generation_id) FROM judgments WHERE metric = 'same') "
            "WHERE metric = 'same'",
            "the reply of judge judging is the answer to another prompt",
            True,
        ),
        ("generation_id = NULL WHERE metric = 'liked'", "the reply of judge liking is missing", True),
        (
            "metric = NULL WHERE metric = 'liked'",
            "the reply of judge liking belongs to no call of the judge",
            True,
        ),
        (
            "metric = 'other' WHERE metric = 'liked'",
            "a reply of judge liking is for 'other', which is not a metric of the campaign",
            True,
        ),
        (
            "metric = 'same' WHERE metric = 'liked'",
            "the reply of judge liking belongs to no call of the judge",
            True,
        ),
        ("attempt = 1 WHERE metric = 'same'", "judge judging makes a call that is not stored", False),
    ],
)
def test_what_was_changed_of_a_metrics_replies_is_found(recorded, tmp_path, change, sentence, is_wrong):
    shutil.copy(recorded, tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection, connection:
        connection.execute(f"UPDATE judgments SET {change}")
    copy = open_database(f"sqlite:///{tmp_path}/copy.db", read_only=True)
    with closing(copy), copy.reading() as session:
        told = list(findings(session))
    assert {(each.sentence, each.is_wrong) for each in told} == {(sentence, is_wrong)}


def test_a_metrics_judge_of_another_code_is_told_as_not_checked(recorded, tmp_path):
    shutil.copy(recorded, tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection, connection:
        connection.execute("UPDATE campaigns SET spec = json_set(spec, '$.metric_code.same', 'another')")
    with closing(open_database(f"sqlite:///{tmp_path}/copy.db", read_only=True)) as database:
        assert set(wrong(database)) == {
            "the judge of metric same differs from the one that the campaign began with"
        }


def test_what_a_campaign_is_names_the_models_of_metrics_and_its_judge_stays_what_it_is(database, tmp_path):
    plain = check_campaign_file(str(write_campaign(tmp_path, "plain")))
    asked = check_campaign_file(
        str(write_campaign(tmp_path, "asked", metrics=[metric("same", rater(tmp_path))]))
    )
    assert asked.judge_id == plain.judge_id
    assert plain.identity().keys() & {"metric_fingerprints", "metric_code"} == set()
    assert set(asked.identity()["metric_fingerprints"]) == {"judging"}
    assert [each.name for each in asked.models] == ["one", "two", "judging"]
    assert asked.judges_ahead
    assert set(devices_by_model(asked.identity())) == {"one", "two", "judging"}
    assert revisions_of(asked.identity())["metrics.same.judging"] is None
    open_campaign(database, asked)
    edited = rater(tmp_path, rubric="Not the same?")
    path = write_campaign(tmp_path, "asked", metrics=[metric("same", edited)])
    with pytest.raises(IdentityChanged, match=r"metrics\[same\]\.judge\.rubric"):
        open_campaign(database, check_campaign_file(str(path)))


def test_where_people_judge_rounds_wait_for_them_one_by_one_and_metrics_with_these(database, tmp_path):
    people = {"type": "human", "question": "Right?", "levels": {"yes": 1.0, "no": 0.0}}
    metrics = [metric("same", rater(tmp_path))]
    path = write_campaign(tmp_path, "people", judge=people, metrics=metrics)
    assert not check_campaign_file(str(path)).runs_ahead
    with begun(database, path) as campaign:
        steps = Steps(campaign)
        steps.generate()
    assert rows(database, REPLIES) == [(0,)]
    assert rows(database, "SELECT count(*) > 0 FROM generations") == [(1,)]


def test_where_a_metrics_model_is_served_may_change_and_its_key_is_asked_about(tmp_path, monkeypatch):
    monkeypatch.setenv("JUDGES_KEY", "secret")
    served = {"name": "far", "provider": "openai", "model": "m"}
    served |= {"model_base_url": "http://judges.example/v1", "api_key": "$JUDGES_KEY"}
    path = write_campaign(tmp_path, "served", metrics=[metric("same", rater(tmp_path, model=served))])
    spec = CampaignSpec.model_validate(yaml.safe_load(path.read_text()))
    assert "judges.example" not in str(spec.identity())
    assert CampaignSpec.from_stored(spec.identity(), spec.execution_fields(), spec.storage) == spec
    [permission] = [each for each in permissions(spec, tmp_path) if "JUDGES_KEY" in each.text]
    assert permission.keys == ("metrics[0].judge.model.api_key", "metrics[0].judge.model.model_base_url")
    checked = check_campaign_file(str(path))
    assert checked.served_at == {"far": "http://judges.example/v1"}
    moved = checked.begun_at({"far": "http://before.example/v1"})
    assert moved.moved_from == {"far": "http://before.example/v1"}
    assert moved.identity()["metric_fingerprints"] != checked.identity()["metric_fingerprints"]


def test_a_model_that_values_its_own_outputs_is_told_of(tmp_path):
    own = rater(tmp_path, model={"name": "self", "provider": "compares", "model": str(tmp_path / "one")})
    checked = check_campaign_file(str(write_campaign(tmp_path, "own", metrics=[metric("same", own)])))
    warning = own_judge(checked.identity())
    assert warning is not None
    assert warning.sentence.startswith("self judges its own outputs, those of one")


PRICES = {name: {"input": 0, "output": 1} for name in ("one", "two", "judging", "liking")}


def test_the_calls_of_all_judges_are_planned(tmp_path):
    changes = {
        "judge": rater(tmp_path),
        "metrics": [metric("liked", rater(tmp_path, "liking", "likes")), metric("rule", {"type": "exact"})],
        "selector": {"name": "champion"},
        "constraints": [{"metric": "liked", "at_least": 0.5}],
        "execution": {"prices": PRICES},
    }
    checked = check_campaign_file(str(write_campaign(tmp_path, "planned", **changes)))
    assert [use.model for use in all_uses(checked)] == ["judging", "liking"]
    most = plan_ceiling(checked).most
    assert most.judge_calls == 2 * N_PAIRS == 2 * most.requests
    assert most.price == pytest.approx((most.answer_tokens + most.judge_reply_tokens) / 1e6)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"rubric": ""}, "metrics[0].judge.rubric: "),
        ({"scale": "1..7"}, "metrics[0].judge.scale: must be"),
        ({"name": "one"}, "metrics[0].judge.models: the name 'one' is a candidate's model; rename one"),
        (
            {"provider": "likes"},
            "metrics[0].judge.models: the name 'judging' is another model; rename one",
        ),
        ({"model": {"name": "j", "model": "gone"}}, "metrics[0].judge.model.model: there is no"),
    ],
)
def test_a_metrics_judge_that_cannot_be_is_told_at_its_place(tmp_path, params, said):
    named = {key: params.pop(key) for key in ("name", "provider") if key in params}
    metrics = [metric("same", rater(tmp_path, **named) | params)]
    path = write_campaign(tmp_path, "refused", judge=rater(tmp_path), metrics=metrics)
    with pytest.raises(SpecError) as caught:
        check_campaign_file(str(path))
    assert said in str(caught.value)
