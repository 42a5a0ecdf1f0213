"""Facts about threshold: which candidates have a mean score of at least a given one?"""

from winnow.storage.objectives import Traits

TRAITS = Traits(
    campaign="winnow.tasks.objectives.threshold.objective:Threshold",
    terminal="winnow.tasks.objectives.threshold.reports:sections_of",
    page="winnow.tasks.objectives.threshold.reports",
    outcome="winnow.tasks.objectives.threshold.objective:outcome_of",
    lines="winnow.tasks.objectives.threshold.objective:lines_of",
    estimated="mean",
    unused_keys=("fresh_generations", "certify", "embedder", "prompt_type", "holdout", "history", "groups"),
    can_be_rescored=True,
    views={
        "eliminations": "winnow.storage.queries.campaign_views:eliminations",
        "above": "winnow.tasks.objectives.threshold.objective:above",
    },
)
