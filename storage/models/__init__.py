"""The schema: examples, campaigns with their candidates, texts of models, and results.

Rows are inserted, not rewritten, but for leases and stats, and for who holds an annotation task.
`campaigns.execution` may also change: it holds what never affects which pairs are chosen or how they score,
but for `reuse: only`, which stays what it is.
So may `campaigns.spec` of a routed campaign, whose candidates may grow in number, and a label or an
annotation, up to the moment a comparison was made with it.
"""

from winnow.storage.models.annotations import Annotation, AnnotationTask
from winnow.storage.models.base import Base, table_of
from winnow.storage.models.campaigns import (
    Campaign,
    Candidate,
    Lease,
    ModelLoad,
    PrunedCampaign,
    Round,
)
from winnow.storage.models.datasets import Dataset, Embedding, Example, FileDigest, Label, StreamBatch
from winnow.storage.models.outcomes import CandidateStats, Comparison, Decision, Judgment, Metric, Output
from winnow.storage.models.standings import Bet, Difference, Ranking, Standing
from winnow.storage.models.tallies import (
    CampaignStats,
    CostStats,
    DuelStats,
    MetricStats,
    ReusedText,
    ReuseStats,
)
from winnow.storage.models.texts import Canary, Generation, Pin, Prompt

__all__ = [
    "Annotation",
    "AnnotationTask",
    "Base",
    "Bet",
    "Campaign",
    "CampaignStats",
    "Canary",
    "Candidate",
    "CandidateStats",
    "Comparison",
    "CostStats",
    "Dataset",
    "Decision",
    "Difference",
    "DuelStats",
    "Embedding",
    "Example",
    "FileDigest",
    "Generation",
    "Judgment",
    "Label",
    "Lease",
    "Metric",
    "MetricStats",
    "ModelLoad",
    "Output",
    "Pin",
    "Prompt",
    "PrunedCampaign",
    "Ranking",
    "ReuseStats",
    "ReusedText",
    "Round",
    "Standing",
    "StreamBatch",
    "table_of",
]
