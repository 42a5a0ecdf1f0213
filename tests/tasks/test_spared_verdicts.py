"""Verdicts that are spared on equal outputs: what is refused, what is stored, and what a judge is shown."""

import pytest
import yaml
from stepwise_campaigns import begun, run_round, write_campaign
from stored_campaigns import new_database

from winnow.storage.queries import unscored as unscored_views
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.record_types import EQUAL_OUTPUTS
from winnow.tasks.answer.new_examples import Question, ScoreSamples
from winnow.tasks.campaign.earlier_scores import ended_table
from winnow.tasks.campaign.replay import restored
from winnow.tasks.data.score_tables import ScoreTableError
from winnow.tasks.errors import SpecError
from winnow.tasks.judges.protocol import JUDGE_FAILED, Verdict
from winnow.tasks.judges.rules.string_match import ContainsJudge, ExactJudge
from winnow.tasks.objectives.round_functions import JudgeBroken
from winnow.tasks.setup.load import check_campaign_file, exhaustive_campaign
from winnow.tasks.setup.open_campaign import reopen_campaign
from winnow.tasks.setup.rescore import rescoring_campaign
from winnow.tasks.spec.judge_tree import spares

pytestmark = pytest.mark.usefixtures("scripted_models")

JUDGE = {"type": "exact", "spare": "equal-outputs"}


def written(folder, name="spared", **changes):
    given = {
        "judge": JUDGE,
        "selector": {"name": "race"},
        "stopping": {"delta": 0.01, "budget": 96},
        "fail_on_error": 1.0,
        "batch_size": 8,
        "numbers": range(24),
    }
    return write_campaign(folder, name, **given | changes)


@pytest.mark.parametrize(
    ("changes", "path", "said"),
    [
        ({"judge": JUDGE | {"spare": "all"}}, "judge.spare", "must be equal-outputs"),
        ({"selector": {"name": "champion"}}, "selector.name", "needs the selector race"),
        ({"stopping": {"budget": 96}}, "stopping.delta", "needs delta"),
        ({"fail_on_error": 0.5}, "fail_on_error", "fail_on_error: 1"),
        ({"holdout": 0.25}, "holdout", "holdout"),
        ({"samples": {"n": 2, "reduce": "mean"}}, "samples", "several samples"),
        ({"groups": {"by": "id"}}, "groups", "groups"),
        ({"tags": ["id"]}, "tags", "tags"),
        ({"judge": JUDGE | {"type": "reported", "number": "cost"}}, "judge.type", "reported"),
        (
            {
                "judge": {
                    "type": "all",
                    "judges": [{"type": "exact"}, {"type": "acc"}],
                    "spare": "equal-outputs",
                }
            },
            "judge.judges[1].type",
            "acc can score equal outputs differently",
        ),
        ({"metrics": [{"name": "m", "judge": JUDGE}]}, "metrics[0].judge.spare", "remove spare"),
        ({"selector": {"name": "race", "params": {"top_m": 2}}}, "selector", "top_m"),
        ({"objective": "best-duel", "selector": {"name": "llm-po"}}, "judge", "is only for best-mean"),
    ],
)
def test_a_campaign_that_needs_the_verdicts_is_refused_in_a_sentence(tmp_path, changes, path, said):
    with pytest.raises(SpecError) as refused:
        check_campaign_file(str(written(tmp_path, **changes)))
    assert path in f"{refused.value.path} {refused.value}"
    assert said in str(refused.value)


def test_a_key_without_a_value_spares_nothing(tmp_path):
    checked = check_campaign_file(str(written(tmp_path, judge=JUDGE | {"spare": None})))
    assert not checked.spares
    assert not spares(checked.identity())
    assert spares(check_campaign_file(str(written(tmp_path))).identity())


@pytest.fixture
def run(tmp_path):
    """A database with an ended campaign, its file, its last decision, and the samples that its judge saw."""
    database, path, seen = new_database(tmp_path / "winnow.db"), written(tmp_path), []
    judge = ExactJudge.judge
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExactJudge, "judge", lambda self, sample: seen.append(sample) or judge(self, sample))
        with begun(database, path) as campaign:
            while not campaign.selector.decision().stop:
                run_round(campaign)
            decision = campaign.selector.decision()
    return database, path, decision, seen


