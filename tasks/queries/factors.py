"""Effects of candidates' choices on scores: model, prompt, guardrail, sampling."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from winnow.algorithms.bounds.factor_effects import Effect, interactions, main_effects
from winnow.algorithms.state.arrays import FloatArray, IntArray
from winnow.storage.json_types import JsonObject, JsonView
from winnow.storage.queries.objective import paired as paired_views
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.record_types import NewCandidate
from winnow.tasks.campaign.look import Look

MOST_SCORES = 20_000
"""Maximum number of scores that effects are estimated from: those of the first examples."""
LEAST_EXAMPLES = 20
"""Minimum number of examples on which every level, or pair of levels, has scores together with others. With
fewer, intervals hold too rarely; with one, almost never.
"""
MOST_LEVELS = 60
"""Maximum number of levels of all factors together.
More levels are slow to compute and hard to read.
"""

UNCERTIFIED = (
    "Estimated from the scored comparisons, with approximate 95% intervals, each by itself and for one look "
    "at the data. A search scores promising candidates more often, so nothing here is certified."
)
"""Note on the meaning of the intervals of effects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """A choice in which candidates differ, such as the prompt, and its options."""

    name: str
    levels: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelEffect:
    """Effect of a level: its scores minus the average over the factor's levels."""

    factor: str
    level: str
    scores: int
    """Number of scores with this level."""
    estimate: float | None
    """Estimated effect; None if the scores cannot separate it from other choices."""
    lower: float | None
    """Lower end of the interval.
    None, like `upper`, if scores do not vary, or if a level of the factor was scored together with others on
    fewer than `LEAST_EXAMPLES` examples.
    """
    upper: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEffect:
    """Interaction of two levels: the effect of both together."""

    levels: tuple[str, str]
    scores: int
    mean: float | None
    """Mean of the scores with both levels; None without such scores."""
    estimate: float | None
    """Effect of both levels minus the sum of their own effects; None if the scores cannot determine it."""
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateMean:
    """A candidate with scores, and their mean."""

    name: str
    levels: Sequence[int]
    """Index of the candidate's level, for each factor."""
    scores: int
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorTables:
    """Effects of all factors of a campaign."""

    factors: Sequence[Factor]
    """The factors, each with at least two levels."""
    effects: Sequence[LevelEffect]
    cells: Mapping[tuple[str, str], Sequence[CellEffect]]
    """Interactions for each pair of factors, by their names."""
    candidates: Sequence[CandidateMean]
    """Candidates with scores, by arm."""
    scores: int
    examples: int
    is_cut: bool
    """Whether only a part of the scores was read."""


def factor_tables(look: Look) -> FactorTables | None:
    """Main effects of all factors, and interactions of all pairs of factors.

    None if the factors have too many levels.
    """
    candidates = campaign_records.candidates(look.session, look.record.id)
    factors, chosen = factors_of(candidates)
    if sum(len(factor.levels) for factor in factors) > MOST_LEVELS:
        return None
    found = paired_views.all_scores(look.session, look.record.id, most=MOST_SCORES + 1)
    is_cut = len(found) > MOST_SCORES
    if is_cut:  # some scores of the last example may be missing
        found = [each for each in found if each[1] != found[-1][1]]
    arms = np.array([arm for arm, _, _ in found], dtype=np.int64)
    examples = np.array([example for _, example, _ in found], dtype=np.int64)
    scores = np.array([score for _, _, score in found], dtype=np.float64)
    levels = np.array(chosen, dtype=np.int64).reshape(len(candidates), len(factors))[arms]
    return FactorTables(
        factors=factors,
        effects=_main(factors, scores, levels, examples),
        cells=_cells(factors, scores, levels, examples),
        candidates=[
            CandidateMean(name=each.name, levels=chosen[arm], scores=len(own), mean=float(own.mean()))
            for arm, each in enumerate(candidates)
            if len(own := scores[arms == arm])
        ],
        scores=len(scores),
        examples=len(np.unique(examples)),
        is_cut=is_cut,
    )


def factors_of(candidates: Sequence[NewCandidate]) -> tuple[list[Factor], list[list[int]]]:
    """The choices in which candidates differ, and the level index of each candidate."""
    choices: dict[str, list[str]] = {
        "model": [str(each.model.get("entry") or each.model.get("name", "")) for each in candidates],
        **_params([each.model.get("params") or {} for each in candidates]),
        "prompt": [str(each.prompt.get("name", "")) for each in candidates],
        "guardrail": [_guardrail(each.prompt) for each in candidates],
        "sampling": _samplings([each.sampling for each in candidates]),
    }
    varied = {name: values for name, values in choices.items() if len(set(values)) > 1}
    factors = [Factor(name=name, levels=list(dict.fromkeys(values))) for name, values in varied.items()]
    chosen = [
        [factor.levels.index(varied[factor.name][number]) for factor in factors]
        for number in range(len(candidates))
    ]
    return factors, chosen


