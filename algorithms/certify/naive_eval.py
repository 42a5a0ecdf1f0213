"""Eval: trust the mean of the human losses."""

from winnow.algorithms.certify.losses import HUMAN
from winnow.algorithms.certify.mean_rule import MeanTest
from winnow.algorithms.certify.setting import Setting


class Eval(MeanTest):
    """Take an arm for certified when the mean of its human losses is at most alpha: without any guarantee.

    Source: Park et al. (2025), Section 1.2.1, for comparison.
    """

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, HUMAN)
