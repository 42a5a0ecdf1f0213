"""What a process records of its decisions is what the selector believes, whichever process came before it."""

import numpy as np
from scripted_engines import provide_all
from stepwise_campaigns import begun, run_round, write_campaign
from stored_campaigns import new_database

from winnow.storage.records.candidates import standings
from winnow.storage.records.outcomes import latest_decision
from winnow.tasks.plugins.selectors import campaign_selector
from winnow.tasks.rounds.record import _known, _of_bets


def test_what_was_known_is_read_once_by_each_process_and_each_decision_is_the_selectors(
    tmp_path, monkeypatch
):
    provide_all(monkeypatch)
    read, reads = standings.known_after, []
    monkeypatch.setattr(standings, "known_after", lambda *given: reads.append(1) or read(*given))
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
            assert stored.bets["wealths"] == [float(f"{each:.6g}") for each in decision.bets.wealths]
            assert tuple(stored.status) == decision.status
    database.close()


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


def test_a_zero_has_no_sign_and_what_is_unknown_is_null():
    assert str(_known(np.array([-0.0, np.nan, 0.5]))) == "[0.0, None, 0.5]"
