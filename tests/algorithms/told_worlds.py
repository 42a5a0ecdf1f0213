"""In a process of its own: what every selector asks and decides in given worlds; see `test_cpu_families`."""

import json
import pickle
import sys
from pathlib import Path

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.registry import selector_names

MOST_ROUNDS = 60
BATCH_SIZES = {"best-mean": 9, "best-duel": 3, "certify": 6, "route": 3}
"""With which every campaign comes to its end."""


def told(world, selector):
    """Words and numbers of each round, numbers as their bits."""
    found = []
    for (batch, _), _ in zip(world.rounds(selector), range(MOST_ROUNDS), strict=False):
        decision = selector.decision()
        words = [batch.arms.tolist(), batch.examples.tolist(), decision.best, decision.reason]
        numbers = [decision.estimates, decision.lower, decision.upper, decision.ranked_by]
        if batch.propensities is not None:
            numbers.append(batch.propensities)
        words += [list(decision.status), str(decision.claim)]
        found.append([words, [each.tobytes().hex() for each in numbers]])
    return found


def main(worlds, output):
    """Write what was told to a file, by the selector's name and the world's."""
    found = {}
    for (objective, label), world in pickle.loads(Path(worlds).read_bytes()).items():
        for name in selector_names(objective):
            try:
                selector = world.selector(name, batch_size=BATCH_SIZES[objective])
            except InvalidParameter:  # no such world for it
                continue
            found[f"{name} {label}"] = told(world, selector)
    Path(output).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
