"""Properties of the objective route."""

from winnow.storage.objectives import Traits

TRAITS = Traits(
    campaign="winnow.tasks.objectives.route.objective:Route",
    terminal="winnow.flows.reports.terminal.route:sections_of",
    page="winnow.flows.reports.html.objectives.route",
    outcome="winnow.tasks.objectives.route.status:outcome_of",
    details="winnow.tasks.objectives.route.status:standing_of",
    lines="winnow.tasks.answer.sentences.route:lines_of",
    headline="winnow.tasks.answer.sentences.route:headline_of",
    estimated="mean",
    unused_keys=(
        "lookahead",
        "constraints",
        "groups",
        "tags",
        "fresh_generations",
        "history",
        "holdout",
        "certify",
    ),
    is_stream=True,
    simulated="routes",
    unforeseen="which candidate answers which prompt, which depends on what is learned: all prompts are "
    "counted as if the most expensive candidate answered them",
    demo="winnow.infra.demo.prepare:prepare_routes",
    views={"picks": "winnow.tasks.objectives.route.status:picks"},
)
