"""Trial renders of templates before a campaign runs, so that errors appear early."""

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from winnow.tasks.data.datasets import Example

MOST = 20_000
"""Maximum number of drawn trial prompts.

Each template's first, last and longest example are rendered in addition.
"""

MOST_SECONDS = 5.0
"""Seconds after which no further prompt is tried."""

Render = Callable[[Example], object]


def try_templates(
    templates: Sequence[Render], examples: Sequence[Example], clock: Callable[[], float] = time.monotonic
) -> int:
    """Render all templates on all examples, or on a sample of the pairs.

    Returns:
        The number of rendered prompts.

    Raises:
        TemplateError: A prompt cannot be rendered; the error is about the first such prompt.
    """
    end = clock() + MOST_SECONDS
    tried = 0
    for template, example in _sample(len(templates), examples):
        templates[template](examples[example])
        tried += 1
        if clock() > end:
            break
    return tried


def _sample(n_templates: int, examples: Sequence[Example]) -> Iterator[tuple[int, int]]:
    n = len(examples)
    if n_templates * n <= MOST:
        yield from ((template, example) for template in range(n_templates) for example in range(n))
        return
    sizes = [sum(map(len, map(str, each.fields.values()))) for each in examples]
    for example in dict.fromkeys((int(np.argmax(sizes)), 0, n - 1)):
        yield from ((template, example) for template in range(n_templates))
    drawn = np.random.default_rng(0).choice(n_templates * n, size=MOST, replace=False, shuffle=False)
    yield from ((int(place) // n, int(place) % n) for place in drawn)
