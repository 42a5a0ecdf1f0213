"""A small campaign asks few canary prompts, all models at once, and they count against its limits."""

import itertools
import threading

import pytest
from faulty_server import faulty_server, is_canary
from served_campaigns import begun, die_before_judging, run, served_model, served_spec
from waiting import PATIENCE_S

from winnow.storage.records import canaries as canary_records
from winnow.tasks.campaign import contacts
from winnow.tasks.campaign.budget import BudgetTracker
from winnow.tasks.campaign.contacts import canary_requests, canary_words, n_prompts
from winnow.tasks.setup.check import check_campaign

URL = "http://127.0.0.1:9/v1"
JUDGE = {"type": "llm", "rubric": "Right?", "scale": "yes/no", "model": served_model(URL, "judge")}
PRICES = {"prices": {"one": {"input": 0.0, "output": 1000.0}}, "log_folder": "logs"}


def right(call):
    return f"about {call.prompt}" if is_canary(call.body) else "abcdef"[int(call.prompt[0])]


def canaries(database, record):
    with database.reading() as session:
        return canary_records.canaries(session, record.id)


def asked(monkeypatch, n_examples, *models, **keys):
    """The number of prompts of the first model, and the words on all, with so many examples a candidate."""
    checked = check_campaign(served_spec(*(models or [served_model(URL)]), **keys))
    monkeypatch.setattr(type(checked), "askable", n_examples * len(checked.candidates))
    return n_prompts(checked, checked.models[0]), canary_words(checked)


@pytest.mark.parametrize(("n_examples", "n"), [(6, 5), (50, 5), (51, 6), (100, 10), (160, 16), (10_000, 16)])
def test_they_are_a_twentieth_of_what_a_model_may_be_asked(database, monkeypatch, n_examples, n):
    keys = {"stopping": {"budget": 1_000_000, "delta": 0.05}}
    assert asked(monkeypatch, n_examples, **keys) == (n, f"{n} of 16 canary prompts")


@pytest.mark.parametrize(
    ("budget", "execution", "n"),
    [
        ({"comparisons": 200}, {}, 10),
        ({"comparisons": 100_000, "tokens": 10_000}, {}, 11),
        ({"comparisons": 100_000, "tokens": 1_000}, {}, 5),
        ({"comparisons": 100_000, "cost": 4.4}, PRICES, 7),
    ],
)
def test_limits_make_them_fewer(database, monkeypatch, budget, execution, n):
    found, _ = asked(monkeypatch, 10_000, execution=execution, stopping={"budget": budget, "delta": 0.05})
    assert found == n


def test_each_model_has_a_number_of_its_own(database, monkeypatch):
    keys = {"stopping": {"budget": 1_000_000, "delta": 0.05}}
    models = served_model(URL), served_model(URL, "two")
    _, words = asked(monkeypatch, 60, *models, judge=JUDGE, **keys)
    assert words == "of 16 canary prompts 6 for one, 6 for two, 12 for judge"
    assert asked(monkeypatch, 60, *models, **keys)[1] == "6 of 16 canary prompts for each of 2 served models"


def test_nobody_is_asked_where_no_text_is_made(database):
    assert canary_words(check_campaign(served_spec(served_model(URL), reuse="only"))) is None


def test_the_first_prompts_are_asked_and_once_more_after_the_first_round(database):
    with faulty_server(reply=right) as server:
        record = run(database, served_spec(served_model(server.url)), rounds=1)
        prompts = [call.prompt for call in server.canaries]
        served = canaries(database, record)[0].model
    first = [each.prompt for each in canary_requests(served)[:5]]
    assert sorted(prompts[:5]) == sorted(prompts[5:]) == sorted(first)
    [canary] = canaries(database, record)
    assert (canary.verdict, canary.changed, canary.repeated) == ("first", 0, canary.texts)


def test_a_larger_campaign_compares_what_is_common_and_later_ones_all_that_it_asked(database, monkeypatch):
    with faulty_server(reply=right) as server:
        run(database, served_spec(served_model(server.url)))
        monkeypatch.setattr(contacts, "LEAST", 16)
        larger = run(database, served_spec(served_model(server.url), name="larger"))
        later = run(database, served_spec(served_model(server.url), name="later"))
        assert len(server.canaries) == 10 + 32 + 16
    assert [(each.verdict, len(each.texts), len(each.repeated)) for each in canaries(database, larger)] == [
        ("first", 16, 16)
    ]
    assert [(each.verdict, each.epoch) for each in canaries(database, later)] == [("same", 0)]


