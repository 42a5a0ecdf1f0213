"""Properties of each objective.

All other modules distinguish objectives only by these. An objective is a package of
`winnow.tasks.objectives`, named as in a campaign's file with underscores. Its module `traits` holds its
`TRAITS`; its other modules are imported only for its own campaigns. This module is part of storage because
reading stored rows needs these properties too; it refers to packages only by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Literal, cast, get_args

Kind = Literal["comparisons", "tokens", "gpu_seconds", "cost", "human_labels"]
"""Kind of amount that a budget limits."""

Simulated = Literal["tables of scores", "duels", "routes"]
"""Kind of data that `winnow simulate` replays for an objective.
The text is that of the command's help."""

KINDS: tuple[Kind, ...] = get_args(Kind)

OBJECTIVES = ("best-mean", "best-duel", "certify", "route")
"""All objectives. The package `tasks.objectives.best_mean` is "best-mean", and so on."""


@dataclass(frozen=True, kw_only=True)
class Traits:
    """Properties of an objective for other modules.

    Import paths have the form "module:attribute".
    """

    campaign: str
    """Import path of the subclass of `ResolvedCampaign`."""
    steps: str = "winnow.tasks.objectives.protocol:RoundSteps"
    """Import path of the class that implements the steps of its rounds."""
    terminal: str
    """Import path of a function that returns the sections of a terminal report.
    The function takes a campaign's record."""
    page: str
    """Module with the sections of its page: `builders_of` and `SAMPLES`.
    Also `MEASURED`, unless the objective compares pairs."""
    outcome: str | None = None
    """Import path of a function that returns an ended campaign's outcome.
    The function takes a decision, a reason and a claim. None if the answer is the best candidate."""
    details: str | None = None
    """Import path of a function that returns data of the objective's own answers.
    The function takes a `Look`. The data are the certificate, or the results of routing."""
    missing: str | None = None
    """Import path of a function that counts the missing outcomes.
    The function takes a `Look` and returns, by candidate position, the number of missing outcomes and
    their cause. None if the statistics of candidates have them."""
    fresh_positions: str | None = None
    """Import path of a function that takes a `Look` and returns example positions.
    The outcomes of these examples must not have been seen when the campaign was designed. None if these
    are the held-out examples."""
    lines: str | None = None
    """Import path of a function that returns the lines on result and certainty.
    The function takes an `Answer`. None if the answer is the best candidate."""
    headline: str | None = None
    """Import path of a function that returns two parts of the headline.
    The function takes an `Answer`; the parts are the result and its certainty. None if the answer is the
    best candidate."""
    estimated: str
    """Name of the value that is estimated for each candidate."""
    unused_keys: tuple[str, ...] = ()
    """Keys of a campaign's file that have no meaning for the objective."""
    counts: Kind = "comparisons"
    """The amount that the selector counts; a budget that is a plain number limits it."""
    fewest_candidates: int = 2
    compares_pairs: bool = False
    """Whether a comparison is a duel of two candidates.
    Only a judge of pairs can decide a duel."""
    default_selector: str | None = None
    """Selector of a file that names no selector, with the full grid as its budget.
    None if a file must name a selector."""
    looks_for_best: bool = False
    """Whether the answer is the best candidate."""
    scores_a_benchmark: bool = False
    """Whether the result is a table of scores of a benchmark.
    The table has one score per candidate and example of a fixed data set."""
    measures_risk: bool = False
    """Whether losses are measured, on examples that people label.
    Lower estimates are then better."""
    is_stream: bool = False
    """Whether examples arrive over time, and each is routed to one candidate."""
    can_be_rescored: bool = False
    """Whether another judge can score the stored outputs."""
    takes_epsilon: bool = False
    """Whether `stopping.epsilon` has a meaning."""
    simulated: Simulated | None = None
    """Data that its selectors are simulated on; None if they cannot be simulated."""
    unforeseen: str = "when it ends"
    """Costs that `winnow plan` cannot predict for the objective.
    The text is the end of a sentence."""
    demo: str | None = None
    """Import path of the function that prepares its demo."""
    views: Mapping[str, str] = field(default_factory=dict)
    """Import paths, by name, of the functions that return its own views.
    The functions include its versions of those in `tasks.queries.views`."""


@cache
def traits_of(objective: str) -> Traits:
    """Properties of an objective.

    Raises:
        ModuleNotFoundError: If the objective does not exist.
    """
    module = import_module(f"winnow.tasks.objectives.{objective.replace('-', '_')}.traits")
    return cast(Traits, module.TRAITS)
