"""The schema: examples, campaigns with candidates, model outputs, results.

Rows are inserted, not updated. The exceptions:

* leases, stats, and the holder of an annotation task;
* `campaigns.execution`, which holds settings that never affect the chosen pairs or their scores; of these,
  `reuse: only` is fixed;
* `campaigns.spec` of a routed campaign, whose candidates can grow in number;
* labels and annotations, until a comparison was made with them.
"""

from winnow.storage.models.base import Base, table_of
from winnow.storage.models.campaigns import (
    Annotation,
    AnnotationTask,
    Campaign,
    Candidate,
    Dataset,
    Embedding,
    Example,
    FileDigest,
    Label,
    Lease,
    ModelLoad,
    PrunedCampaign,
    Round,
    StreamBatch,
)
from winnow.storage.models.generations import Canary, Generation, Pin, Prompt
from winnow.storage.models.outcomes import (
    Bet,
    CampaignStats,
    CandidateStats,
    Comparison,
    CostStats,
    Decision,
    Difference,
    DuelStats,
    Judgment,
    Metric,
    MetricStats,
    Output,
    Ranking,
    ReusedText,
    ReuseStats,
    Standing,
)

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
