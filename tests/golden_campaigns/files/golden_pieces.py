"""An embedder and a score. Their source code is part of the identity of campaigns: an edit changes dumps."""

import numpy as np


class Parity:
    """Whether a text's number is even."""

    dim = 2

    def embed(self, texts):
        return np.array([[1.0, float(int(text) % 2)] for text in texts])


class Score:
    """A score for `winnow.select`; its `fails_at`-th call raises an error."""

    def __init__(self, fails_at=None):
        self.calls, self._fails_at = 0, fails_at

    def of(self, candidate, example):
        self.calls += 1
        if self.calls == self._fails_at:
            raise RuntimeError("no score today")
        known = ((candidate * 7 + example * 5) % 9 + candidate) / 12
        return None if (candidate + example) % 11 == 0 else known
