"""What candidates cost is given for every one of them, by name, before the first score."""

import pytest
from spec_files import load_spec

from winnow.tasks.errors import SpecError
from winnow.tasks.setup.check import check_campaign

UCB_E = "selector: {name: ucb-e, params: {a: 1.0}}"
TWO = "exclude: [{prompt: asked}, {generate_config: warm}]\n"
EPSILON = ("stopping.epsilon=0.1",)


def checked(campaign_file, params, overrides=EPSILON, name="champion"):
    path = campaign_file(UCB_E, f"selector: {{name: {name}, params: {params}}}", add=TWO)
    return check_campaign(load_spec(path, overrides))


def test_the_costs_are_known_to_the_selector_by_the_places_of_the_candidates(campaign_file):
    found = checked(
        campaign_file, "{prefer: cost, costs: {smaller/plain/greedy: 1, small/plain/greedy: 2.5}}"
    )
    assert found.found_params()["costs"].tolist() == [2.5, 1.0]
    assert found.create_selector().decision().reason == "running"
    assert not found.takes_more_candidates


def test_without_a_preference_there_are_none(campaign_file):
    found = checked(campaign_file, "{additions: expected}")
    assert (found.found_params(), found.takes_more_candidates) == ({"ties": "open", "excess": True}, True)
    assert checked(campaign_file, "{prefer: mean}").found_params() == {"ties": "open", "excess": True}


@pytest.mark.parametrize(
    ("params", "overrides", "path", "told"),
    [
        (
            "{prefer: cost}",
            EPSILON,
            "selector.params.costs",
            "must map the name of each candidate to a number of at least 0",
        ),
        (
            "{prefer: cost, costs: [1, 2]}",
            EPSILON,
            "selector.params.costs",
            "must map the name of each candidate to a number",
        ),
        (
            "{prefer: cost, costs: {small/plain/greedy: 1, smaller/plain/greedy: -1}}",
            EPSILON,
            "selector.params.costs",
            "must map the name of each candidate to a number of at least 0",
        ),
        (
            "{prefer: cost, costs: {small/plain/greedy: 1}}",
            EPSILON,
            "selector.params.costs",
            "no cost for smaller/plain/greedy; add it",
        ),
        (
            "{prefer: cost, costs: {small/plain/greedi: 1}}",
            EPSILON,
            "selector.params.costs",
            "unknown candidate 'small/plain/greedi'; did you mean",
        ),
        (
            "{costs: {small/plain/greedy: 1}}",
            EPSILON,
            "selector.params.costs",
            "costs has no effect without `prefer: cost`",
        ),
        (
            "{prefer: cost, costs: {small/plain/greedy: 1, smaller/plain/greedy: 2}}",
            (),
            "selector",
            "epsilon must be above 0 if prefer is 'cost'",
        ),
        (
            "{prefer: cost, costs: {small/plain/greedy: 1, smaller/plain/greedy: 2}}",
            (*EPSILON, "stopping.delta=null"),
            "selector",
            "delta must be set if prefer is 'cost'",
        ),
        ("{prefer: price}", EPSILON, "selector", "prefer must be 'mean' or 'cost'"),
    ],
)
def test_costs_that_do_not_fit_are_refused_in_a_sentence(campaign_file, params, overrides, path, told):
    with pytest.raises(SpecError) as refused:
        checked(campaign_file, params, overrides)
    assert refused.value.path == path
    assert told in refused.value.message
