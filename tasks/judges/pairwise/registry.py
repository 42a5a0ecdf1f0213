"""Pair judges by name.

A package adds pair judges through the entry point group `winnow.pair_judges`: each entry is a callable whose
keyword parameters are typed and which returns a `PairJudge`. A built-in judge cannot be replaced.
"""

from winnow.storage.json_types import JsonObject
from winnow.tasks.judges.catalogue import Catalogue, JudgeDescription
from winnow.tasks.judges.pairwise.plugin import PluginPairJudge
from winnow.tasks.judges.pairwise.protocol import PairJudge

GROUP = "winnow.pair_judges"

_CATALOGUE = Catalogue(
    "pair judge",
    group=GROUP,
    guard=PluginPairJudge,
    built_in={
        "human": "winnow.tasks.judges.pairwise.human:HumanPairJudge",
        "llm": "winnow.tasks.judges.pairwise.llm:llm_judge",
        "rules": "winnow.tasks.judges.pairwise.rules:rules_judge",
    },
)


def pair_judge_names() -> tuple[str, ...]:
    """Every pair judge there is, built in and installed, in alphabetical order; none is imported."""
    return _CATALOGUE.names()


def describe(name: str) -> JudgeDescription:
    """A pair judge's summary and parameters.

    Raises:
        JudgeError: If there is no such judge or it cannot be imported.
    """
    return _CATALOGUE.describe(name)


def pair_judge_code(type: str, /) -> JsonObject:
    """What the code of this pair judge is, as far as verdicts depend on it. JSON values.

    Raises:
        JudgeError: If there is no such judge or it cannot be imported.
    """
    return _CATALOGUE.code(type, {})


def create_pair_judge(type: str, /, **params: object) -> PairJudge:
    """The pair judge of this name with these parameters.

    Args:
        type: One of `pair_judge_names()`.
        params: What `describe(type)` lists.

    Raises:
        SpecError: If the name, a parameter, a value or a file named by one is not one that is accepted.
    """
    judge: PairJudge = _CATALOGUE.create(type, params)
    return judge
