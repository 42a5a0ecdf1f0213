"""What campaigns owe to one another, and how far judges agree, on rows that are added up here by hand."""

import datetime as dt
from collections import Counter
from dataclasses import replace

import pytest
from sqlalchemy import text
from stored_campaigns import NOW, decision, generation, judgment, store_campaign

from winnow.storage.queries import browse
from winnow.storage.queries import costs as reuse_views
from winnow.storage.queries import history as history_views
from winnow.storage.queries.objective import duels as duel_views
from winnow.storage.queries.objective import judgment_pairs as agreement_views
from winnow.storage.records import generations as generation_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.record_types import NewComparison, NewOutput
from winnow.tasks.campaign.look import Look
from winnow.tasks.errors import SpecError
from winnow.tasks.objectives.best_duel.views import agreement, campaigns_agreement, cohens_kappa
from winnow.tasks.queries.views import ask


def asked(campaign, view):
    with campaign.database.reading() as session:
        return list(view(session, campaign.record.id))


def history_of(campaign):
    with campaign.database.reading() as session:
        return ask(Look(session, campaign.record), "history")


def store_texts(campaign, round_, keys, **fields):
    """Store texts as paid for by a round; their ids by key, whoever paid."""
    with campaign.database.writing() as session:
        generation_records.add_generations(
            session, round_.id, [generation(key, **fields) for key in keys], NOW
        )
        return {key: text.id for key, text in generation_records.texts_by_key(session, keys).items()}


@pytest.fixture
def borrowing(database):
    """Duels whose texts x, y and judge's reply z an earlier campaign made; w is its own."""
    earlier = store_campaign(database, "earlier", objective="best-duel")
    paid = earlier.plan(0, [[0, 1]], [0])
    store_texts(earlier, paid, ["x", "y", "z"], input_tokens=10, output_tokens=5, seconds=2.0)
    campaign = store_campaign(database, "later", objective="best-duel")
    round_ = campaign.plan(0, [[0, 1], [1, 0]], [0, 1])
    ids = store_texts(campaign, round_, ["w", "x", "y", "z"])
    a, b, _ = campaign.candidate_ids
    e0, e1 = campaign.example_ids[:2]
    duels = [
        NewComparison(
            position=0,
            candidate_a_id=a,
            candidate_b_id=b,
            example_id=e0,
            generation_a_id=ids["x"],
            generation_b_id=ids["y"],
            judge="llm",
            outcome=1.0,
            judgments=[judgment("original", 1.0, reply=ids["z"]), judgment("swapped", 1.0, reply=ids["w"])],
        ),
        # b says what a said before: x counts for a alone.
        NewComparison(
            position=1,
            candidate_a_id=b,
            candidate_b_id=a,
            example_id=e1,
            generation_a_id=ids["x"],
            generation_b_id=ids["w"],
            judge="llm",
            outcome=0.0,
        ),
    ]
    with database.writing() as session:
        outcome_records.add_outcomes(session, round_.id, duels, decision(), NOW)
    return campaign


def test_reuse_tells_what_other_campaigns_had_paid_for_and_counts_each_text_once(borrowing):
    assert asked(borrowing, reuse_views.reuse) == [
        {
            "role": role,
            "name": name,
            "taken_from": "earlier",
            "generations": 1,
            "input_tokens": 10,
            "output_tokens": 5,
            "seconds": 2.0,
        }
        for role, name in (("candidate", "a"), ("candidate", "b"), ("judge", "j"))
    ]


def test_a_campaign_that_paid_for_all_it_used_has_reused_nothing(campaign):
    campaign.finish(campaign.plan(0, [0, 1], [0, 0]), [1.0, 0.0])
    assert asked(campaign, reuse_views.reuse) == []


def test_history_tells_when_the_winner_changed_among_campaigns_of_one_question(database):
    """Who leads a campaign that was left open has won nothing."""
    exact = {"kind": "exact", "delta": None, "raised_by": [], "assumptions": [], "refuted": []}
    won = {"stop": True, "reason": "exhausted", "claim": exact}
    winners = {"first": 0, "same": 0, "nobody": None, "leads": 1, "other": 1}
    stored = {name: store_campaign(database, name) for name in winners}
    for name, best in winners.items():
        kinds = ["best" if arm == best else "eliminated" for arm in range(3)]
        known = {} if name in ("nobody", "leads") else {**won, "status": kinds}
        stored[name].finish(stored[name].plan(0, [0, 1], [0, 0]), [1.0, None], best=best, **known)
    store_campaign(database, "duels", objective="best-duel")
    found = history_of(stored["same"])
    shown = ("campaign", "best", "comparisons", "scored", "changed")
    assert [tuple(row[name] for name in shown) for row in found] == [
        ("first", "a", 2, 1, None),
        ("same", "a", 2, 1, False),
        ("nobody", None, 2, 1, None),
        ("leads", "b", 2, 1, None),
        ("other", "b", 2, 1, True),
    ]
    assert found[0]["created_at"] == NOW


