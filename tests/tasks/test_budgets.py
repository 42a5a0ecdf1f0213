"""What may be spent, what is spent, and what a user is told of either."""

import datetime as dt
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from spec_files import load_spec
from sqlalchemy import insert
from stored_campaigns import NOW, store_campaign

from winnow.flows.reports.summary import summary_lines
from winnow.storage.models import ModelLoad
from winnow.tasks.campaign.budget import BudgetTracker, devices_by_model, price_weights
from winnow.tasks.campaign.look import Look
from winnow.tasks.errors import SpecError
from winnow.tasks.queries.status import campaign_status
from winnow.tasks.setup import check
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.spec.campaign import CampaignSpec

BUDGET = "budget: 40"
EVERYTHING = "{comparisons: 40, tokens: 1000, gpu_seconds: 1.5, cost: 0.25}"


def complaint(path, overrides=()):
    with pytest.raises(SpecError) as refused:
        check_campaign_file(path, overrides)
    return str(refused.value)


def usage_of(campaign, budget, objective="best-mean", **execution):
    """What is spent of a budget by a stored campaign."""
    record = replace(
        campaign.record, objective=objective, execution={"budget": budget, "execution": execution}
    )
    with campaign.database.reading() as session:
        return BudgetTracker(record).usage(session)


def spent(campaign, budget, **execution):
    return {each.kind: each.spent for each in usage_of(campaign, budget, **execution)}


@pytest.mark.parametrize(
    ("prices", "hourly", "said"),
    [
        ({}, None, "no token price for model here; set execution.prices.here: "),
        ({"here": 1}, None, "no token price for model api"),
        ({}, 2.0, "no token price for model api; set execution.prices.api: "),
        ({"api": 1}, 2.0, None),
        ({"api": 1, "here": 1}, None, None),
    ],
)  # fmt: skip
def test_what_runs_elsewhere_is_not_paid_for_by_the_hour_of_a_device(prices, hourly, said):
    models = [{"name": "here", "provider": "vllm"}, {"name": "api", "provider": "openai"}]
    spec = SimpleNamespace(
        execution=SimpleNamespace(prices=prices, price_per_hour=hourly),
        limits={"cost": 5.0},
        identity=lambda: {"models": models},
    )
    checked = SimpleNamespace(spec=spec, models=[SimpleNamespace(name=each["name"]) for each in models])
    if said is None:
        check._check_prices(checked)
        return
    with pytest.raises(SpecError) as refused:
        check._check_prices(checked)
    assert refused.value.message.startswith(said)
    assert (", or execution.price_per_hour" in refused.value.message) == ("model here" in said)


@pytest.mark.parametrize(
    ("providers", "is_refused"), [(["openai", "litellm"], True), (["openai", "vllm"], False)]
)
def test_a_limit_on_devices_that_no_model_takes_is_refused(providers, is_refused):
    models = [{"name": provider, "provider": provider} for provider in providers]
    checked = SimpleNamespace(
        spec=SimpleNamespace(limits={"gpu_seconds": 9.0}, identity=lambda: {"models": models})
    )
    if not is_refused:
        check._check_gpu_seconds(checked)
        return
    with pytest.raises(
        SpecError, match="has no effect because all models run elsewhere; use tokens"
    ) as refused:
        check._check_gpu_seconds(checked)
    assert refused.value.path == "stopping.budget.gpu_seconds"


def finish_a_round(campaign, number=0, **texts):
    """Three comparisons, whose texts had 9 tokens of input and 6 of output and took 0.75 s."""
    round_ = campaign.plan(number, [0, 1, 2], [number] * 3)
    campaign.finish(round_, [1.0, 0.0, None], best=0, estimates=[1.0, 0.0, None])


def test_a_mapping_limits_by_name_and_a_number_limits_comparisons(campaign_file):
    prices = "execution: {price_per_hour: 2.0}\n"
    assert load_spec(campaign_file(BUDGET, f"budget: {EVERYTHING}", add=prices)).limits == {
        "comparisons": 40,
        "tokens": 1000,
        "gpu_seconds": 1.5,
        "cost": 0.25,
    }
    plain = load_spec(campaign_file())
    assert (plain.limits, plain.own_budget) == ({"comparisons": 40}, 40)


@pytest.mark.parametrize("budget", [40, {"tokens": 9}, {"comparisons": 40, "cost": 0.25}])
def test_a_budget_survives_being_stored_and_is_no_identity(campaign_file, budget):
    prices = "execution={prices: {small: {input: 1.0, output: 2}}}"
    spec = load_spec(campaign_file(), [f"stopping.budget={json.dumps(budget)}", prices])
    plain = load_spec(campaign_file()).identity()
    assert spec.identity() == plain
    assert CampaignSpec.from_stored(spec.identity(), spec.execution_fields(), spec.storage) == spec
    assert spec.execution_fields()["budget"] == budget


