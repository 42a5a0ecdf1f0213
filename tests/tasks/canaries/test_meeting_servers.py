"""Served models in campaigns: which texts are one model's, and how a change behind a name is noticed."""

import itertools
from contextlib import contextmanager

import pytest
from both_databases import BOTH
from faulty_server import SERVER_ERROR, Fault, always, faulty_server, is_canary, no_faults, refused
from served_campaigns import N_EXAMPLES, begun, die_before_judging, run, served_model, served_spec
from sqlalchemy import select, text

from winnow.storage.models import Generation
from winnow.storage.queries import campaign_views
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import canaries as canary_records
from winnow.tasks.campaign import contacts
from winnow.tasks.campaign.changed_models import count_changed, has_changed, server_changes
from winnow.tasks.errors import ServedModelDiffers, SpecError
from winnow.tasks.objectives.round_functions import NoServer
from winnow.tasks.queries.check_texts import findings

ON_BOTH = pytest.mark.parametrize("database", BOTH, indirect=True)

GRID = 2 * N_EXAMPLES
"""Texts of one model: two prompts on each example."""


def right(call):
    """Knows the letter of every example; what else it is asked, it answers at length."""
    return f"about {call.prompt}" if is_canary(call.body) else "abcdef"[int(call.prompt[0])]


def wrong(call):
    """Another model: it knows no letter, and says other things."""
    return f"regarding {call.prompt}" if is_canary(call.body) else "z"


def partly(differing):
    """Knows every letter, and says something else to this many of the canary prompts."""
    numbers = itertools.count()

    def reply(call):
        return "else" if is_canary(call.body) and next(numbers) < differing else right(call)

    return reply


@contextmanager
def two_servers(first=right, second=wrong):
    with faulty_server(reply=first) as one, faulty_server(reply=second) as other:
        yield one, other


def means(database, record):
    outcomes = {}
    with database.reading() as session:
        for row in campaign_views.comparisons(session, record.id):
            outcomes.setdefault(row["candidate"], []).append(row["outcome"])
    return {candidate: sum(each) / len(each) for candidate, each in outcomes.items()}


def changes(database, record):
    with database.reading() as session:
        return server_changes(session, record)


def losses(database):
    rows = text("SELECT human_loss, auto_loss, unlabelled_loss FROM comparisons")
    with database.reading() as session:
        return [loss for row in session.execute(rows) for loss in row]


def metric_values(database):
    """How many values each metric has, and how many it lacks."""
    rows = text("SELECT name, count(score), count(*) - count(score) FROM metrics GROUP BY name")
    with database.reading() as session:
        return [tuple(row[1:]) for row in session.execute(rows)]


def canaries(database, record):
    with database.reading() as session:
        return canary_records.canaries(session, record.id)


def scored(database, record):
    with database.reading() as session:
        return [row["outcome"] for row in campaign_views.comparisons(session, record.id)]


# Which models there are


@ON_BOTH
def test_one_id_at_two_servers_is_two_models_within_a_campaign(database):
    """The reproduction: they shared texts, so that the better one had the worse one's on some examples."""
    with two_servers() as (one, other):
        record = run(database, served_spec(served_model(one.url), served_model(other.url, "two")))
        assert means(database, record) == {"one/p0": 1.0, "one/p1": 1.0, "two/p0": 0.0, "two/p1": 0.0}
        assert len(scored(database, record)) == one.answered + other.answered


def test_one_served_identity_at_two_servers_is_one_model(database):
    said = {"served_identity": "letters fp16"}
    with two_servers(right, right) as (one, other):
        models = served_model(one.url, **said), served_model(other.url, "two", **said)
        record = run(database, served_spec(*models))
        assert len(scored(database, record)) > one.answered + other.answered
        assert one.answered + other.answered <= GRID


def test_two_servers_that_are_said_to_be_one_and_are_not_are_refused(database):
    said = {"served_identity": "letters fp16"}
    with two_servers() as (one, other), pytest.raises(ServedModelDiffers) as refusal:
        run(database, served_spec(served_model(one.url, **said), served_model(other.url, "two", **said)))
    assert "5 of 5 canary prompts differently" in str(refusal.value)
    assert "by served_identity 'letters fp16' it is the same model as at" in str(refusal.value)


