"""Properties of the objective best-mean."""

from winnow.storage.objectives import Traits

NAME = "best-mean"

TRAITS = Traits(
    campaign="winnow.tasks.objectives.best_mean.objective:BestMean",
    terminal="winnow.flows.reports.terminal.best_mean:sections_of",
    page="winnow.flows.reports.html.objectives.best_mean",
    estimated="mean",
    unused_keys=("fresh_generations", "certify", "embedder", "prompt_type"),
    default_selector="champion",
    looks_for_best=True,
    scores_a_benchmark=True,
    can_be_rescored=True,
    takes_epsilon=True,
    simulated="tables of scores",
    demo="winnow.infra.demo.prepare:prepare_demo",
    views={
        "leaderboard": "winnow.tasks.queries.held_out:leaderboard",
        "comparisons": "winnow.tasks.queries.held_out:comparisons",
        "pareto": "winnow.tasks.queries.breakdowns:pareto",
        "tags": "winnow.tasks.queries.breakdowns:tags",
        "eliminations": "winnow.storage.queries.campaign_views:eliminations",
        "annotators": "winnow.storage.queries.objective.judgment_pairs:annotators",
        "labels": "winnow.tasks.objectives.human.files:label_rows",
    },
)
