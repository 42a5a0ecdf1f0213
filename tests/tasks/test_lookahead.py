"""How many rounds are in flight: what the file may say, and what `auto` becomes, once."""

import pytest
from stored_campaigns import new_database

from winnow.algorithms.registry import looks_ahead, selector_names
from winnow.tasks.campaign.placement import auto_lookahead, rounds_ahead
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.definition_changes import IdentityChanged
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign, reopen_campaign
from winnow.tasks.spec.sections.execution import ExecutionSpec


def model(name, provider="vllm", **args):
    return ModelRef(name=name, provider=provider, model=name, model_args=args)


@pytest.mark.parametrize(
    ("at_once", "batch_size", "grid", "expected"),
    [(64, 64, 10**6, 5), (256, 64, 10**6, 23), (256, 64, 27_000, 20), (4, 64, 10**6, 0), (64, 32, 400, 0)],
)
def test_rounds_ahead_fill_the_engines_six_times_and_are_a_twentieth_of_the_grid_at_the_most(
    at_once, batch_size, grid, expected
):
    assert rounds_ahead(at_once, batch_size, grid) == expected


@pytest.mark.parametrize(
    ("models", "execution", "at_once"),
    [
        ([model("a")], {}, 256),
        ([model("a", max_num_seqs=32), model("b", max_num_seqs=16)], {}, 32),
        ([model("a", max_num_seqs=32), model("b", max_num_seqs=16)], {"devices": [0, 1]}, 48),
        ([model("a", max_num_seqs=32, tensor_parallel_size=2), model("b")], {"devices": [0, 1]}, 256),
        ([model("a", "transformers")], {"group_size": 24}, 24),
        ([model("a", max_num_seqs=32), model("s", "openai")], {"max_connections": 100}, 132),
    ],
)
def test_what_engines_take_at_once_is_that_of_those_that_can_be_at_work_together(models, execution, at_once):
    number = auto_lookahead(models, ExecutionSpec(**execution), 1, 10**9)
    assert number == 6 * at_once - 1


def test_the_number_is_settled_when_the_campaign_begins_and_kept_whatever_changes(campaign_file, tmp_path):
    file = campaign_file(
        "batch_size: 8", "batch_size: 1\nlookahead: auto", add="execution: {group_size: 64}\n"
    )
    checked = check_campaign_file(file)
    assert checked.lookahead == 1  # two pairs, a twentieth of 48
    database = new_database(tmp_path / "results.db")
    stored = open_campaign(database, checked)
    assert stored.spec["lookahead"] == 1
    again = check_campaign_file(file, ["execution.group_size=1", "stopping.budget=48"])
    assert open_campaign(database, again).spec["lookahead"] == 1
    _, reopened = reopen_campaign(database, stored.name, database.url)
    assert (reopened.lookahead, reopened.spec.lookahead) == (1, 1)
    with pytest.raises(IdentityChanged, match="lookahead: 1 -> 3"):
        open_campaign(database, check_campaign_file(file, ["lookahead=3"]))


def test_a_number_that_auto_became_is_not_worked_out_anew(campaign_file, tmp_path, monkeypatch):
    file = campaign_file("batch_size: 8", "batch_size: 1\nlookahead: auto")
    database = new_database(tmp_path / "results.db")
    with monkeypatch.context() as patch:
        patch.setattr("winnow.tasks.campaign.resolved.auto_lookahead", lambda *_: 7)
        assert open_campaign(database, check_campaign_file(file)).spec["lookahead"] == 7
    assert open_campaign(database, check_campaign_file(file)).spec["lookahead"] == 7


def test_every_selector_of_ours_for_best_mean_can_be_asked_ahead():
    assert all(looks_ahead(name) for name in selector_names("best-mean"))


def test_the_size_of_a_campaign_tells_how_many_rounds_there_are_at_once(campaign_file):
    checked = check_campaign_file(campaign_file("batch_size: 8", "batch_size: 8\nlookahead: 3"))
    assert "8 a round, 4 rounds at once" in checked.size


@pytest.mark.parametrize(
    ("replace", "by", "said"),
    [
        ("batch_size: 8", "batch_size: 8\nlookahead: -1", "lookahead"),
        ("batch_size: 8", "batch_size: 8\nlookahead: many", "lookahead"),
    ],
)
def test_what_is_no_number_of_rounds_is_refused(campaign_file, replace, by, said):
    with pytest.raises(SpecError, match=said):
        check_campaign_file(campaign_file(replace, by))


def test_another_question_is_refused_in_one_sentence(campaign_file):
    file = campaign_file("objective: best-mean", "objective: best-duel\nlookahead: 2")
    with pytest.raises(SpecError, match="is only for best-mean: best-duel plans each round from all earlier"):
        check_campaign_file(file)


def test_a_selector_that_cannot_take_up_rounds_is_refused_in_one_sentence(campaign_file, monkeypatch):
    monkeypatch.setattr("winnow.tasks.setup.check.looks_ahead", lambda name: False)
    file = campaign_file("batch_size: 8", "batch_size: 8\nlookahead: 2")
    with pytest.raises(
        SpecError, match="ucb-e has no method take_up, which lookahead needs to resume rounds in flight"
    ):
        check_campaign_file(file)
