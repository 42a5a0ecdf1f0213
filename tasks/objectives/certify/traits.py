"""Properties of the objective certify."""

from winnow.storage.objectives import Traits

TRAITS = Traits(
    campaign="winnow.tasks.objectives.certify.objective:Certify",
    steps="winnow.tasks.objectives.certify.scoring:LossSteps",
    terminal="winnow.flows.reports.terminal.certify:sections_of",
    page="winnow.flows.reports.html.objectives.certify",
    outcome="winnow.tasks.objectives.certify.certificate:outcome_of",
    details="winnow.tasks.objectives.certify.certificate:certificate_of",
    missing="winnow.tasks.objectives.certify.certificate:missing_losses",
    fresh_positions="winnow.tasks.objectives.certify.certificate:fresh_positions",
    lines="winnow.tasks.answer.sentences.certify:lines_of",
    headline="winnow.tasks.answer.sentences.certify:headline_of",
    estimated="risk",
    unused_keys=(
        "lookahead",
        "constraints",
        "groups",
        "tags",
        "fresh_generations",
        "history",
        "holdout",
        "embedder",
        "prompt_type",
    ),
    counts="human_labels",
    fewest_candidates=1,
    measures_risk=True,
    can_be_rescored=True,
    unforeseen="the number of labels until candidates are certified, which depends on their losses",
    demo="winnow.infra.demo.prepare:prepare_certificate",
    views={
        "leaderboard": "winnow.storage.queries.objective.certify:leaderboard",
        "comparisons": "winnow.storage.queries.objective.certify:comparisons",
        "agreement": "winnow.storage.queries.objective.judgment_pairs:human_agreement",
        "e-values": "winnow.tasks.objectives.certify.evidence:e_values",
        "weights": "winnow.tasks.objectives.certify.evidence:weights",
        "annotators": "winnow.storage.queries.objective.judgment_pairs:annotators",
        "labels": "winnow.tasks.objectives.certify.evidence:label_rows",
    },
)