def test_another_campaign_at_the_same_server_reuses_its_texts_for_five_requests(database):
    with faulty_server(reply=right) as server:
        model = served_model(server.url)
        run(database, served_spec(model))
        assert (len(server.calls), len(server.canaries)) == (GRID, 10)
        record = run(database, served_spec(model, name="fork"))
        assert (len(server.calls), len(server.canaries)) == (GRID, 15)
    assert [each.verdict for each in canaries(database, record)] == ["same"]
    assert changes(database, record) == []


def test_a_process_asks_for_a_server_only_once_whatever_asks_it(database):
    with faulty_server(reply=right) as server:
        run(database, served_spec(served_model(server.url), served_model(server.url, "two")))
        assert len(server.canaries) == 10


@ON_BOTH
def test_a_text_names_the_canary_it_was_made_under(database):
    with faulty_server(reply=right) as server:
        record = run(database, served_spec(served_model(server.url)))
    [canary] = canaries(database, record)
    assert (canary.verdict, canary.epoch, canary.changed) == ("first", 0, 0)
    assert (canary.name, canary.server, len(canary.texts)) == ("one", server.url, 5)
    assert canary.texts == canary.repeated
    assert canary.output_tokens == 2 * sum(map(len, canary.texts))
    with database.reading() as session:
        assert session.scalars(select(Generation.canary_id).distinct()).all() == [canary.id]


def test_a_canary_that_a_filter_ended_was_paid_for(database):
    def filtered(call):
        text = right(call)
        return (text, "content_filter" if is_canary(call.body) and "Poem" in call.prompt else "stop")

    with faulty_server(reply=filtered) as server:
        record = run(database, served_spec(served_model(server.url)))
        paid = sum(len(right(call)) for call in server.canaries)
    [canary] = canaries(database, record)
    assert None in canary.texts
    assert canary.output_tokens == paid


def test_the_check_of_a_database_finds_every_text_where_it_should_be_whatever_keeps_it_apart(database):
    with two_servers(right, right) as (one, other):
        run(database, served_spec(served_model(one.url)), rounds=1)
        run(database, served_spec(served_model(other.url)))
        one.reply = wrong
        for reuse in ("all", "campaign", "none", {"max_age": "1m"}):
            run(database, served_spec(served_model(one.url), name=f"with-{len(str(reuse))}", reuse=reuse))
        assert len(one.calls) > 2 * GRID
    with database.reading() as session:
        assert list(findings(session)) == []


# A server swapped behind its id


@ON_BOTH
def test_a_model_that_was_exchanged_behind_its_url_is_asked_anew(database):
    """The reproduction: a nightly campaign sent no request and had the old answer again."""
    with faulty_server(reply=right) as server:
        model = served_model(server.url)
        first = run(database, served_spec(model))
        server.reply = wrong
        later = run(database, served_spec(model, name="tonight"))
        assert set(means(database, first).values()) == {1.0}
        assert set(means(database, later).values()) == {0.0}
        [before], [after] = changes(database, later), changes(database, first)
        third = run(database, served_spec(model, name="tomorrow"))
        assert len(server.calls) == 2 * GRID
    assert (before.when, before.changed, before.prompts, before.texts_before) == ("before", 5, 5, 0)
    assert before.sentence.endswith("no output from before is used here")
    assert (after.when, after.texts_before) == ("after", GRID)
    assert after.sentence.endswith("this answer is about the model before the change")
    assert changes(database, third) == []
    assert set(means(database, third).values()) == {0.0}


@ON_BOTH
def test_a_change_in_the_middle_of_a_campaign_is_told_with_how_much_is_of_before(database):
    with faulty_server(reply=right) as server:
        spec = served_spec(served_model(server.url))
        run(database, spec, rounds=1)
        server.reply = wrong
        record = run(database, spec)
    [change] = changes(database, record)
    assert (change.model, change.when, change.texts_before) == ("one", "during", 4)
    assert "4 outputs of this campaign are from the model before the change" in change.sentence
    assert sum(scored(database, record)) == 4.0


def test_who_takes_stored_texts_alone_knows_which_models_wrote_them(database):
    """The reproduction: what was judged again of a model that had changed on the way was "known exactly"."""
    early, late = ("{{ input }}=", "{{ input }}:"), ("{{ input }}-", "{{ input }}>")
    with faulty_server(reply=right) as server:
        model = served_model(server.url)
        run(database, served_spec(model, prompts=early))
        server.reply = wrong
        run(database, served_spec(model, name="later", prompts=late))
    both = run(database, served_spec(model, name="both", prompts=early + late, reuse="only"))
    alone = run(database, served_spec(model, name="alone", prompts=early, reuse="only"))
    [change] = changes(database, both)
    assert (change.when, change.texts_before, change.mixes) == ("during", GRID, True)
    assert [(each.when, each.mixes) for each in changes(database, alone)] == [("after", False)]


