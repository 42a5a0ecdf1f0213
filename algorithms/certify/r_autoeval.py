"""R-AutoEval: certificates that rely fully on an autoevaluator and correct its bias."""

import numpy as np

from winnow.algorithms.certify.e_process import BettingTest
from winnow.algorithms.certify.setting import Setting


class RAutoEval(BettingTest):
    """Certify by bets on human losses corrected by the whole surprise of the autoevaluator (rho = 1).

    With a poor autoevaluator it needs more labels than `r-eval`, and is as safe.

    Source: Einbinder, Ringel, Romano (2024), "Semi-supervised Risk Control via Prediction-Powered Inference",
    as stated by Park et al. (2025), equation (8).
    """

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, np.ones(1))
