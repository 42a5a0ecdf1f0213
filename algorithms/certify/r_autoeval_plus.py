"""R-AutoEval+: certificates that rely on an autoevaluator as far as it has proven to deserve."""

import numpy as np

from winnow.algorithms.certify.e_process import BettingTest
from winnow.algorithms.certify.setting import Setting
from winnow.algorithms.errors import InvalidParameter


class RAutoEvalPlus(BettingTest):
    """Certify by the average capital of strategies that rely on the autoevaluator from not at all to fully.

    Their reliance factors are evenly spaced from 0 to 1. The average is never below 1 / S of the best
    strategy's capital, so the price of not knowing which that is is a few labels, log(S) of evidence.

    Args:
        setting: The problem and the common parameters.
        strategies: S, the number of reliance factors, at least 2.

    Source: Park et al. (2025), "Adaptive Prediction-Powered AutoEval with Reliability and Efficiency
    Guarantees", Algorithm 1.
    """

    def __init__(self, setting: Setting, *, strategies: int = 10) -> None:
        if strategies < 2:
            raise InvalidParameter("strategies", strategies, "at least 2, for the factors 0 and 1")
        super().__init__(setting, np.linspace(0.0, 1.0, strategies))
