"""A question that is asked twice in one look is answered once; whoever writes is answered each time."""

from contextlib import closing

from sqlalchemy import event
from stored_campaigns import new_database, store_campaign

from winnow.storage.engine.sqlite import STATEMENTS
from winnow.storage.queries import campaign_views, costs
from winnow.storage.records.campaigns import get_campaign
from winnow.storage.records.outcomes import latest_decision


def test_a_look_asks_each_question_once_and_the_next_look_asks_anew(campaign):
    asked = []
    event.listen(campaign.database.engine, "before_cursor_execute", lambda *seen: asked.append(seen[2]))
    questions = (latest_decision, campaign_views.leaderboard, campaign_views.totals, costs.costs)
    id_ = campaign.record.id
    for round_number, scored in ((0, 1), (1, 2)):
        campaign.finish(campaign.plan(round_number, [0], [round_number]), [1.0], best=0)
        with campaign.database.reading() as session:
            first = [ask(session, id_) for ask in questions]
            asked.clear()
            assert [ask(session, id_) for ask in questions] == first
            assert asked == []
            assert campaign_views.leaderboard(session, id_)[0]["scored"] == scored


def test_another_campaign_is_another_question(campaign):
    campaign.finish(campaign.plan(0, [0], [0]), [1.0], best=0)
    other = store_campaign(campaign.database, "other")
    with campaign.database.reading() as session:
        assert latest_decision(session, campaign.record.id).best == "a"
        assert latest_decision(session, other.record.id) is None


def test_whoever_writes_sees_what_was_written_since(campaign):
    round_ = campaign.plan(0, [0], [0])
    campaign.finish(round_, [1.0], best=0)
    with campaign.database.writing() as session:
        before = campaign_views.totals(session, campaign.record.id)["rounds"]
        session.connection().exec_driver_sql("UPDATE campaign_stats SET rounds = 0")
        assert (before, campaign_views.totals(session, campaign.record.id)["rounds"]) == (1, 0)


def test_a_query_is_compiled_once_for_all_files_of_a_process_and_answers_for_each(tmp_path):
    STATEMENTS.clear()
    known = []
    for name in ("one", "two"):
        with closing(new_database(tmp_path / name)) as database:
            campaign = store_campaign(database, name)
            with database.reading() as session:
                assert get_campaign(session, name).id == campaign.record.id
        known.append(len(STATEMENTS))
    assert known[0] == known[1] > 0