def test_a_round_that_was_interrupted_before_a_change_is_made_anew(database):
    with faulty_server(reply=right) as server:
        spec = served_spec(served_model(server.url))
        die_before_judging(database, spec)
        server.reply = wrong
        record = run(database, spec)
        assert len(server.calls) == 4 + GRID
    assert set(scored(database, record)) == {0.0}


@pytest.mark.parametrize(("differing", "verdict"), [(5, "same"), (6, "changed")])
def test_it_takes_six_other_answers_of_sixteen_of_a_steady_server(database, monkeypatch, differing, verdict):
    monkeypatch.setattr(contacts, "LEAST", 16)
    with faulty_server(reply=right) as server:
        model = served_model(server.url)
        run(database, served_spec(model))
        server.reply = partly(differing)
        record = run(database, served_spec(model, name="fork"))
    assert [(each.verdict, each.changed) for each in canaries(database, record)] == [(verdict, differing)]


@pytest.mark.parametrize(("differing", "verdict"), [(4, "same"), (5, "changed")])
def test_it_takes_five_other_answers_of_five_in_a_small_campaign(database, differing, verdict):
    with faulty_server(reply=right) as server:
        model = served_model(server.url)
        run(database, served_spec(model))
        server.reply = partly(differing)
        record = run(database, served_spec(model, name="fork"))
    assert [(each.verdict, each.changed) for each in canaries(database, record)] == [(verdict, differing)]


def test_a_server_that_never_says_the_same_twice_has_not_changed(database):
    numbers = itertools.count()

    def restless(call):
        return f"{next(numbers)}" if is_canary(call.body) else right(call)

    with faulty_server(reply=restless) as server:
        model = served_model(server.url)
        run(database, served_spec(model))
        record = run(database, served_spec(model, name="fork"))
        assert len(server.calls) == GRID
    assert [each.verdict for each in canaries(database, record)] == ["same"]


def test_a_server_under_one_served_identity_may_be_exchanged_as_well(database):
    with two_servers() as (one, other):
        run(database, served_spec(served_model(one.url, served_identity="letters")))
        moved = served_model(other.url, served_identity="letters")
        record = run(database, served_spec(moved, name="fork"))
    assert set(means(database, record).values()) == {0.0}
    assert [each.when for each in changes(database, record)] == ["before"]


def certifying(answering, grading, cheap=None, **section):
    """A campaign of two candidates and an autoevaluator at servers, in rounds of one label."""
    candidates = [served_model((cheap or answering).url), served_model(answering.url, "dear")]
    grader = {"name": "grader", "provider": "openai", "model": "served", "model_base_url": grading.url}
    section = {
        "alpha": 0.5,
        "cost": "custom",
        "costs": {"one/p0": 1.0, "dear/p0": 2.0},
        "autoevaluator": {"model": grader, "prompt": "{{ input }}?"},
        **section,
    }
    return served_spec(
        *candidates,
        prompts=("{{ input }}=",),
        objective="certify",
        certify={key: value for key, value in section.items() if value is not None},
        selector={"name": "r-autoeval-plus"},
        batch_size=1,
        stopping={"budget": 3, "delta": 0.05},
    )


def test_a_change_of_an_autoevaluator_is_told_though_no_comparison_names_its_texts(database):
    with two_servers(right, right) as (one, other):
        spec = certifying(one, other)
        run(database, spec, rounds=1)
        asked = len(other.calls)
        other.reply = wrong
        record = run(database, spec)
    [change] = changes(database, record)
    assert (change.model, change.when, change.texts_before) == ("grader", "during", asked)
    assert asked > 0


