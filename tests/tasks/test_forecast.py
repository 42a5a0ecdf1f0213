"""What a campaign would take: the scores it is played on, requests, tokens, prices, the gap it can tell."""

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.algorithms.protocols import round_rng
from winnow.flows.simulate.plan_lines import plan_lines
from winnow.storage.queries.costs import ModelRate, rates
from winnow.tasks.data.score_tables import ScoreTable
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.simulation.forecast.plan import plan_campaign, smallest_separated
from winnow.tasks.simulation.forecast.requests import (
    Player,
    are_the_best,
    named_by,
    read_assumption,
    stand_in,
)
from winnow.tasks.simulation.forecast.tokens import prompt_tokens, tokenizer_of


def test_means_are_spread_or_alike():
    assert read_assumption("best=0.8,rest=0.7").means(3).tolist() == [0.8, 0.7, 0.7]
    assert read_assumption("best=0.8,worst=0.4,alike=0.5").means(3) == pytest.approx([0.8, 0.6, 0.4])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("best=0.8", "give best and exactly one of rest and worst"),
        ("best=0.8,rest=0.7,worst=0.2", "give best and exactly one of rest and worst"),
        ("best=0.8,rest=x", "'rest=x' is not one of best, rest, worst, alike with a number in [0, 1]"),
        ("best=80,rest=70", "'best=80' is not one of"),
        ("first=0.8,rest=0.7", "'first=0.8' is not one of"),
        ("best=0.7,rest=0.8", "best must be the highest"),
        ("best=0.7,rest=0.6,alike=1", "alike must be below 1"),
    ],
)
def test_an_assumption_that_makes_no_sense_is_refused(text, message):
    with pytest.raises(SpecError) as refused:
        read_assumption(text)
    assert message in str(refused.value)


def a_table(scores, candidates, examples=None, *, is_partial=False):
    return ScoreTable(
        source="t.csv",
        candidates=tuple(candidates),
        examples=examples,
        scores=np.array(scores, dtype=float),
        is_partial=is_partial,
    )


RNG = np.random.default_rng(0)


def test_a_table_of_the_same_candidates_and_examples_is_read_by_name():
    table = a_table([[0, 1, 0.5], [1, 1, 0], [0, 0, 0]], "abc", ("x", "y", "z"))
    found = stand_in(table, ["c", "b"], ["z", "x"], RNG)
    assert found.scores.tolist() == [[0, 0], [0, 1]]
    assert found.is_of_candidates


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 9))
def test_others_are_drawn_and_the_best_is_among_them(seed, n):
    table = a_table([[k / 10] * 4 for k in (3, 9, 1, 4, 2)], "abcde")
    found = stand_in(table, ["x", "y", "z"], [str(i) for i in range(n)], np.random.default_rng(seed))
    assert not found.is_of_candidates
    assert found.scores.shape == (3, n)
    assert found.scores.max() == 0.9
    assert len(set(found.scores[:, 0])) == 3


def test_too_few_candidates_are_refused():
    with pytest.raises(
        SpecError, match=r"t\.csv has 1 candidates, and the campaign has 2; give a table with at"
    ):
        stand_in(a_table([[1.0]], "a"), ["x", "y"], ["e"], RNG)


def test_what_a_stored_campaign_never_asked_is_drawn_from_what_it_knows():
    nan = math.nan
    table = a_table([[0.25, nan, nan, nan], [0.5, 0.5, nan, 0.5], [nan] * 4], "abc", is_partial=True)
    scores = stand_in(table, ["a", "b", "c"], list("wxyz"), np.random.default_rng(0)).scores
    assert scores[:2].tolist() == [[0.25] * 4, [0.5] * 4]
    assert set(scores[2]) <= {0.25, 0.5}


@pytest.mark.parametrize("threshold", [0.004, 0.05, 0.3])
def test_the_bisection_finds_a_gap_close_to_the_smallest(threshold):
    asked = []

    def separates(gap):
        asked.append(gap)
        return gap >= threshold

    found = smallest_separated(separates, 600, 0.8)
    assert threshold <= found <= 1.25 * threshold + 1 / 600
    assert len(asked) <= 6
    assert smallest_separated(lambda gap: False, 600, 0.8) is None


