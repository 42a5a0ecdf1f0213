"""Properties of the objective best-duel."""

from winnow.storage.objectives import Traits

TRAITS = Traits(
    campaign="winnow.tasks.objectives.best_duel.objective:BestDuel",
    steps="winnow.tasks.objectives.best_duel.judging:DuelSteps",
    terminal="winnow.flows.reports.terminal.best_duel:sections_of",
    page="winnow.flows.reports.html.objectives.best_duel",
    estimated="worst preference",
    unused_keys=(
        "lookahead",
        "samples",
        "metrics",
        "constraints",
        "groups",
        "tags",
        "output_type",
        "choices",
        "target_delimiter",
        "history",
        "holdout",
        "certify",
        "embedder",
        "prompt_type",
    ),
    compares_pairs=True,
    looks_for_best=True,
    takes_epsilon=True,
    simulated="duels",
    unforeseen="the number of duels until one candidate is shown to beat all others, which depends on how "
    "often each one is preferred over each other",
    demo="winnow.infra.demo.prepare:prepare_duels",
    views={
        "comparisons": "winnow.storage.queries.objective.duels:comparisons",
        "head-to-head": "winnow.storage.queries.objective.duels:head_to_head",
        "strengths": "winnow.tasks.objectives.best_duel.views:strengths",
        "judges": "winnow.storage.queries.objective.duels:judges",
        "verdicts": "winnow.storage.queries.objective.duels:verdicts",
        "agreement": "winnow.tasks.objectives.best_duel.views:agreement",
        "annotators": "winnow.storage.queries.objective.judgment_pairs:annotators",
        "labels": "winnow.tasks.objectives.human.files:label_rows",
    },
)
