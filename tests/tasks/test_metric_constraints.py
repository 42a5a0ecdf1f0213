"""Constraints in a campaign's file: what is refused, what a selector is told, and what follows elsewhere."""

import math

import numpy as np
import pytest
import yaml
from stepwise_campaigns import begun, run_round, write_campaign
from stored_campaigns import new_database

from winnow.flows.api.select import select
from winnow.storage.records import rounds as round_records
from winnow.tasks.campaign.example_seed import seed_of_draws
from winnow.tasks.campaign.replay import restored
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.load import check_campaign_file, exhaustive_campaign
from winnow.tasks.setup.open_campaign import reopen_campaign
from winnow.tasks.simulation.forecast.ceiling import plan_ceiling
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.stored_spec import constraints_of

pytestmark = pytest.mark.usefixtures("scripted_models")

CHAMPION = {"name": "champion"}
METRICS = [{"name": "right", "judge": {"type": "exact"}}, {"name": "there", "judge": {"type": "contains"}}]
BOUNDS = [{"metric": "right", "at_least": 0.8}, {"metric": "there", "at_most": 0.9}]


def written(folder, name="bounded", **changes):
    given = {"selector": CHAMPION, "metrics": METRICS, "constraints": BOUNDS}
    return write_campaign(folder, name, **given | changes)


def checked(folder, **changes):
    return check_campaign_file(str(written(folder, **changes)))


def bound(**changes):
    return [{"metric": "right", "at_least": 0.8} | changes]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"constraints": bound(metric="rigth")},
            "constraints[0].metric: unknown metric 'rigth'; did you mean",
        ),
        ({"metrics": None}, "constraints[0].metric: unknown metric 'right'; available: none"),
        ({"constraints": bound(at_least=0.0)}, "constraints[0].at_least: "),
        ({"constraints": bound(at_least=1.5)}, "constraints[0].at_least: "),
        ({"constraints": bound(at_least=None, at_most=1.0)}, "constraints[0].at_most: "),
        ({"constraints": bound(at_most=0.9)}, "give exactly one of at_least and at_most; write a second"),
        ({"constraints": bound(at_least=None)}, "give exactly one of at_least and at_most"),
        ({"constraints": bound() * 2}, "constraints: right has 2 bounds on the same side; keep the stricter"),
        (
            {"constraints": [*bound(), *bound(at_least=None, at_most=0.5)]},
            "constraints: no mean of right can be at least 0.8 and at most 0.5; correct one bound",
        ),
        (
            {"selector": {"name": "ucb-e"}},
            "constraints: ucb-e compares all candidates by their scores, without",
        ),
        ({"selector": {"name": "race"}}, "choose selector champion, or remove constraints"),
        (
            {"selector": {"name": "gate", "params": {"baseline": "one/plain"}}},
            "constraints: gate compares all candidates by their scores, without constraints",
        ),
        (
            {"selector": CHAMPION | {"params": {"constraints": 1}}},
            "selector.params.constraints: is computed from the file's constraints; remove it",
        ),
        (
            {"selector": CHAMPION | {"params": {"start": "race"}}},
            "selector.params.start: with start: race, the winner can violate the constraints",
        ),
        (
            {"selector": CHAMPION | {"params": {"top_m": 2}}},
            "selector.params.top_m: top_m is not supported with constraints",
        ),
        (
            {"selector": CHAMPION | {"params": {"prefer": "cost"}}},
            "selector.params.prefer: prefer is not supported",
        ),
        (
            {"selector": CHAMPION | {"params": {"additions": "expected"}}},
            "selector.params.additions: additions is not supported with constraints",
        ),
        (
            {"stopping": {"budget": 40}},
            "stopping.delta: constraints need delta, the probability that a",
        ),
        ({"groups": {"by": "input"}}, "groups: groups are not supported with constraints"),
        ({"objective": "route", "metrics": None}, "constraints: does not apply to route; remove it"),
    ],
)
def test_what_does_not_go_with_constraints_is_refused_in_a_sentence(tmp_path, changes, said):
    with pytest.raises(SpecError) as caught:
        checked(tmp_path, **changes)
    assert said in str(caught.value)