def test_history_shows_the_last_decision_and_campaigns_without_any(campaign):
    fresh = store_campaign(campaign.database, "fresh")
    for number, best in enumerate((0, 1)):
        campaign.finish(
            campaign.plan(number, [best], [number]),
            [1.0],
            best=best,
            estimates=[0.25, 0.5, None],
            lower=[0.0, 0.1, None],
            upper=[1.0, 0.9, None],
        )
    rows = history_of(fresh)
    shown = ("best", "estimate", "lower", "upper", "rounds", "comparisons")
    assert [tuple(row[name] for name in shown) for row in rows] == [
        ("b", 0.5, 0.1, 0.9, 2, 2),
        (None, None, None, None, 0, 0),
    ]


def test_a_campaign_that_a_limit_ended_is_not_said_to_run(database):
    """Its selector, which knows of no tokens, would go on."""
    campaign = store_campaign(database, budget={"tokens": 10})
    round_ = campaign.plan(0, [0], [0])
    text_of = store_texts(campaign, round_, ["x"], input_tokens=9, output_tokens=9)["x"]
    (row,) = campaign.comparisons(round_, [1.0])
    with database.writing() as session:
        told = decision(stop=False, reason="running")
        outcome_records.add_outcomes(session, round_.id, [replace(row, generation_a_id=text_of)], told, NOW)
    (found,) = history_of(campaign)
    assert (found["stop"], found["reason"]) == (True, "budget")


def test_what_could_not_be_asked_is_no_comparison_of_a_list(campaign):
    round_ = campaign.plan(0, [0, 1], [0, 0])
    lost = NewComparison(
        position=1,
        candidate_a_id=campaign.candidate_ids[1],
        example_id=campaign.example_ids[0],
        judge="exact",
        reason="load_failed",
    )
    rows = [campaign.comparisons(round_, [1.0, None])[0], lost]
    with campaign.database.writing() as session:
        outcome_records.add_outcomes(session, round_.id, rows, decision(), NOW)
    (found,) = history_of(campaign)
    assert (found["comparisons"], found["scored"]) == (1, 1)


def test_all_campaigns_are_listed_by_age_whatever_they_ask(campaign):
    store_campaign(campaign.database, "duels", objective="best-duel")
    with campaign.database.reading() as session:
        rows = history_views.campaigns(session)
    assert [(row["campaign"], row["objective"]) for row in rows] == [
        ("letters", "best-mean"),
        ("duels", "best-duel"),
    ]
    assert all(isinstance(row["created_at"], dt.datetime) for row in rows)


@pytest.fixture
def judged(database):
    return four_duels(database)


@pytest.fixture
def kept_duels(kept, backend):
    return kept(backend, four_duels)


def four_duels(database):
    """Four duels: Z and k agree on two, are opposed on one, and one is a tie for Z alone; m saw one."""
    campaign = store_campaign(database, objective="best-duel")
    both_orders = [judgment("original", 1.0, judge="Z"), judgment("swapped", 0.0, judge="Z")]
    unread = judgment("original", "verdict_missing", judge="m")
    campaign.finish_duels(
        campaign.plan(0, [[0, 1], [0, 1], [0, 2], [1, 2]], [0, 1, 2, 3]),
        [
            (1.0, [judgment("original", 1.0, judge="Z"), judgment("original", 0.75, judge="k")]),
            (0.0, [judgment("original", 0.0, judge="Z"), judgment("original", 0.0, judge="k"), unread]),
            (0.5, [judgment("original", 1.0, judge="Z"), judgment("original", 0.0, judge="k")]),
            (0.5, [*both_orders, judgment("original", 1.0, judge="k"), judgment("original", 0.5, judge="m")]),
        ],
    )
    return campaign


def test_judges_sides_are_counted_for_each_two_that_saw_the_same_duel(kept_duels):
    assert asked_sides(kept_duels) == {
        ("Z", "k"): Counter({(1, 1): 1, (-1, -1): 1, (1, -1): 1, (0, 1): 1}),
        ("Z", "m"): Counter({(0, 0): 1}),
        ("k", "m"): Counter({(1, 0): 1}),
    }


