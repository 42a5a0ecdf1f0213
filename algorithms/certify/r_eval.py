"""R-Eval: certificates from human losses alone."""

import numpy as np

from winnow.algorithms.certify.e_process import BettingTest
from winnow.algorithms.certify.setting import Setting


class REval(BettingTest):
    """Certify by bets on human losses; autoevaluated and unlabelled ones may be missing (rho = 0).

    Source: Waudby-Smith & Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B
    86(1), as stated by Park et al. (2025), Section 2.
    """

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, np.zeros(1))