def _params(found: Sequence[JsonView]) -> dict[str, list[str]]:
    """Values of each parameter of agents, as factors called `params.NAME`."""
    names = dict.fromkeys(name for each in found for name in each)
    return {
        f"params.{name}": [str(each[name]) if name in each else "none" for each in found] for name in names
    }


def _guardrail(prompt: JsonView) -> str:
    guardrail = prompt.get("guardrail")
    return "none" if guardrail is None else str(guardrail.get("name"))


def _samplings(found: Sequence[JsonView]) -> list[str]:
    """Sampling settings in words, numbered if different settings have the same words."""
    texts = [json.dumps(dict(each), sort_keys=True, default=str) for each in found]
    names: dict[str, str] = {}
    for text, each in zip(texts, found, strict=True):
        words = sampling_words(each) or "default"
        alike = sum(name.partition(" (")[0] == words for name in names.values())
        names.setdefault(text, f"{words} ({alike + 1})" if alike else words)
    return [names[text] for text in texts]


def _main(
    factors: Sequence[Factor], scores: FloatArray, levels: IntArray, examples: IntArray
) -> list[LevelEffect]:
    n_levels = [len(factor.levels) for factor in factors]
    if not len(scores) or not factors:
        return []
    found = main_effects(scores, levels, examples, n_levels)
    enough = [_are_enough(levels[:, f], examples) for f in range(len(factors))]
    return [
        LevelEffect(
            factor=factor.name,
            level=name,
            scores=int((levels[:, f] == level).sum()),
            **_known(found[f][level], enough[f]),
        )
        for f, factor in enumerate(factors)
        for level, name in enumerate(factor.levels)
    ]


def _cells(
    factors: Sequence[Factor], scores: FloatArray, levels: IntArray, examples: IntArray
) -> dict[tuple[str, str], list[CellEffect]]:
    n_levels = [len(factor.levels) for factor in factors]
    tables = {}
    for f, g in combinations(range(len(factors)), 2) if len(scores) else ():
        found = interactions(scores, levels, examples, n_levels, (f, g))
        enough = _are_enough(levels[:, f] * n_levels[g] + levels[:, g], examples)
        tables[factors[f].name, factors[g].name] = [
            _cell(
                (ours, theirs), scores[(levels[:, f] == a) & (levels[:, g] == b)], _known(found[a][b], enough)
            )
            for a, ours in enumerate(factors[f].levels)
            for b, theirs in enumerate(factors[g].levels)
        ]
    return tables


def _cell(names: tuple[str, str], scores: FloatArray, known: JsonView) -> CellEffect:
    return CellEffect(
        levels=names, scores=len(scores), mean=float(scores.mean()) if len(scores) else None, **known
    )


def _are_enough(kinds: IntArray, examples: IntArray) -> bool:
    """Whether each kind of score has others on at least `LEAST_EXAMPLES` examples.

    An effect is compared with the effects of all other kinds, so the rarest kind limits its precision.

    Args:
        kinds: Kind of each score, shape (N,): its level of a factor, or its two levels together.
        examples: Example of each score, shape (N,).
    """
    pairs = np.unique(np.stack([examples, kinds]), axis=1)  # (2, number of different ones)
    of_example, counts = np.unique(pairs[0], return_counts=True)
    is_beside = counts[np.searchsorted(of_example, pairs[0])] > 1
    beside = [int(is_beside[pairs[1] == kind].sum()) for kind in np.unique(kinds)]
    return min(beside, default=0) >= LEAST_EXAMPLES


def _known(effect: Effect, are_enough: bool) -> JsonObject:
    """Estimate and interval of an effect.

    The interval is missing with few examples, or if all scores are equal.
    """
    if math.isnan(effect.estimate):
        return {"estimate": None, "lower": None, "upper": None}
    if not are_enough or effect.lower == effect.upper:
        return {"estimate": effect.estimate, "lower": None, "upper": None}
    return {"estimate": effect.estimate, "lower": effect.lower, "upper": effect.upper}


SHIFTING = ("min_p", "presence_penalty", "frequency_penalty", "repetition_penalty")
"""Numeric keys that stored sampling settings contain only if the file sets them."""


def sampling_words(sampling: JsonView) -> str:
    """A candidate's sampling settings in words; empty if no setting is stored."""
    if not sampling:
        return ""
    if sampling.get("choices"):
        return f"one of {len(sampling['choices'])} choices"
    temperature = sampling.get("temperature", 0.0)
    parts = [f"temperature {temperature:g}" if temperature else "greedy"]
    if temperature and sampling.get("top_p", 1.0) < 1.0:
        parts.append(f"top_p {sampling['top_p']:g}")
    if temperature and sampling.get("top_k", 0):
        parts.append(f"top_k {sampling['top_k']}")
    parts += [f"{key} {sampling[key]:g}" for key in SHIFTING if key in sampling]
    if sampling.get("logit_bias"):
        parts.append(f"logit_bias of {len(sampling['logit_bias'])}")
    if sampling.get("structure"):
        parts.append(f"structured by {sampling['structure'][0]}")
    return ", ".join(parts)