def asked_sides(campaign):
    with campaign.database.reading() as session:
        return agreement_views.judge_sides(session, campaign.record.id)


def test_agreement_tells_how_often_judges_took_the_same_and_opposite_sides(kept_duels):
    with kept_duels.database.reading() as session:
        rows = agreement(Look(session, kept_duels.record))
    # Z says 1, -1, 1, 0 and k 1, -1, -1, 1: by chance (2*2 + 1*2) / 16 = 0.375 of their duels.
    assert rows[0] == {
        "judge": "Z",
        "other": "k",
        "duels": 4,
        "same": 2,
        "opposite": 1,
        "agreement": 0.5,
        "kappa": pytest.approx((0.5 - 0.375) / (1 - 0.375)),
    }
    assert [(row["agreement"], row["kappa"]) for row in rows[1:]] == [(1.0, None), (0.0, 0.0)]


def test_two_campaigns_agree_on_the_texts_that_both_judged_whichever_way_round(judged):
    other = store_campaign(judged.database, "people", objective="best-duel")
    again = other.duels(other.plan(0, [[0, 1], [1, 0], [0, 2]], [0, 1, 2]), [(0.0, []), (1.0, []), (0.5, [])])
    statement = "SELECT generation_a_id, generation_b_id FROM comparisons ORDER BY id LIMIT 2"
    with judged.database.writing() as session:
        (first, second), (third, fourth) = session.execute(text(statement)).all()
        again[0] = replace(again[0], generation_a_id=first, generation_b_id=second)
        again[1] = replace(again[1], generation_a_id=fourth, generation_b_id=third)  # the other way round
        round_id = session.scalar(text("SELECT max(id) FROM rounds"))
        outcome_records.add_outcomes(session, round_id, again, other.decision(), NOW)
    with judged.database.reading() as session:
        # Of the first they say 1 and -1, of the second 0 for the first candidate and 1 for the second one.
        assert agreement_views.shared_sides(session, judged.record.id, other.record.id) == {
            (1, -1): 1,
            (-1, -1): 1,
        }
        found = campaigns_agreement(Look(session, judged.record), other.record)
        assert (found["campaign"], found["texts"], found["same"], found["opposite"]) == ("people", 2, 1, 1)
        fresh = store_campaign(judged.database, "fresh", objective="best-duel")
        assert campaigns_agreement(Look(session, judged.record), fresh.record) is None


def test_a_text_has_its_own_score_where_several_come_to_that_of_an_example(database):
    """By the means of other texts beside them, a judge would seem to disagree with itself."""
    alone, several = store_campaign(database, "alone"), store_campaign(database, "several")
    round_ = alone.plan(0, [0, 0], [0, 1])
    alone.finish(round_, [1.0, 0.0])
    with database.reading() as session:
        texts = session.scalars(text("SELECT generation_a_id FROM comparisons ORDER BY id")).all()
    planned = several.plan(0, [0, 0], [0, 1])
    means = several.comparisons(planned, [0.25, 0.75])
    made = [
        replace(
            each,
            generation_a_id=first,
            outputs=[
                NewOutput(number=0, generation_id=first, score=score),
                NewOutput(number=1, generation_id=each.generation_a_id, score=1.0 - score),
                NewOutput(number=2, generation_id=each.generation_a_id, score=None, reason="no_answer"),
            ],
        )
        for each, first, score in zip(means, texts, (1.0, 0.0), strict=True)
    ]
    with database.writing() as session:
        outcome_records.add_outcomes(session, planned.id, made, several.decision(), NOW)
    with database.reading() as session:
        for one, other in ((alone, several), (several, alone)):
            found = agreement_views.shared_sides(session, one.record.id, other.record.id)
            assert found == {(1, 1): 1, (-1, -1): 1}
        assert agreement_views.shared_sides(session, several.record.id, several.record.id).total() == 4


def test_what_could_not_be_read_is_told_by_judge_and_reason_with_its_share_of_calls(kept_duels):
    assert asked(kept_duels, duel_views.unread) == [
        {"metric": None, "judge": "m", "reason": "verdict_missing", "judgments": 1, "share": 0.5}
    ]


