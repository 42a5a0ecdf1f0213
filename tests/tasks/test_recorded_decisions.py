"""What a process records of its decisions is what the selector believes, whichever process came before it."""

import numpy as np
import pytest
from scripted_engines import provide_all
from stepwise_campaigns import begun, run_round, write_campaign
from stored_campaigns import new_database

from winnow.algorithms.decision import Bets, Decision
from winnow.algorithms.registry import create_selector
from winnow.storage.records import candidate_states
from winnow.storage.records.outcomes import latest_decision
from winnow.tasks.plugins.selectors import campaign_selector
from winnow.tasks.rounds.record import _known, _of_bets, _with_opponents


def test_what_was_known_is_read_once_by_each_process_and_each_decision_is_the_selectors(
    tmp_path, monkeypatch
):
    provide_all(monkeypatch)
    read, reads = candidate_states.known_after, []
    monkeypatch.setattr(candidate_states, "known_after", lambda *given: reads.append(1) or read(*given))
    path = write_campaign(tmp_path, "small", selector={"name": "champion"}, batch_size=4)
    database = new_database(tmp_path / "small.db")
    for n_rounds in (2, 1):
        with begun(database, path) as campaign:
            reads.clear()
            for _ in range(n_rounds):
                run_round(campaign)
            assert len(reads) == 1
            with database.reading() as session:
                stored = latest_decision(session, campaign.record.id)
            decision = campaign.selector.decision()
            assert stored.estimates == _known(decision.estimates)
            assert stored.upper == _known(decision.upper)
            assert stored.bets["wealths"] == [of_six_digits(each) for each in decision.bets.wealths]
            assert tuple(stored.status) == decision.status
    database.close()


def of_six_digits(wealth):
    digits, exponent = f"{wealth:.15e}".split("e")
    return float(f"{digits[:7]}e{exponent}")


def test_who_is_tied_within_epsilon_is_not_out():
    """It was shown not to be the best, and shares the first place all the same."""
    scores = np.tile(np.arange(60) % 2.0, (2, 1))
    scores[1, 7] = 0.0
    champion = campaign_selector("champion", n_arms=2, n_examples=60, delta=0.05, epsilon=0.02, batch_size=16)
    rng = np.random.default_rng(0)
    while len(batch := champion.ask(rng)):
        champion.tell(batch, scores[batch.arms, batch.examples])
    decision = champion.decision()
    assert decision.status == ("tied", "tied")
    assert decision.bets.out_at.tolist() == [-1, 120]
    stored = _of_bets(decision.bets, decision.status)
    assert (stored["out_at"], stored["out_in_round"]) == ([None, None], [None, None])
    worse = _of_bets(decision.bets, ("best", "eliminated"))
    assert worse["out_at"] == [None, 120]


@pytest.mark.parametrize(
    ("wealth", "level", "stored"),
    [
        (19.9999996, 20.0, 19.9999),
        (20.0, 20.0, 20.0),
        (20.00019, 20.0, 20.0001),
        (100 / 3, 100 / 3, 100 / 3),
        (33.33334, 100 / 3, 100 / 3),
        (33.33333, 100 / 3, 33.3333),
        (0.3, 20.0, 0.3),
        (0.0, 20.0, 0.0),
        (1.23456789e-7, 20.0, 1.23456e-7),
        (1.23456789e30, np.inf, 1.23456e30),
        (np.inf, np.inf, 1e300),
        (np.inf, 20.0, 1e300),
    ],
)
def test_a_wealth_is_stored_on_the_side_of_its_level_that_it_is_on(wealth, level, stored):
    bets = Bets(
        wealths=np.array([wealth]),
        levels=np.array([level]),
        out_in_round=np.array([-1]),
        out_at=np.array([-1]),
    )
    assert _of_bets(bets, ["active"])["wealths"] == [stored]


def test_a_zero_has_no_sign_and_what_is_unknown_is_null():
    assert str(_known(np.array([-0.0, np.nan, 0.5]))) == "[0.0, None, 0.5]"


@pytest.mark.parametrize("name", ["llm-po", "llm-po-bt", "rucb"])
def test_nothing_is_known_of_a_preference_over_opponents_that_were_all_dropped(name):
    features = {"features": np.eye(3)} if name == "llm-po-bt" else {}
    setting = {"n_arms": 3, "n_examples": 40, "batch_size": 30, "max_unscored": 0.5, "delta": 0.05}
    selector = create_selector(name, **setting, **features)
    batch = selector.ask(np.random.default_rng(7))
    selector.tell(batch, np.full(len(batch), np.nan))
    decision = selector.decision()
    assert decision.status == ("dropped",) * 3
    recorded = _with_opponents(decision)
    assert np.isnan(recorded.lower).all()
    assert np.isnan(recorded.upper).all()


@pytest.mark.parametrize(
    ("status", "known"),
    [
        (("best", "eliminated", "dropped"), [True, True, True]),
        (("active", "dropped", "dropped"), [False, True, True]),
    ],
)
def test_who_has_an_opponent_left_keeps_its_bounds(status, known):
    ends = np.array([0.25, 0.5, 0.75])
    found = _with_opponents(
        Decision(
            best=None, estimates=ends, lower=ends, upper=ends, status=status, stop=False, reason="running"
        )
    )
    assert np.isfinite(found.lower).tolist() == np.isfinite(found.upper).tolist() == known
