"""The candidate that a gate holds the others against is named in the file, and is one of them."""

import pytest
from spec_files import load_spec

from winnow.tasks.errors import SpecError
from winnow.tasks.setup.check import check_campaign

NAMED = "selector: {name: gate, params: {baseline: small/asked/warm}}"
UCB_E = "selector: {name: ucb-e, params: {a: 1.0}}"


def test_the_baseline_is_known_to_the_selector_by_its_place(campaign_file):
    checked = check_campaign(load_spec(campaign_file(UCB_E, NAMED)))
    assert checked.found_params() == {"baseline": 3}
    assert not checked.takes_more_candidates
    assert checked.create_selector().decision().status[3] == "baseline"


def test_other_selectors_have_none(campaign_file):
    checked = check_campaign(load_spec(campaign_file()))
    assert (checked.baseline, checked.found_params()) == (None, {})


@pytest.mark.parametrize(
    ("selector", "overrides", "path", "told"),
    [
        ("{name: gate}", (), "selector.params.baseline", "name one of: small/plain/greedy, small/plain"),
        (
            "{name: gate, params: {baseline: small/asked/worm}}",
            (),
            "selector.params.baseline",
            "unknown candidate 'small/asked/worm'; did you mean 'small/asked/warm'?",
        ),
        ("{name: gate, params: {baseline: 3}}", (), "selector.params.baseline", "unknown candidate '3'"),
        (NAMED[10:], ("stopping.delta=null",), "stopping.delta", "gate needs delta, the probability that"),
        (
            "{name: gate, params: {baseline: small/asked/warm, untill: better}}",
            (),
            "selector",
            "'gate' has no parameter 'untill'",
        ),
    ],
)
def test_a_gate_that_cannot_be_held_is_refused_in_a_sentence(campaign_file, selector, overrides, path, told):
    spec = load_spec(campaign_file(UCB_E, f"selector: {selector}"), overrides)
    with pytest.raises(SpecError) as refused:
        check_campaign(spec)
    assert refused.value.path == path
    assert told in refused.value.message