def test_tokens_are_counted_by_a_tokenizer_where_there_is_one(campaign_file, folder):
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "plus": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "checkpoints" / "small" / "tokenizer.json"))
    checked = check_campaign_file(campaign_file())
    found = prompt_tokens(checked.candidates, checked.dataset.examples, seed=0)
    by_name = dict(zip([each.name for each in checked.candidates], found.by_arm.tolist(), strict=True))
    assert by_name["small/asked/warm"] == 3.0  # "Q", "0", "plus:"
    assert by_name["smaller/asked/warm"] == len("Q 0 plus:") / 4
    assert (found.examples, found.guessed) == (6, ("smaller",))


def test_a_damaged_tokenizer_is_none(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{")
    assert tokenizer_of(str(tmp_path)) is None


def played_directly(checked, scores, seed):
    """How many comparisons the campaign's own selector asks for, played by hand."""
    selector, count = checked.create_selector(), 0
    for number in range(1000):
        batch = selector.ask(round_rng(seed, number))
        if len(batch) == 0:
            return count
        selector.tell(batch, scores[batch.arms, batch.examples])
        count += len(batch)
    raise AssertionError("it never ends")


@pytest.mark.parametrize("add", ["", "holdout: 0.34\n"])
def test_the_simulator_asks_for_what_the_campaign_would(campaign_file, add):
    checked = check_campaign_file(campaign_file("delta: 0.05", "delta: 0.5", add=add))
    scores = np.random.default_rng(5).random((8, 6)).round()
    own = scores if checked.split is None else scores[:, checked.split.selection]
    played = Player(checked, seeds=[0, 1, 7], workers=1).play(own, is_of_candidates=True)
    assert played.comparisons.tolist() == [played_directly(checked, scores, seed) for seed in (0, 1, 7)]
    assert played.by_arm.sum() == pytest.approx(played.comparisons.mean())


@pytest.mark.parametrize(("ties", "most"), [("", 36), (", ties: open", 36), (", ties: resolve", 48)])
def test_a_plan_leaves_ties_open_as_the_campaign_will(campaign_file, ties, most):
    """Candidates that are all right: nobody can be higher than a full row, whatever else is known."""
    path = Path(campaign_file("selector: {name: ucb-e, params: {a: 1.0}}", "selector: {name: champion}"))
    text = path.read_text().replace("budget: 40", "budget: 48").replace("delta: 0.05", f"delta: 0.05{ties}")
    path.write_text(text.replace("batch_size: 8", "batch_size: 1"))
    checked = check_campaign_file(str(path))
    played = Player(checked, seeds=range(3), workers=1).play(np.ones((8, 6)), is_of_candidates=True)
    assert (played.comparisons <= most).all()
    assert ((played.comparisons == 48) == (most == 48)).all()


@pytest.mark.parametrize(("is_of_candidates", "least", "most"), [(True, 30, 40), (False, 0, 20)])
def test_no_assumed_winner_profits_from_its_place(campaign_file, is_of_candidates, least, most):
    """Who sees all alike names the first: right of a file that has the best there, and else one in eight."""
    path = Path(campaign_file("selector: {name: ucb-e, params: {a: 1.0}}", "selector: {name: champion}"))
    path.write_text(path.read_text().replace("budget: 40", "budget: 8"))
    checked = check_campaign_file(str(path))
    scores = np.zeros((8, 6))
    scores[0, 0] = 1.0
    played = Player(checked, seeds=range(40), workers=1).play(scores, is_of_candidates=is_of_candidates)
    assert least <= played.right <= most
    assert set(played.comparisons) == {8}


def test_runs_that_missing_scores_leave_open_are_not_decided(campaign_file):
    """The best two lack two scores each, by which either may be ahead, whatever is asked."""
    path = Path(campaign_file("selector: {name: ucb-e, params: {a: 1.0}}", "selector: {name: champion}"))
    path.write_text(path.read_text().replace("budget: 40", "budget: 48"))
    checked = check_campaign_file(str(path))
    scores = np.zeros((8, 6))
    scores[:2] = 1.0
    full = Player(checked, seeds=range(3), workers=1).play(scores, is_of_candidates=True)
    assert (full.decided, full.decided_right) == (3, 3)
    scores[:2, :2] = np.nan
    table = a_table(scores, [each.name for each in checked.candidates])
    found = plan_campaign(checked, table, seeds=3, workers=1)
    assert (found.decided, found.right) == (0, 3)
    assert "of these candidates; 8.33% of its scores are missing, which may leave runs open" in found.assumed
    said = " ".join(" ".join(plan_lines(found)).split())
    assert "decided 0 of 3 runs within the budget, at error probability 0.05; 3 of 3 runs named" in said


def test_of_the_m_best_all_have_to_be_right():
    run = SimpleNamespace(
        best=np.array([0]),
        ranking=np.array([[0.9, 0.2, 0.8, np.nan]]),
        status=("top", "tied", "active", "eliminated"),
    )
    assert [named_by(run, m) for m in (1, 2, 3, 4)] == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
    values = np.array([0.9, 0.7, 0.75, 0.1])
    assert are_the_best([0], values, 0.0)
    assert not are_the_best([0, 1], values, 0.0)
    assert are_the_best([0, 1], values, 0.06)
    assert are_the_best([2, 0], values, 0.0)
    assert not are_the_best([2, 1], values, 0.06)
    assert not are_the_best([], values, 1.0)


def test_a_plan_for_the_m_best_counts_runs_that_named_all_of_them(campaign_file):
    plain = "selector: {name: ucb-e, params: {a: 1.0}}"
    checked = check_campaign_file(campaign_file(plain, "selector: {name: champion, params: {top_m: 2}}"))
    found = plan_campaign(checked, read_assumption("best=1,rest=0"), seeds=3, workers=1)
    assert (found.top_m, found.right, found.gap_of_grid) == (2, 3, None)


PRICES = "execution: {prices: {small: {input: 1.0, output: 10.0}, smaller: {input: 1.0, output: 10.0}}}\n"


def test_tokens_and_prices_follow_from_the_requests(campaign_file):
    checked = check_campaign_file(campaign_file("delta: 0.05", "delta: null", add=PRICES))
    found = plan_campaign(checked, read_assumption("best=0.8,rest=0.3"), seeds=2, workers=1, rate=2.0)
    # Without delta the whole budget is spent; prompts have 7 or 9 characters, answers 12 or 256 tokens.
    assert (found.expected.requests, found.limit, found.grid) == (40, 40, 48)
    assert found.expected.prompt_tokens == pytest.approx(40 * (7 + 9) / 2 / 4)
    assert found.expected.answer_tokens == pytest.approx(40 * (12 + 256) / 2)
    assert found.expected.hours == pytest.approx(20 / 3600)
    assert found.expected.price == pytest.approx(
        (found.expected.prompt_tokens + 10 * found.expected.answer_tokens) / 1e6
    )
    # At its dearest: the four dear candidates on all six examples, and 16 comparisons of the others.
    assert found.dearest.answer_tokens == 24 * 256 + 16 * 12
    assert found.gap_of_grid == 1 / 6


def test_several_texts_for_an_example_are_requests_and_not_comparisons(campaign_file):
    samples = "generate_configs: [{name: warm, temperature: 1.0}]\nsamples: {n: 3}\n"
    ways = "generate_configs:\n  - {name: greedy}\n  - {name: warm, temperature: 1.0}\n"
    path = campaign_file(ways, samples)
    checked = check_campaign_file(path, ["stopping.delta=null", "stopping.budget=20"])
    found = plan_campaign(checked, read_assumption("best=0.8,rest=0.3"), seeds=2, workers=1)
    assert (found.expected.requests, found.comparisons, found.grid) == (60, 20, 24)
    said = " ".join(" ".join(plan_lines(found)).split())
    assert "60 on average for 20 comparisons (83.3% of the grid), in nine of ten runs 20 to 20 compar" in said


def test_stored_texts_say_how_long_answers_are_and_take(database, campaign, campaign_file):
    campaign.finish(campaign.plan(0, [0, 1, 2, 0], [0, 0, 0, 1]), [1.0, 0.0, 1.0, 1.0])
    with database.reading() as session:
        assert rates(session, ["m", "n"]) == {"m": ModelRate(texts=4, output_tokens=2.0, seconds=0.25)}
        assert rates(session, ["n"]) == {}
