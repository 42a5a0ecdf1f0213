"""Base of the naive methods: an arm passes if a mean of its losses is at most alpha."""

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.certify.config import CertifyConfig
from winnow.algorithms.certify.label_record import LabelRecord
from winnow.algorithms.certify.procedure import Findings, Procedure
from winnow.algorithms.claims import HEURISTIC
from winnow.algorithms.decision import Decision
from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import BoolArray

ROUNDING = 1e-9  # sums of the same losses in another order can differ by this much


class MeanTest:
    """Pass or fail an arm by the mean of its losses, once all its labels are observed.

    A baseline without a guarantee, whatever delta is. Missing losses are left out.

    Args:
        config: The problem and the common parameters; delta and the betting rule are not used.
        column: Column of the loss whose mean is used, as in `label_record`.
    """

    def __init__(self, config: CertifyConfig, column: int) -> None:
        self._alpha = config.alpha
        self._record = LabelRecord(config, (column,), estimated=column)
        self._procedure = Procedure(config, self._record, HEURISTIC)
        self._nowhere = np.zeros(config.n_arms, dtype=np.bool_)
        self._unknown = np.full(config.n_arms, np.nan)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose labelled examples that the arms under test have not used, old labels before new ones."""
        return self._procedure.ask(self._findings, rng)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb losses in [0, 1], shape (B, 3) or (B, 4), as in `label_record`, NaN if unscored."""
        self._record.tell(batch, outcomes)

    def decision(self) -> Decision:
        """Recommend the last arm that passed, or none."""
        return self._procedure.decision(self._findings)

    @property
    def certified(self) -> BoolArray:
        """Mask of the arms that passed, shape (K,)."""
        return self._procedure.certified(self._findings)

    @property
    def n_labels(self) -> int:
        """Number of used labels: examples observed for at least one arm."""
        return self._record.n_told

    @property
    def _findings(self) -> Findings:
        return Findings(
            passed=self._record.has_all & (self._record.means <= self._alpha + ROUNDING),
            refuted=self._nowhere,
            lower=self._unknown,
            upper=self._unknown,
        )
