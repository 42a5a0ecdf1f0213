import numpy as np
import pytest

from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.registry import create_selector


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_arms": 1}, "n_arms must be at least 2 to compare, got 1"),
        ({"n_examples": 0}, "n_examples must be at least 1, got 0"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"budget": 0}, "budget must be at least 1 or None, got 0"),
        ({"delta": 0.0}, r"delta must be in \(0, 1\) or None, got 0.0"),
        ({"max_unscored": 1.5}, r"max_unscored must be in \[0, 1\], got 1.5"),
        ({"epsilon": 0.5}, r"epsilon must be in \[0, 1/2\), got 0.5"),
        ({"epsilon": -0.1}, r"epsilon must be in \[0, 1/2\), got -0.1"),
        ({"assume_winner": 1}, "assume_winner must be true or false, got 1"),
        (
            {"deterministic": np.ones(2, dtype=bool)},
            r"deterministic must be of shape \(3,\), true or false each, got .*",
        ),
        (
            {"deterministic": np.ones(3)},
            r"deterministic must be of shape \(3,\), true or false each, got .*",
        ),
        (
            {"deterministic": np.ones(3, dtype=bool), "features": np.eye(3)},
            "deterministic must be None with features: the model needs fresh draws, got .*",
        ),
        ({"features": [[1.0], [2.0], [3.0]]}, r"features must be an array or None, got \[\[1.0\].*"),
        (
            {"features": np.ones((2, 4))},
            r"features must be of shape \(3, d\), a row for each arm, got \(2, 4\)",
        ),
        ({"features": np.ones((3, 0))}, r"features must be of shape \(3, d\), .*, got \(3, 0\)"),
        ({"features": np.full((3, 1), np.nan)}, "features must be finite numbers, got nan"),
        ({"features": np.full((3, 1), "a")}, "features must be an array of numbers, got '<U1'"),
    ],
)
def test_a_bad_value_of_a_duel_setting_is_refused_early_and_shown(params, message):
    with pytest.raises(InvalidParameter, match=f"^{message}$"):
        create_selector("round-robin", **{"n_arms": 3, "n_examples": 4, **params})


def test_features_are_copied_and_cannot_be_changed():
    features = np.array([[1, 0], [0, 1]])
    config = BestDuelConfig(n_arms=2, n_examples=1, features=features)
    features[:] = 7
    np.testing.assert_array_equal(config.features, [[1.0, 0.0], [0.0, 1.0]])
    assert config.features.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        config.features[0, 0] = 2.0


def test_settings_are_equal_when_all_values_are():
    def config(**changes):
        return BestDuelConfig(**{"n_arms": 2, "n_examples": 9, "features": np.eye(2), **changes})

    assert config() == config()
    for changes in ({"features": None}, {"features": 2.0 * np.eye(2)}, {"delta": 0.1}, {"budget": 5}):
        assert config() != config(**changes)
    assert config(features=None) == config(features=None)
