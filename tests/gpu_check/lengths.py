"""Texts of heavy-tailed lengths on the real engine: rounds with a barrier, and with `lookahead: auto`."""

import tempfile
from pathlib import Path

from tests.gpu_check.site import Site
from tests.gpu_check.steps import Measured

BUDGET = 1024
"""Comparisons: sixteen rounds with a barrier."""


def barrier_and_auto(site: Site, *, budget: int = BUDGET) -> Measured:
    """Campaigns over one `LLM.generate` of the same requests, with random weights; see `throughput`."""
    from tests.benchmarks import throughput

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = throughput.heavy_model(folder, enforce_eager=True)
        for ahead in throughput.AHEAD:
            stopping = {"budget": budget, "delta": 0.05}
            found = throughput.campaign(ahead, models=[model], stopping=stopping)
            plain = throughput.plain_lengths(folder, model, found)
            what = "a barrier after each round" if ahead == 0 else f"`lookahead: auto` ({found.ahead})"
            yield (
                f"texts of 8 to 512 tokens, 64 at once, {what}",
                (
                    f"{found.seconds:.1f} s for {found.comparisons} comparisons in {found.rounds} rounds, "
                    f"{found.seconds / plain:.2f} times one call with all of them ({plain:.1f} s)"
                ),
            )