def test_a_selector_is_told_what_the_more_of_is_the_better(tmp_path):
    found = checked(tmp_path)
    assert found.found_params()["constraints"].tolist() == pytest.approx([0.8, 0.1])
    assert found.told_metrics == ["right", "there"]
    told = found.outcomes([0.5, None], [], [[1.0, 0.25], [None, None]])
    np.testing.assert_array_equal(told, [[0.5, 1.0, 0.75], [math.nan] * 3])
    assert found.size.endswith(
        "; only candidates that meet right at least 0.8, there at most 0.9 can be the best"
    )


def test_constraints_are_a_part_of_what_a_campaign_is_and_nobody_joins_it(tmp_path):
    def spec(**changes):
        return CampaignSpec.model_validate(yaml.safe_load(written(tmp_path, **changes).read_text()))

    assert "constraints" not in spec(constraints=None).identity()
    found = spec()
    assert CampaignSpec.from_stored(found.identity(), found.execution_fields(), found.storage) == found
    assert [str(each) for each in constraints_of(found.identity())] == [
        "right at least 0.8",
        "there at most 0.9",
    ]
    assert not checked(tmp_path).takes_more_candidates
    assert checked(tmp_path, constraints=None).takes_more_candidates


def test_other_bounds_or_metrics_draw_other_examples_but_not_without_constraints(tmp_path):
    database = new_database(tmp_path / "results.db")

    def seed(name, **changes):
        with begun(database, written(tmp_path, name, dataset=data, **changes)) as campaign:
            return seed_of_draws(campaign.record)

    written(tmp_path, "data")
    data = yaml.safe_load((tmp_path / "data.yaml").read_text())["dataset"]
    first = seed("first")
    assert seed("alike") == first
    one = METRICS[:1]
    found = {
        first,
        seed("other-bound", constraints=bound()),
        seed("other-judge", constraints=bound(), metrics=one),
        plain := seed("plain", constraints=None),
    }
    assert len(found) == 4
    assert seed("plain-too", constraints=None, metrics=one) == plain


def test_what_is_stored_is_told_again(tmp_path):
    database = new_database(tmp_path / "results.db")
    with begun(database, written(tmp_path, batch_size=6)) as campaign:
        for _ in range(3):
            run_round(campaign)
        expected = campaign.selector.decision()
        wealths = [each.wealths.since_start(np.arange(4)).tolist() for each in bets_of(campaign.selector)]
    record, found = reopen_campaign(database, "bounded", database.url)
    with database.reading() as session:
        selector, _, _ = restored(session, record, found)
        told = list(round_records.told_rounds(session, record.id, ["there", "right", "there"]))
    assert selector.decision() == expected
    assert [each.wealths.since_start(np.arange(4)).tolist() for each in bets_of(selector)] == wealths
    assert {len(values) for each in told for values in each.metrics} == {3}
    assert all(there == again for each in told for there, _, again in each.metrics)
    assert {right for each in told for _, right, _ in each.metrics} == {0.0, 1.0}


def bets_of(selector):
    return list(selector.evidence.constraints)


def test_all_scores_of_it_are_those_of_a_campaign_without_constraints(tmp_path):
    full = exhaustive_campaign(checked(tmp_path))
    assert (full.constraints, full.spec.constraints) == ((), [])


def test_a_plan_says_the_most_that_the_budget_allows(tmp_path):
    ceiling = plan_ceiling(checked(tmp_path))
    assert ceiling.limit == 32
    assert ceiling.unforeseen.startswith("the number of comparisons until the best candidate under the")


def test_select_knows_scores_alone():
    with pytest.raises(SpecError, match="select has only scores, and constraints need other values"):
        select(lambda candidate, example: 1.0, "ab", "cd", constraints=np.array([0.5]))
