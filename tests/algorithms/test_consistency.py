import dataclasses

import numpy as np
import pytest

from winnow.algorithms.best_mean.consistency import check_possible
from winnow.algorithms.claims import EXACT, NOTHING_CLAIMED
from winnow.algorithms.decision import Decision
from winnow.algorithms.errors import ImpossibleState

LEAST, MOST = np.array([0.8, 0.1, 0.3]), np.array([0.8, 0.6, 0.9])
SOUND = Decision(
    best=0,
    estimates=np.array([0.8, 0.3, 0.5]),
    lower=np.array([0.8, 0.2, 0.4]),
    upper=np.array([0.8, 0.5, 0.75]),
    status=("best", "eliminated", "eliminated"),
    stop=True,
    reason="confident",
    claim=EXACT,
)


def check(least=LEAST, most=MOST, fully_scored=(True, False, False), **changes):
    decision = dataclasses.replace(SOUND, **changes)
    check_possible(decision, np.array(least), np.array(most), np.array(fully_scored))


def test_sound_decisions_pass_with_unknown_numbers_too():
    unknown = np.full(3, np.nan)
    check()
    check(lower=unknown, upper=unknown, status=("best", "eliminated", "not-better"))
    check(best=None, estimates=unknown, status=("active", "dropped", "active"), claim=NOTHING_CLAIMED)
    check(estimates=SOUND.estimates + 1e-12)  # rounding


IMPOSSIBLE = {
    "scores above 1": (dict(least=[0.8, 0.1, 1.2], most=[0.8, 0.6, 1.3]), "arm 2: .* means from 1.2 to 1.3"),
    "crossed scores": (dict(least=[0.8, 0.7, 0.3]), "arm 1: .* allow means from 0.7 to 0.6"),
    "interval below the scores": (
        dict(lower=np.array([0.8, 0.2, 0.2])),
        "arm 2: .* 0.2 to 0.75 reaches beyond",
    ),
    "interval above the scores": (
        dict(upper=np.array([0.8, 0.7, 0.75])),
        "arm 1: .* to 0.7 reaches beyond 0.1",
    ),
    "crossed ends": (
        dict(lower=np.array([0.8, 0.55, 0.4])),
        "arm 1: .* lower end 0.55 .* above the upper end 0.5",
    ),
    "estimate too high": (dict(estimates=np.array([0.8, 0.51, 0.5])), "arm 1: .* estimate 0.51 lies outside"),
    "estimate too low": (
        dict(estimates=np.array([0.8, 0.3, 0.39])),
        "arm 2: .* outside its interval from 0.4",
    ),
    "estimate outside what is certain": (
        dict(lower=np.full(3, np.nan), upper=np.full(3, np.nan), estimates=np.array([0.9, 0.3, 0.5])),
        "arm 0: .* estimate 0.9",
    ),
    "dropped and best": (
        dict(status=("dropped", "active", "active")),
        "arm 0: .* 'dropped', yet it is recomm",
    ),
    "out and best": (
        dict(best=1, status=("active", "eliminated", "active")),
        "arm 1: .* yet it is recommended",
    ),
    "out without reason": (
        dict(best=2, status=("eliminated", "eliminated", "active"), claim=NOTHING_CLAIMED),
        "arm 0: .* 'eliminated', yet its interval reaches that of every other arm",
    ),
    "best of another": (
        dict(best=2, status=("best", "eliminated", "active")),
        "arm 0: .* another arm is recomm",
    ),
    "tied and open": (dict(status=("tied", "tied", "eliminated")), "arm 1: .* 'tied', yet not all"),
    "best without proof": (dict(claim=NOTHING_CLAIMED), "arm 0: .* 'best', yet nothing is proven"),
    "not better without proof": (
        dict(status=("active", "not-better", "active"), claim=NOTHING_CLAIMED),
        "arm 1: .* 'not-better', yet nothing is proven",
    ),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_an_impossible_state_is_refused_with_what_differs(case):
    changes, message = IMPOSSIBLE[case]
    with pytest.raises(ImpossibleState, match=message):
        check(**changes)