def test_a_campaign_stored_before_there_were_prices_loads_unchanged(campaign_file):
    spec = load_spec(campaign_file())
    fields = spec.execution_fields()
    for key in ("prices", "price_per_hour"):
        del fields["execution"][key]
    assert fields["budget"] == 40
    assert CampaignSpec.from_stored(spec.identity(), fields, spec.storage) == spec


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ("{comparison: 4}", "campaign.yaml:20: stopping.budget.comparison: unknown key; did you mean"),
        ("{tokens: 0}", "campaign.yaml:20: stopping.budget.tokens: must be at least"),
        ("{tokens: 1.5}", "campaign.yaml:20: stopping.budget.tokens: must be a whole number"),
        ("{cost: 0}", "campaign.yaml:20: stopping.budget.cost: must be greater than 0"),
        ("{}", "campaign.yaml:20: stopping.budget: give at least one of comparisons, tokens, gpu_seconds"),
        ("much", "campaign.yaml:20: stopping.budget: must be a whole number"),
        ("{human_labels: 9}", "campaign.yaml:20: stopping: budget.human_labels does not apply to best-mean"),
        ("{comparisons: 7}", "campaign.yaml:20: stopping: the budget (7) is smaller than one round"),
        ("{cost: 1}", "campaign.yaml:20: stopping.budget.cost: no token price for model small; set"),
    ],
)
def test_a_mistake_in_a_budget_is_named_with_its_remedy(campaign_file, budget, said):
    assert complaint(campaign_file(BUDGET, f"budget: {budget}")).startswith(said)


@pytest.mark.parametrize(
    ("objective", "said"),
    [
        ("best-duel", "best-duel needs budget.comparisons, since duels never run out; add comparisons"),
        (
            "certify",
            "certify needs budget.human_labels, because its tests depend on the number of labels",
        ),
    ],
)
def test_what_never_ends_by_itself_needs_a_limit_of_its_own(campaign_file, objective, said):
    path = campaign_file(BUDGET, "budget: {tokens: 9}")
    assert said in complaint(path, [f"objective={objective}"])


@pytest.mark.parametrize(
    ("execution", "said"),
    [
        ("{prices: {smal: {input: 1, output: 1}}}", "unknown model 'smal'; did you mean 'small'?"),
        ("{prices: {small: {input: 1, outptu: 1}}}", "unknown key; did you mean 'output'?"),
        ("{prices: {input: {input: 1, outptu: 1}}}", "unknown key; did you mean 'output'?"),
        ("{prices: {small: {input: 1}}}", "prices.small.output: is missing; add it"),
        ("{prices: {small: {input: -1, output: 1}}}", "prices.small.input: must be at least "),
        ("{price_per_hour: -1}", "price_per_hour: must be at least 0"),
    ],
)
def test_a_mistake_in_a_price_is_named_with_its_remedy(campaign_file, execution, said):
    assert said in complaint(campaign_file(add=f"execution: {execution}\n"))


def test_check_says_all_limits(campaign_file):
    path = campaign_file(BUDGET, "budget: {tokens: 12345}")
    size = check_campaign_file(path).size
    assert "at most all of them are run" in size
    assert size.endswith("it ends sooner once it has spent: tokens 12,345")


def test_every_kind_is_counted_from_the_rows_of_finished_rounds(campaign):
    assert spent(campaign, {"comparisons": 9, "tokens": 9}) == {"comparisons": 0, "tokens": 0}
    for number in range(2):
        finish_a_round(campaign, number)
    campaign.texts(campaign.plan(2, [0, 1], [2, 2]))  # of a round that is not finished
    assert spent(campaign, {"comparisons": 9, "tokens": 9, "gpu_seconds": 9, "cost": 9}) == {
        "comparisons": 6,
        "tokens": 30,
        "gpu_seconds": 1.5,
        "cost": 0.0,
    }
    assert spent(campaign, {"cost": 9}, prices={"m": {"input": 1e6, "output": 10e6}}) == {"cost": 138.0}
    assert spent(campaign, {"cost": 9}, price_per_hour=3600.0) == {"cost": 1.5}
    assert spent(campaign, {"cost": 9}, price_per_hour=3600.0, prices={"n": {"input": 1e6, "output": 0}}) == {
        "cost": 1.5
    }


def test_a_tracker_adds_what_came_since_it_looked_and_agrees_with_a_new_one(campaign):
    record = replace(campaign.record, execution={"budget": {"tokens": 40, "gpu_seconds": 9.0}})
    tracker = BudgetTracker(record)
    for number in range(3):
        finish_a_round(campaign, number)
        with campaign.database.reading() as session:
            assert tracker.usage(session) == BudgetTracker(record).usage(session)


def test_texts_of_another_campaign_cost_nothing(database):
    first, second = store_campaign(database, "first"), store_campaign(database, "second")
    finish_a_round(first)
    round_ = second.plan(0, [0], [0])
    assert spent(second, {"tokens": 9, "comparisons": 9}) == {"tokens": 0, "comparisons": 0}
    second.finish(round_, [1.0])
    assert spent(second, {"tokens": 9, "comparisons": 9}) == {"tokens": 5, "comparisons": 1}


