"""The schema: what is asked, who is compared, what models said, and what came of it.

Rows are inserted, not rewritten, but for leases and tallies.
`campaigns.execution` may also change: it holds what never affects which pairs are chosen or how they score.
So may `campaigns.spec` of a routed campaign, whose candidates may grow in number, and a label, up to the
moment a comparison was made with it.
"""

from winnow.storage.models.base import Base, table_of
from winnow.storage.models.campaigns import Campaign, Candidate, Lease, Load, Round
from winnow.storage.models.datasets import Arrival, Dataset, Embedding, Example, FileDigest, Label
from winnow.storage.models.outcomes import Comparison, Decision, Game, Tally
from winnow.storage.models.texts import Canary, Generation, Pin, Prompt

__all__ = [
    "Arrival",
    "Base",
    "Campaign",
    "Canary",
    "Candidate",
    "Comparison",
    "Dataset",
    "Decision",
    "Embedding",
    "Example",
    "FileDigest",
    "Game",
    "Generation",
    "Label",
    "Lease",
    "Load",
    "Pin",
    "Prompt",
    "Round",
    "Tally",
    "table_of",
]
