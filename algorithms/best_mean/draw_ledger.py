"""Which told pairs were uniform draws, for a selector that also chooses pairs for what it expects of them."""

import numpy as np

from algorithms.arrays import BoolArray
from algorithms.protocols import Batch


class DrawLedger:
    """Remembers, from ask to tell, which pairs of a batch were drawn uniformly.

    A draw may be bet on when it is uniform given all that was told before it. It is drawn from the pairs
    neither told nor pending, so this holds if the batches are told in the order they were asked in. A batch
    that overtakes others is not bet on in the arms it shares with them, nor are they afterwards: what was
    chosen while they were pending tells something of what they are. Batches that consist of draws alone may
    overtake each other.
    """

    def __init__(self) -> None:
        self._in_flight: list[tuple[Batch, BoolArray]] = []

    def asked(self, batch: Batch, is_draw: BoolArray) -> None:
        """Remember a batch of B pairs; `is_draw` has shape (B,)."""
        self._in_flight.append((batch, is_draw.copy()))

    def told(self, batch: Batch, supposed: BoolArray) -> BoolArray:
        """Forget a batch.

        Args:
            batch: B pairs, asked here or not.
            supposed: Shape (B,), which of them were draws if they were not asked here.

        Returns:
            Shape (B,), which of them may be bet on.
        """
        places = [place for place, (asked, _) in enumerate(self._in_flight) if asked == batch]
        place = places[0] if places else len(self._in_flight)
        is_draw = self._in_flight.pop(place)[1] if places else supposed.copy()
        overtaken = self._in_flight[:place]
        if is_draw.all() and all(flags.all() for _, flags in overtaken):
            return is_draw
        for earlier, flags in overtaken:
            is_draw[np.isin(batch.arms, earlier.arms)] = False
            flags[np.isin(earlier.arms, batch.arms)] = False
        return is_draw