# A server that answers nothing any more


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refused(404, "The model does not exist."), "without the answers of certify.autoevaluator no loss"),
        (
            refused(400, "max_tokens is not supported"),
            "the settings that certify.autoevaluator sends as this message requires",
        ),
    ],
)
def test_an_autoevaluator_that_never_answers_costs_no_candidate_its_place(database, answer, said):
    """The reproduction: the dearest was dropped with "0 of its 16 comparisons have no outcome", for good."""
    with two_servers(right, right) as (one, other):
        other.script = always(answer)
        spec = certifying(one, other)
        with pytest.raises(NoServer, match=r"model 'grader': .* this round is not recorded") as stopped:
            run(database, spec)
        assert said in str(stopped.value)
        record, _ = begun(database, spec)
        assert scored(database, record) == []


@pytest.mark.parametrize("missing", ["autoevaluator", "baseline"])
def test_whoever_all_losses_need_stops_the_campaign_when_gone_and_it_goes_on(database, missing):
    """The reproduction: candidates were dropped one by one, and "none" was certified for good."""
    down = [True]

    def credit(call):
        paid = not down or call.number < 3 or is_canary(call.body)
        return None if paid else refused(402, "Insufficient Balance")

    with two_servers(right, right) as (one, other), faulty_server(reply=right) as third:
        if missing == "autoevaluator":
            spec, other.script = certifying(one, other), credit
        else:
            spec = certifying(one, other, third, alpha=None, drop=0.5, baseline="one/p0")
            third.script = credit
        with pytest.raises(NoServer, match=rf"without the answers of certify\.{missing} no loss is known"):
            run(database, spec)
        before = losses(database)
        down.clear()
        run(database, spec)
    assert 0 < len(before) < len(losses(database))
    assert None not in losses(database)


@pytest.mark.parametrize("answer", [refused(402, "Insufficient Balance"), refused(400, "no max_tokens here")])
def test_a_model_that_tells_whether_constraints_are_met_stops_the_campaign_when_gone(database, answer):
    """The reproduction: all texts were paid for, and who meets the constraints stayed open for good."""
    down = [True]

    def broken(call):
        is_gone = answer.status == 400 or (call.number >= 2 and not is_canary(call.body))
        return answer if down and is_gone else None

    with faulty_server(reply=right) as server, faulty_server(broken, lambda call: "[[yes]]") as judging:
        rater = served_model(judging.url, "rater", chat=True)
        judge = {"type": "llm", "model": rater, "rubric": "Kind.", "scale": "yes/no", "read": "text"}
        spec = served_spec(
            served_model(server.url),
            metrics=[{"name": "kind", "judge": judge}],
            constraints=[{"metric": "kind", "at_least": 0.5}],
            selector={"name": "champion"},
        )
        with pytest.raises(NoServer, match=r"model 'rater': .* this round is not recorded"):
            run(database, spec)
        record, _ = begun(database, spec)
        assert len(scored(database, record)) < GRID
        down.clear()
        if answer.status == 402:
            run(database, spec)
            [metric] = metric_values(database)
            assert metric == (len(scored(database, record)), 0)


def test_a_judge_whose_credit_ends_leaves_its_round_unrecorded_and_says_so(database):
    """The reproduction: every output from then on was unscored, and all candidates were dropped."""

    def credit(call):
        return refused(402, "Insufficient Balance") if call.number >= 4 and not is_canary(call.body) else None

    with faulty_server(reply=right) as server, faulty_server(credit, lambda call: "[[yes]]") as judging:
        grader = served_model(judging.url, "grader", chat=True)
        judge = {"type": "llm", "model": grader, "rubric": "Right.", "scale": "yes/no", "read": "text"}
        gone = "no server of this round to judge is reachable"
        with pytest.raises(NoServer, match=rf"model 'grader': .* requires payment .*; {gone}"):
            run(database, served_spec(served_model(server.url), judge=judge))
        record, _ = begun(database, served_spec(served_model(server.url), judge=judge))
    assert scored(database, record) == [1.0] * 4  # of the round before


# A server that refuses everything