def test_what_was_said_for_a_metric_is_mixed_with_nothing_said_of_the_outcome(judged):
    def seen():
        with judged.database.reading() as session:
            views = [duel_views.judges, duel_views.verdicts, agreement_views.judge_sides, browse.choices]
            return [view(session, judged.record.id) for view in views]

    before, unread = seen(), asked(judged, duel_views.unread)
    for_metric = [
        replace(judgment(order, verdict, judge=judge), metric="tone")
        for judge in ("Z", "k", "t")
        for order, verdict in (("original", 0.25), ("swapped", 0.75), ("original", "no_logprobs"))
    ]
    judged.finish_duels(judged.plan(1, [[0, 1]], [4]), [(1.0, for_metric)])
    assert seen()[:3] == before[:3]
    assert seen()[3].judges == before[3].judges
    with judged.database.reading() as session:
        rows = list(duel_views.judgments(session, judged.record.id))
        found = {
            (doubt, judge): [
                row["round"]
                for row in browse.comparisons(
                    session,
                    judged.record.id,
                    browse.Filters(doubt=doubt, judge=judge),
                    before=None,
                    most=1,
                    characters=1,
                )
            ]
            for doubt in (None, "judged", "unread", "flipped")
            for judge in (None, "t")
        }
        (shown,) = browse.comparisons(
            session, judged.record.id, browse.Filters(), before=None, most=1, characters=1
        )
        said = browse.judgments(session, shown["id"], characters=None)
    assert [row["metric"] for row in rows] == [None] * 11 + ["tone"] * 9
    assert {row["metric"] for row in said} == {"tone"}
    # Comparisons in doubt are found by either; a judge that is asked for is one of the outcome.
    assert [found[None, None], found["judged", None], found["unread", None]] == [[1], [1], [1]]
    assert found["flipped", None] == [0]
    assert [found[doubt, "t"] for doubt in (None, "judged", "unread", "flipped")] == [[]] * 4
    assert [row for row in asked(judged, duel_views.unread) if row["metric"] is None] == unread
    assert {
        (row["judge"], row["judgments"], row["share"])
        for row in asked(judged, duel_views.unread)
        if row["metric"] == "tone"
    } == {(judge, 1, 1 / 3) for judge in ("Z", "k", "t")}


@pytest.mark.parametrize(
    ("doubt", "judge", "positions"),
    [
        ("judged", None, [3, 2, 1, 0]),
        ("judged", "m", [3, 1]),
        ("flipped", None, [3]),
        ("flipped", "k", []),
        ("unread", None, [1]),
        ("unread", "Z", []),
    ],
)
def test_comparisons_are_found_by_what_speaks_against_their_judges(kept_duels, doubt, judge, positions):
    filters = browse.Filters(doubt=doubt, judge=judge)
    with kept_duels.database.reading() as session:
        rows = browse.comparisons(session, kept_duels.record.id, filters, before=None, most=9, characters=1)
    assert [row["position"] for row in rows] == positions


def test_kappa_is_one_for_judges_that_always_agree_and_less_than_zero_for_those_that_never_do():
    assert cohens_kappa(Counter({(1, 1): 3, (-1, -1): 5})) == 1.0
    assert cohens_kappa(Counter({(1, -1): 4, (-1, 1): 4})) == -1.0


def test_an_autoevaluator_is_held_against_human_labels_where_both_are_known(database):
    campaign = store_campaign(database, objective="certify")
    round_ = campaign.plan(0, [0, 0, 0, 1], [0, 1, 2, 0])
    losses = [(0.0, 0.0), (1.0, 0.0), (1.0, None), (1.0, 1.0)]
    compared = [
        NewComparison(
            position=position,
            candidate_a_id=campaign.candidate_ids[round_.arms[position]],
            example_id=campaign.example_ids[round_.examples[position]],
            judge="exact",
            outcome=1.0 - human,
            human_loss=human,
            auto_loss=auto,
        )
        for position, (human, auto) in enumerate(losses)
    ]
    with database.writing() as session:
        outcome_records.add_outcomes(session, round_.id, compared, decision(), NOW)
    shown = ("candidate", "labels", "same", "agreement", "human_loss", "auto_loss")
    assert [
        tuple(row[name] for name in shown) for row in asked(campaign, agreement_views.human_agreement)
    ] == [
        ("a", 2, 1, 0.5, 0.5, 0.0),
        ("b", 1, 1, 1.0, 1.0, 1.0),
    ]


def test_a_candidate_that_does_not_exist_is_refused_with_the_nearest_name(campaign):
    with (
        campaign.database.reading() as session,
        pytest.raises(
            SpecError,
            match=r"'letters' has no candidate 'aa'; did you mean 'a'\? winnow show letters lists all 3",
        ),
    ):
        ask(Look(session, campaign.record), "comparisons", candidate="aa")
