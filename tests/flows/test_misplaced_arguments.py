"""Arguments in a wrong order or form: the message has the right command."""

import pytest

from winnow.flows.cli import app
from winnow.tasks.errors import SpecError


def said(*arguments):
    with pytest.raises(SpecError) as caught:
        app(list(arguments), standalone_mode=False)
    return str(caught.value)


def test_a_setting_without_an_equals_sign_comes_with_the_right_form():
    right = "write --set stopping.delta=0.1"
    assert right in said("run", "campaign.yaml", "--set", "stopping.delta", "0.1")
    assert right in said("run", "campaign.yaml", "--set", "stopping", "delta=0.1")


def test_a_view_before_its_campaign_comes_with_the_right_order():
    assert "winnow query tickets leaderboard" in said("query", "leaderboard", "tickets")
    assert "unknown view 'leaderbord'; did you mean 'leaderboard'?" in said("query", "tickets", "leaderbord")
