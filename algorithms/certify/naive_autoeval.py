"""AutoEval: trust the autoevaluator."""

from winnow.algorithms.certify.losses import UNLABELLED
from winnow.algorithms.certify.mean_rule import MeanTest
from winnow.algorithms.certify.setting import Setting


class AutoEval(MeanTest):
    """Take an arm for certified when its mean autoevaluated loss is at most alpha: without any guarantee.

    It reads the losses on unlabelled examples only. Estimates are their means.

    Source: Park et al. (2025), Section 1.2.1, for comparison.
    """

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, UNLABELLED)