def test_loading_takes_gpu_time_and_devices_multiply_it(campaign):
    finish_a_round(campaign)
    with campaign.database.writing() as session:
        values = {"campaign_id": campaign.record.id, "devices": [], "ended_at": NOW + dt.timedelta(seconds=1)}
        for kind, seconds in (("load", 8.0), ("wake", 0.5)):
            session.execute(insert(ModelLoad).values(model="m", kind=kind, seconds=seconds, **values))
    assert spent(campaign, {"gpu_seconds": 99})["gpu_seconds"] == 0.75 + 8.5
    spread = {"models": [{"name": "m", "model_args": {"tensor_parallel_size": 4}}]}
    record = replace(campaign.record, spec=spread, execution={"budget": {"gpu_seconds": 99}})
    with campaign.database.reading() as session:
        assert BudgetTracker(record).usage(session)[0].spent == 4 * 9.25


def test_devices_are_those_of_candidates_judges_and_the_autoevaluator():
    def model(name, **args):
        return {"name": name, "model_args": args}

    assert devices_by_model(
        {
            "models": [
                model("one"),
                model("two", tensor_parallel_size=2, pipeline_parallel_size=3),
                {"name": "served", "provider": "openai"},
            ],
            "judge": {
                "type": "llm",
                "models": [{"judge_id": "j", "model_args": {"tensor_parallel_size": 2}}],
            },
            "certify": {"autoevaluator": {"model": model("auto", tensor_parallel_size=8)}},
        }
    ) == {"one": 1, "two": 6, "served": 0, "j": 2, "auto": 8}
    assert devices_by_model({"judge": {"type": "exact"}, "certify": None}) == {}


@pytest.mark.parametrize(
    ("delta", "outcome", "claim"), [(0.05, "undecided", "none"), (None, "winner", "heuristic")]
)
def test_a_spent_limit_ends_a_campaign_whose_selector_would_go_on(database, delta, outcome, claim):
    campaign = store_campaign(database, budget={"comparisons": 100, "tokens": 15}, delta=delta)
    finish_a_round(campaign)
    with database.reading() as session:
        found = campaign_status(Look(session, campaign.record))
    assert (found.state, found.answer.reason, found.is_settled) == ("ended", "budget", True)
    assert (found.answer.outcome, found.answer.claim.kind) == (outcome, claim)
    assert found.stopped_by.sentence == "the token budget is spent: 15 of 15"
    assert found.stopped_by.key == "stopping.budget.tokens"
    raised = replace(campaign.record, execution={"budget": {"comparisons": 100, "tokens": 16}})
    with database.reading() as session:
        found = campaign_status(Look(session, raised))
    assert (found.state, found.answer.reason, found.stopped_by, found.is_settled) == (
        "interrupted", "running", None, False)  # fmt: skip


def test_all_limits_that_are_spent_are_named_with_one_command_that_raises_them(database):
    limits = {"comparisons": 100, "tokens": 15, "gpu_seconds": 0.5, "cost": 9.0}
    campaign = store_campaign(database, budget=limits, delta=0.05)
    finish_a_round(campaign)
    with database.reading() as session:
        status = campaign_status(Look(session, campaign.record))
    lines = summary_lines(status, "sqlite:///winnow.db")
    assert next(line for line in lines if line.startswith("  confidence")) == (
        "  confidence   undecided at error probability 0.05: the token budget is spent: 15 of 15 and the "
        "GPU-second budget is spent: 0.75 of 0.5; continue with winnow resume letters --set "
        "stopping.budget.tokens=MORE --set stopping.budget.gpu_seconds=MORE --storage sqlite:///winnow.db"
    )


def test_a_planned_round_is_finished_before_a_spent_limit_ends_anything(database):
    campaign = store_campaign(database, budget={"comparisons": 100, "tokens": 15})
    finish_a_round(campaign)
    campaign.plan(1, [0], [1])
    with database.reading() as session:
        found = campaign_status(Look(session, campaign.record))
    assert (found.state, found.stopped_by, found.is_settled) == ("interrupted", None, False)


def test_a_spent_limit_keeps_a_campaign_settled_whose_other_limit_was_raised(database):
    campaign = store_campaign(database, budget={"comparisons": 4, "tokens": 15})
    round_ = campaign.plan(0, [0, 1, 2], [0] * 3)
    campaign.finish(round_, [1.0, 0.0, None], best=0, stop=True, reason="budget")
    with database.reading() as session:
        assert campaign_status(Look(session, campaign.record)).is_settled


def test_an_hour_is_paid_for_each_device_and_for_none_elsewhere():
    wide = {"name": "wide", "provider": "vllm", "model": "w", "model_args": {"tensor_parallel_size": 2}}
    served = {"name": "served", "provider": "openai", "model": "s"}
    execution = {"prices": {"served": {"input": 1.0, "output": 2.0}}, "price_per_hour": 3600.0}
    campaign = SimpleNamespace(
        spec={"models": [wide, served], "judge": {"type": "exact"}}, execution={"execution": execution}
    )
    assert price_weights(campaign, "wide") == (0.0, 0.0, 2.0)
    assert price_weights(campaign, "served") == (1e-6, 2e-6, 0.0)
    execution["prices"] = {}
    assert price_weights(campaign, "served") is None
