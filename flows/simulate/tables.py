"""Build simulation environments from tables, and the subjects of their reports."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import default_rng

from winnow.algorithms.state.arrays import FloatArray
from winnow.flows.reports.output import tell
from winnow.flows.simulate.report import FILLING, Subject, preference_subject, route_subject, score_subject
from winnow.storage.objectives import Simulated
from winnow.tasks.campaign.earlier_scores import load_ended_table, load_score_table
from winnow.tasks.data.preference_tables import load_preference_table
from winnow.tasks.data.score_tables import ScoreTable, require_same_examples
from winnow.tasks.errors import SpecError
from winnow.tasks.simulation.environments import DuelEnvironment, Environment, ScoreEnvironment
from winnow.tasks.simulation.example_facts import groups_of_campaign, require_groups
from winnow.tasks.simulation.routes import RouteEnvironment
from winnow.tasks.simulation.simulate import ComparedSelector

MOST_MISSING = 0.5
"""Share of unscored examples above which selectors drop a candidate by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The user's options for the environment; None for options that are not given."""

    table: str
    storage: str
    """URL of the results database with the campaigns."""
    history: str | None
    history_share: float | None
    seed: int
    """Seed for the random candidates that become the history."""
    contexts: str | None
    embed: str | None
    types: str | None


class SimulatedTable(NamedTuple):
    """A simulation environment, and the subject of its report."""

    environment: Environment
    subject: Subject


def make_environment(
    simulated: Simulated, compared: Sequence[ComparedSelector], given: Given
) -> SimulatedTable:
    """Build the environment of a simulation.

    Args:
        simulated: Kind of the table.
        compared: The selectors.
        given: The user's options.

    Raises:
        WinnowError: If a file cannot be read, or a table or option does not fit the kind or the selectors.
    """
    if simulated == "routes":
        return _routes(given)
    if (given.contexts, given.embed, given.types) != (None, None, None):
        raise SpecError("--contexts, --embed and --types are for selectors that route; remove them")
    return _duels(given) if simulated == "duels" else _scores(compared, given)


def _duels(given: Given) -> SimulatedTable:
    _require_no_history("duels", given)
    read = load_preference_table(given.table, given.storage)
    environment = DuelEnvironment(preferences=read.preferences, features=read.features)
    return SimulatedTable(environment, preference_subject(read))


def _scores(compared: Sequence[ComparedSelector], given: Given) -> SimulatedTable:
    read, past = _with_history(load_score_table(given.table, given.storage), given)
    if past is not None:
        if not any("history" in each.uses for each in compared):
            raise SpecError(
                "none of the selectors learns from a history; remove the history, or add a selector such as "
                "pulse"
            )
        _require_others(read, past)
    _require_scores(read)
    groups = groups_of_campaign(given.table, given.storage)
    if groups is not None:
        require_groups(given.table, [each.selector for each in compared])
    environment = ScoreEnvironment(
        scores=read.scores,
        history=None if past is None else past.scores,
        groups=groups,
        is_partial=read.is_partial,
    )
    return SimulatedTable(environment, score_subject(read, groups))


def _routes(given: Given) -> SimulatedTable:
    from winnow.tasks.simulation.example_facts import embedded_contexts, read_contexts, read_types

    _require_no_history("routes", given)
    if (given.contexts is None) == (given.embed is None):
        raise SpecError(
            "routing needs vectors of the examples: give one of --contexts FILE, --embed TEMPLATE, and "
            "--contexts campaign:NAME with a route campaign"
        )
    read = load_score_table(given.table, given.storage)
    if read.is_partial:
        raise SpecError(
            f"{read.source} has only {read.filled:.0%} of its scores, because it stopped before it scored "
            f"all pairs, but routing needs all scores; {FILLING}"
        )
    _require_scores(read)
    types = None if given.types is None else read_types(given.types, read, given.storage)
    if given.contexts is not None:
        contexts = read_contexts(given.contexts, read, given.storage)
    else:
        contexts = embedded_contexts(str(given.embed), read, given.storage)
    environment = RouteEnvironment(
        scores=read.scores, contexts=contexts, types=None if types is None else types.of_examples
    )
    return SimulatedTable(environment, route_subject(read, environment, types))


def _require_no_history(kind: str, given: Given) -> None:
    if given.history is not None or given.history_share is not None:
        raise SpecError(f"a simulation of {kind} uses no history; remove --history and --history-share")


def _with_history(table: ScoreTable, given: Given) -> tuple[ScoreTable, ScoreTable | None]:
    """The table to replay, and the history: another table, a part of this one, or None."""
    share = given.history_share
    if given.history is not None and share is not None:
        raise SpecError("--history and --history-share exclude each other; give one of them")
    if given.history is not None:
        past = load_ended_table(given.history, given.storage)
        require_same_examples(table, past)
        return table, past
    if share is None:
        return table, None
    count = len(table.candidates)
    held = round(share * count)
    if not 1 <= held <= count - 2:
        problem = f"leaves {count - held} of {count} candidates to compare and {held} as history"
        raise SpecError(f"--history-share {share:g} {problem}; at least 2 and 1 are needed")
    order = default_rng(given.seed).permutation(count)
    return table.rows(order[held:]), table.rows(order[:held])


def _require_others(table: ScoreTable, past: ScoreTable) -> None:
    """Refuse a history with scores of the replayed table, which would make selectors look too good.

    A history may contain other scores of the same candidates, as in a campaign.
    """
    earlier = dict(zip(past.candidates, past.scores, strict=True))
    replayed = dict(zip(table.candidates, table.scores, strict=True))
    shared = [name for name in replayed if name in earlier]
    same = [name for name in shared if _has_the_same(replayed[name], earlier[name])]
    if same:
        raise SpecError(
            f"--history {past.source}: it has {len(same)} of the replayed candidates, such as {same[0]!r}, "
            "with the same scores, which selectors must not know; remove these candidates from one of the "
            "tables, or give --history-share instead"
        )
    if shared:
        tell(
            f"--history {past.source}: it has {len(shared)} of the replayed candidates, such as "
            f"{shared[0]!r}, with other scores; selectors learn about the examples from these scores and "
            "ignore names, as in a campaign with this history"
        )


def _has_the_same(scores: FloatArray, others: FloatArray) -> bool:
    """Whether two rows have equal scores on all examples that both scored, at least one."""
    both = ~np.isnan(scores) & ~np.isnan(others)
    return bool(both.any()) and np.array_equal(scores[both], others[both])


def _require_scores(table: ScoreTable) -> None:
    if len(table.candidates) < 2:
        raise SpecError(f"{table.source} has only one candidate; a comparison needs at least two")
    if table.is_partial:
        return
    worst = int(table.missing.argmax())
    if table.missing[worst] > MOST_MISSING:
        raise SpecError(
            f"{table.source}: candidate {table.candidates[worst]!r} lacks {table.missing[worst]:.0%} of its "
            "scores, so every selector would drop it; remove the candidate, or complete the table"
        )