def rows_of(database):
    """Outcome, reason and text of each comparison, by round and example."""
    query = (
        "SELECT r.number, c.example_id, c.outcome, c.reason, g.text FROM comparisons c "
        "JOIN rounds r ON r.id = c.round_id JOIN generations g ON g.id = c.generation_a_id"
    )
    found = {}
    with database.engine.connect() as connection:
        for number, example, *rest in connection.exec_driver_sql(query):
            found.setdefault((number, example), []).append(rest)
    return found


def test_what_is_spared_is_what_all_in_question_wrote_alike(run):
    database, _, decision, seen = run
    found = rows_of(database)
    n_spared = 0
    for rows in found.values():
        is_equal = len({text for *_, text in rows}) == 1
        assert {reason for _, reason, _ in rows} == {EQUAL_OUTPUTS if is_equal else None}
        assert {outcome is None for outcome, *_ in rows} == {is_equal}
        n_spared += len(rows) * is_equal
    n_rows = sum(map(len, found.values()))
    assert 0 < n_spared < n_rows
    assert decision.claim.kind in ("proven", "exact")
    assert len(seen) == n_rows - n_spared
    for sample in seen:  # nothing that tells apart who wrote the same
        assert (sample.prompt, sample.reasoning, sample.input_tokens, sample.finish_reason) == (None,) * 4
        assert not sample.candidate


def test_a_replay_of_the_stored_rows_comes_to_the_same_state(run):
    database, _, decision, _ = run
    record, checked = reopen_campaign(database, "spared", database.url)
    with database.reading() as session:
        selector, _, _ = restored(session, record, checked)
        stored = outcome_records.latest_decision(session, record.id)
    again = selector.decision()
    assert again.bets.wealths.tolist() == decision.bets.wealths.tolist()
    assert again.status == decision.status
    assert stored.estimates == pytest.approx(again.estimates.tolist())
    assert set(stored.lower) == set(stored.upper) == {None}


def test_new_examples_count_spared_ones_as_known_zeros(run):
    database, *_ = run
    record, _ = reopen_campaign(database, "spared", database.url)
    with database.reading() as session:
        names = ["one/plain", "one/asked", "two/plain", "two/asked"]
        known = unscored_views.by_reason(session, record)
        asked = {"session": session, "campaign_id": record.id, "names": names, "n_examples": 24}
        question = Question(**asked, selector="race", is_duel=False, spares=True)
        samples = ScoreSamples(question)
        assert samples.unscored == 0
        assert len(samples.of(*names[:2]).largest) * len(names) >= known[""]
        blind = ScoreSamples(Question(**asked, selector="race", is_duel=False))
        assert blind.unscored == known[EQUAL_OUTPUTS]


def test_other_uses_of_its_scores_are_refused_or_judge_all(run):
    database, path, *_ = run
    checked = check_campaign_file(str(path))
    assert not checked.takes_more_candidates
    assert exhaustive_campaign(checked).spec.judge.spare is None
    with (
        database.reading() as session,
        pytest.raises(ScoreTableError, match="has no scores for equal outputs"),
    ):
        ended_table(session, "campaign:spared", database.url)
    again = rescoring_campaign(database, "spared", None, None, [], lambda *_: None)
    assert again.spec.judge.spare is None
    assert not again.spares
    judge = path.parent / "judge.yaml"
    judge.write_text(yaml.safe_dump(JUDGE))
    with pytest.raises(SpecError, match="judges every stored output"):
        rescoring_campaign(database, "spared", str(judge), "again", [], lambda *_: None)


def test_metrics_are_of_all_outputs_and_see_all_of_a_sample(tmp_path):
    database, seen = new_database(tmp_path / "winnow.db"), []
    path = written(tmp_path, metrics=[{"name": "there", "judge": {"type": "contains"}}])
    judge = ContainsJudge.judge
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ContainsJudge, "judge", lambda self, sample: seen.append(sample) or judge(self, sample))
        with begun(database, path) as campaign:
            while not campaign.selector.decision().stop:
                run_round(campaign)
    rows = [row for each in rows_of(database).values() for row in each]
    assert EQUAL_OUTPUTS in {reason for _, reason, _ in rows}
    with database.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(score) FROM metrics").scalar() == len(rows)
    assert all(sample.prompt for sample in seen)


def test_a_judge_that_keeps_failing_is_found_between_spared_comparisons(tmp_path):
    database = new_database(tmp_path / "winnow.db")

    def fails(self, sample):
        return Verdict.unscored(JUDGE_FAILED, detail="it fails")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExactJudge, "judge", fails)
        with begun(database, written(tmp_path, batch_size=64)) as campaign:
            run_round(campaign)
            with pytest.raises(JudgeBroken):
                run_round(campaign)
