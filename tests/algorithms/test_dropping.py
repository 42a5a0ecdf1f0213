import numpy as np
import pytest

from winnow.algorithms.state.dropping import too_many_unscored


@pytest.mark.parametrize(
    ("told", "unscored", "share", "expected"),
    [
        (7, 7, 0.5, False),  # too few to say
        (8, 8, 0.5, True),
        (8, 4, 0.5, False),  # as many as are allowed
        (9, 5, 0.5, True),
        (1_000, 1, 0.0, True),
        (1_000, 1_000, 1.0, False),
        (0, 0, 0.0, False),
    ],
)
def test_an_arm_is_dropped_from_its_eighth_pair_on_for_more_than_the_share(told, unscored, share, expected):
    assert too_many_unscored(np.array([told]), np.array([unscored]), share).tolist() == [expected]