def test_a_server_that_refuses_a_parameter_of_every_request_ends_the_campaign_in_its_words(database):
    """The reproduction: all candidates were dropped, and what it wants stood in a query alone."""
    fault = refused(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    with faulty_server(always(fault)) as server, pytest.raises(NoServer) as ended:
        run(database, served_spec(served_model(server.url)))
    said = str(ended.value)
    assert said.startswith(
        "model 'one': the server says 400: Unsupported parameter: 'max_tokens'. Use 'max_comp"
    )
    assert "Change model_args or generate_configs as this message requires, then start a new campaign" in said
    assert len(server.calls) == 4  # those of the first round


def test_prompts_that_a_server_refuses_are_dropped_where_it_answers_others(database):
    with faulty_server(lambda call: None if is_canary(call.body) else refused(400, "no")) as server:
        record = run(database, served_spec(served_model(server.url)))
    assert set(scored(database, record)) == {None}


# A server that moves


def test_a_campaign_goes_on_at_another_server_that_serves_the_same(database):
    with two_servers(right, right) as (one, other):
        run(database, served_spec(served_model(one.url)), rounds=1)
        record = run(database, served_spec(served_model(other.url)))
        assert (one.answered, other.answered) == (4, GRID - 4)
        assert len(other.canaries) == 5
        # Its texts still are those of the first server: a campaign there finds them.
        run(database, served_spec(served_model(one.url), name="fork"))
        assert one.answered == 4
    assert record.spec["served_at"] == {"one": one.url}
    assert changes(database, record) == []


def test_a_campaign_refuses_a_server_that_serves_something_else(database):
    with two_servers() as (one, other):
        run(database, served_spec(served_model(one.url)), rounds=1)
        moved = served_spec(served_model(other.url))
        with pytest.raises(ServedModelDiffers) as refusal:
            run(database, moved)
        assert other.answered == 0
        said = str(refusal.value)
        assert f"first served at {one.url}, and {other.url} answers 5 of 5 canary prompts differently" in said
        assert "set model_base_url back" in said
        assert "winnow run SPEC --fork NEW_NAME" in said
        record = run(database, served_spec(served_model(one.url)))
    assert set(means(database, record).values()) == {1.0}
    assert changes(database, record) == []


def test_a_url_may_be_mended_before_anything_was_answered(database):
    with faulty_server(always(SERVER_ERROR)) as away, faulty_server(reply=right) as server:
        with pytest.raises(
            NoServer, match="no comparison has an outcome yet, and this round is not recorded"
        ):
            run(database, served_spec(served_model(away.url)), rounds=1)
        record = run(database, served_spec(served_model(server.url)))
    assert scored(database, record).count(None) == 0
    assert [each.verdict for each in canaries(database, record)] == ["first"]


@ON_BOTH
def test_a_move_from_a_server_that_answered_no_canary_cannot_be_checked(database):
    def refuses_canaries(call):
        return refused(400, "no such prompts here") if is_canary(call.body) else None

    with faulty_server(refuses_canaries, right) as one, faulty_server(reply=right) as other:
        run(database, served_spec(served_model(one.url)), rounds=1)
        with pytest.raises(ServedModelDiffers, match="never answered a canary, so it is unknown whether"):
            run(database, served_spec(served_model(other.url)))


@pytest.mark.parametrize("said", [None, "other"])
def test_what_is_served_may_not_be_said_otherwise_later(database, said):
    with faulty_server(reply=right) as server:
        run(database, served_spec(served_model(server.url, served_identity="letters")), rounds=1)
        with pytest.raises(SpecError, match=r"models\[one\]\.served_identity: 'letters' -> "):
            run(database, served_spec(served_model(server.url, served_identity=said)))


def test_a_campaign_that_moved_is_found_again_by_its_name_alone(database):
    with two_servers(right, right) as (one, other):
        run(database, served_spec(served_model(one.url)), rounds=1)
        run(database, served_spec(served_model(other.url)), rounds=1)
        with database.reading() as session:
            record = campaign_records.get_campaign(session, "letters")
        assert record.execution["servers"] == {"models.one": {"model_base_url": other.url}}
        run(database, served_spec(served_model(other.url)))


# A server that gives no canary


@ON_BOTH
def test_texts_are_not_taken_from_other_campaigns_while_nobody_can_say_whose_they_are(database):
    with faulty_server(reply=right) as server:
        model = served_model(server.url)
        run(database, served_spec(model))
        server.script = always(SERVER_ERROR)
        with pytest.raises(NoServer):
            run(database, served_spec(model, name="fork"), rounds=1)
        record, _ = begun(database, served_spec(model, name="fork"))
        assert scored(database, record) == []
        server.script = no_faults
        run(database, served_spec(model, name="fork"))
    assert scored(database, record).count(1.0) == GRID


def test_a_campaign_keeps_its_own_texts_while_its_server_is_away(database):
    with faulty_server(reply=right) as server:
        spec = served_spec(served_model(server.url))
        die_before_judging(database, spec)
        server.script = always(SERVER_ERROR)
        record = run(database, spec, rounds=1)
    assert scored(database, record) == [1.0] * 4


def test_a_server_that_refuses_canaries_alone_is_asked_anew_by_every_campaign(database):
    def refuses_canaries(call):
        return refused(400, "no such prompts here") if is_canary(call.body) else None

    with faulty_server(refuses_canaries, right) as server:
        model = served_model(server.url)
        for name in ("letters", "fork", "third"):
            record = run(database, served_spec(model, name=name))
            assert set(scored(database, record)) == {1.0}
        assert len(server.calls) == 3 * GRID


def test_a_prompt_that_is_refused_both_times_has_not_changed(database):
    def refuses_some(call):
        return refused(400, "not this one") if is_canary(call.body) and "Poem" in call.prompt else None

    with faulty_server(refuses_some, right) as server:
        model = served_model(server.url)
        run(database, served_spec(model))
        record = run(database, served_spec(model, name="fork"))
    [canary] = canaries(database, record)
    assert (canary.texts.count(None), canary.verdict, canary.changed) == (1, "same", 0)


def test_canaries_that_fail_now_and_then_are_sent_again(database):
    def stumbles(call):
        return Fault(status=500, body=b"oops") if is_canary(call.body) and call.attempt == 0 else None

    spec = {"execution": {"max_retries": 2, "log_folder": "logs"}}
    with faulty_server(stumbles, right) as server:
        record = run(database, served_spec(served_model(server.url), **spec))
        assert len(server.canaries) == 15
    assert [each.verdict for each in canaries(database, record)] == ["first"]


# How often an unchanged server is taken for a changed one


def test_an_unchanged_server_is_seldom_taken_for_a_changed_one():
    """Each answer is the usual one or, with a chance, one that is never heard again.

    The two counts share the first answers, which the test does not know of. 20 000 contacts a chance; the
    level is exceeded significantly (an exact binomial at 1e-4) by a test that forgets the server's own noise.
    """
    import numpy as np
    from scipy.stats import binomtest

    rng = np.random.default_rng(5)
    for noise in (0.01, 0.1, 0.3, 0.6):
        odd = rng.random((20_000, 3, 16)) < noise
        answers = np.where(odd, rng.integers(1, 2**62, odd.shape), 0)
        first = (answers[:, 0] != answers[:, 1]).sum(axis=1)
        later = (answers[:, 0] != answers[:, 2]).sum(axis=1)
        known = {(a, b): has_changed(a, b, 16) for a in range(17) for b in range(17)}
        alarms = sum(known[pair] for pair in zip(first.tolist(), later.tolist(), strict=True))
        assert binomtest(alarms, 20_000, 0.01, "greater").pvalue > 1e-4
    careless = sum(known[0, count] for count in later.tolist())
    assert binomtest(careless, 20_000, 0.01, "greater").pvalue < 1e-4


def test_answers_are_counted_prompt_by_prompt():
    assert count_changed(["a", None, "b"], ["a", None, "c"]) == 1
    assert count_changed(["a", None], [None, "a"]) == 2
    assert count_changed(["a"], []) == 0


@pytest.mark.parametrize("duels", [False, True])
def test_a_judge_whose_server_refuses_a_parameter_of_every_request_ends_the_campaign_in_its_words(
    database, duels
):
    """The reproduction: every output was unscored and all candidates were dropped, so that it had failed."""
    fault = refused(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    of_mean, of_duels = {"rubric": "Right.", "scale": "yes/no"}, {"template": "mt-bench"}
    with faulty_server() as server, faulty_server(always(fault)) as judging:
        grader = served_model(judging.url, "grader", chat=True)
        judge = {"type": "llm", "models": [grader], "read": "text", **(of_duels if duels else of_mean)}
        fields = {"objective": "best-duel", "selector": {"name": "llm-po"}} if duels else {}
        spec = served_spec(served_model(server.url), judge=judge, **fields)
        with pytest.raises(NoServer) as ended:
            run(database, spec)
        judging.script = no_faults
        judging.reply = lambda call: "[[A]]" if duels else "[[yes]]"
        record = run(database, spec)
    said = str(ended.value)
    assert said.startswith(
        "model 'grader': the server says 400: Unsupported parameter: 'max_tokens'. Use 'max_comp"
    )
    assert (
        "this round is not recorded. Change the settings that the judge sends as this message requires"
        in said
    )
    assert None not in scored(database, record)
