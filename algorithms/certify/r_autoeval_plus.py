"""Selectors that certify: R-AutoEval+, its weaker relatives, and two baselines without a guarantee."""

import numpy as np

from winnow.algorithms.certify.config import CertifyConfig
from winnow.algorithms.certify.e_process import BettingTest
from winnow.algorithms.certify.label_record import HUMAN, UNLABELLED
from winnow.algorithms.certify.mean_rule import MeanTest
from winnow.algorithms.errors import InvalidParameter


class RAutoEvalPlus(BettingTest):
    """Certify by the average capital of strategies with reliance on the autoevaluator from none to full.

    Their reliance factors are evenly spaced from 0 to 1. The average is never below 1 / S of the best
    strategy's capital, so the cost of not knowing the best one is log(S) of evidence, a few labels.

    Args:
        config: The problem and the common parameters.
        strategies: S, the number of reliance factors, at least 2.

    Source: Park et al. (2025), "Adaptive Prediction-Powered AutoEval with Reliability and Efficiency
    Guarantees", Algorithm 1.
    """

    def __init__(self, config: CertifyConfig, *, strategies: int = 10) -> None:
        if strategies < 2:
            raise InvalidParameter("strategies", strategies, "at least 2, for the factors 0 and 1")
        super().__init__(config, np.linspace(0.0, 1.0, strategies))


class RAutoEval(BettingTest):
    """Certify by bets on human losses with the full correction by the autoevaluator (rho = 1).

    With a poor autoevaluator it needs more labels than `r-eval`, with the same guarantee.

    Source: Einbinder, Ringel, Romano (2024), "Semi-supervised Risk Control via Prediction-Powered Inference",
    as stated by Park et al. (2025), equation (8).
    """

    def __init__(self, config: CertifyConfig) -> None:
        super().__init__(config, np.ones(1))


class REval(BettingTest):
    """Certify by bets on human losses alone (rho = 0); autoevaluated and unlabelled losses can be missing.

    Source: Waudby-Smith & Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B
    86(1), as stated by Park et al. (2025), Section 2.
    """

    def __init__(self, config: CertifyConfig) -> None:
        super().__init__(config, np.zeros(1))


class Eval(MeanTest):
    """Pass an arm if the mean of its human losses is at most alpha, without any guarantee.

    Source: Park et al. (2025), Section 1.2.1, for comparison.
    """

    def __init__(self, config: CertifyConfig) -> None:
        super().__init__(config, HUMAN)


class AutoEval(MeanTest):
    """Pass an arm if its mean autoevaluated loss is at most alpha, without any guarantee.

    It reads the losses on unlabelled examples only. Estimates are their means.

    Source: Park et al. (2025), Section 1.2.1, for comparison.
    """

    def __init__(self, config: CertifyConfig) -> None:
        super().__init__(config, UNLABELLED)