def test_answers_that_a_larger_campaign_takes_over_stay_those_of_the_first_time(database, monkeypatch):
    """Else a server that changes little by little would be what it was each time."""
    with faulty_server(reply=right) as server:
        first = run(database, served_spec(served_model(server.url)))
        numbers = itertools.count()
        server.reply = lambda call: "else" if is_canary(call.body) and next(numbers) < 4 else right(call)
        monkeypatch.setattr(contacts, "LEAST", 16)
        larger = run(database, served_spec(served_model(server.url), name="larger"))
    [before], [after] = canaries(database, first), canaries(database, larger)
    assert (after.verdict, len(after.texts), len(after.repeated)) == ("first", 16, 16)
    assert (after.texts[:5], after.repeated[:5]) == (before.texts, before.repeated)
    assert "else" not in after.texts[:5]


@pytest.mark.parametrize("differing", [4, 5])
def test_a_small_campaign_is_compared_with_sixteen_stored_answers(database, monkeypatch, differing):
    with faulty_server(reply=right) as server:
        with monkeypatch.context() as patch:
            patch.setattr(contacts, "LEAST", 16)
            run(database, served_spec(served_model(server.url)))
        numbers = itertools.count()
        server.reply = lambda call: (
            "else" if is_canary(call.body) and next(numbers) < differing else right(call)
        )
        record = run(database, served_spec(served_model(server.url), name="small"))
    verdict = "changed" if differing == 5 else "same"
    [canary] = canaries(database, record)
    assert (canary.verdict, canary.changed, len(canary.texts)) == (verdict, differing, 5)


def test_a_restless_server_whose_reference_was_not_asked_again_has_not_changed(database):
    numbers = itertools.count()

    def restless(call):
        return f"{next(numbers)}" if is_canary(call.body) else right(call)

    with faulty_server(reply=restless) as server:
        spec = served_spec(served_model(server.url))
        die_before_judging(database, spec)
        record = run(database, spec)
        assert len(server.canaries) == 5 + 10
    first, second = canaries(database, record)
    assert (first.verdict, list(first.repeated)) == ("first", [])
    assert (second.verdict, second.epoch, len(second.repeated)) == ("first", 0, 5)


def test_a_steady_server_that_changed_before_its_reference_was_asked_again_is_found(database):
    with faulty_server(reply=right) as server:
        spec = served_spec(served_model(server.url))
        die_before_judging(database, spec)
        server.reply = lambda call: "else" if is_canary(call.body) else "z"
        record = run(database, spec)
    assert [each.verdict for each in canaries(database, record)] == ["first", "changed"]


def test_models_are_asked_side_by_side(database):
    """Each server's first canary waits until the other server is asked."""
    met = {"one": threading.Event(), "two": threading.Event()}

    def meeting(own, other):
        def reply(call):
            met[own].set()
            if is_canary(call.body):
                assert met[other].wait(PATIENCE_S)
            return right(call)

        return reply

    with (
        faulty_server(reply=meeting("one", "two")) as one,
        faulty_server(reply=meeting("two", "one")) as two,
    ):
        models = served_model(one.url), served_model(two.url, "two")
        record = run(database, served_spec(*models, batch_size=24), rounds=1)
    assert [each.verdict for each in canaries(database, record)] == ["first", "first"]


def test_they_count_against_limits_of_tokens_and_cost(database):
    with faulty_server(reply=right) as server:
        budget = {"comparisons": 100, "tokens": 100_000, "cost": 9.0}
        price = {"one": {"input": 1000.0, "output": 1000.0}}
        execution = {"prices": price, "max_retries": 0, "log_folder": "logs"}
        spec = served_spec(
            served_model(server.url), stopping={"budget": budget, "delta": 0.05}, execution=execution
        )
        run(database, spec, rounds=1)
    record, _ = begun(database, spec)
    [canary] = canaries(database, record)
    with database.reading() as session:
        used = {each.kind: each.spent for each in BudgetTracker(record).usage(session)}
        texts = (
            session.connection()
            .exec_driver_sql("SELECT sum(input_tokens + output_tokens) FROM generations")
            .scalar_one()
        )
    of_canaries = canary.input_tokens + canary.output_tokens
    assert of_canaries > 0
    assert used["tokens"] == texts + of_canaries
    assert used["cost"] == pytest.approx((texts + of_canaries) / 1000)
