"""Judges by name. A judge's module is imported when that judge is asked for, not before.

Those of outputs and those of pairs of outputs have a catalogue each. A package adds judges through the entry
point groups `winnow.judges` and `winnow.pair_judges`: each entry is a callable whose keyword parameters are
typed and which returns a judge. A built-in judge cannot be replaced, and the parameter names `extract` and
`no_answer` of judges of outputs are the registry's own.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import regex

from winnow.storage.json_types import JsonObject
from winnow.storage.objectives import OBJECTIVES, traits_of
from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.catalogue import Catalogue, JudgeDescription, JudgeParameter, checked
from winnow.tasks.judges.options import EXTRACT_VERSION, NO_ANSWER_VERSION, NoAnswer, WithOptions
from winnow.tasks.judges.plugin import PluginJudge, PluginPairJudge
from winnow.tasks.judges.protocol import BEST_OF, Duel, Judge, Sample
from winnow.tasks.judges.target_forms import use_of
from winnow.tasks.spec.judge_tree import BUILT_IN, HUMAN, PAIRS
from winnow.tasks.text.patterns import compiled

GROUP = "winnow.judges"
PAIR_GROUP = "winnow.pair_judges"
EXTRACT = "extract"
NO_ANSWER = "no_answer"


def _of_pairs() -> str:
    """The objectives that compare pairs."""
    return " or ".join(name for name in OBJECTIVES if traits_of(name).compares_pairs)


def _is_of_pairs(name: str) -> str | None:
    if name in BUILT_IN or name not in PAIRS:
        return None
    return (
        f"{name} judges pairs of outputs, for objective {_of_pairs()}; choose a judge of single outputs, "
        f"such as normalised, or set objective: {_of_pairs()}"
    )


def _is_of_outputs(name: str) -> str | None:
    if name in PAIRS or name not in BUILT_IN:
        return None
    return (
        f"{name} judges single outputs, and objective {_of_pairs()} compares pairs; write "
        f"judge: {{type: rules, scorer: {{type: {name}}}}}"
    )


_CATALOGUE = Catalogue(
    "judge",
    group=GROUP,
    guard=PluginJudge,
    built_in=BUILT_IN,
    common=(
        JudgeParameter(name=EXTRACT, accepts="str | None", default=None, required=False),
        JudgeParameter(name=NO_ANSWER, accepts="'wrong' | 'unscored'", default="wrong", required=False),
    ),
    elsewhere=_is_of_pairs,
)
_PAIR_CATALOGUE = Catalogue(
    "pair judge",
    group=PAIR_GROUP,
    guard=PluginPairJudge,
    built_in=PAIRS,
    elsewhere=_is_of_outputs,
)


def judge_names() -> tuple[str, ...]:
    """Every judge there is, built in and installed, in alphabetical order; none is imported."""
    return _CATALOGUE.names()


def describe(name: str) -> JudgeDescription:
    """A judge's summary and parameters, `extract` and `no_answer` last where it takes them.

    Raises:
        JudgeError: If there is no such judge or it cannot be imported.
    """
    described = _CATALOGUE.describe(name)
    if name != HUMAN:
        return described
    own = [each for each in described.parameters if each.name not in (EXTRACT, NO_ANSWER)]
    return replace(described, parameters=tuple(own))


def judge_code(type: str, /, **params: object) -> JsonObject:
    """The code of this judge with these parameters, as far as verdicts depend on it, as JSON values.

    Raises:
        JudgeError: If there is no such judge or it cannot be imported.
    """
    options = {NO_ANSWER: NO_ANSWER_VERSION}
    if params.get(EXTRACT) is not None:
        options[EXTRACT] = EXTRACT_VERSION
    own = {name: value for name, value in params.items() if name not in (EXTRACT, NO_ANSWER)}
    return {**_CATALOGUE.code(type, own), "options": options}


def create_judge(type: str, /, **params: object) -> Judge[Sample]:
    """The judge of this name with these parameters.

    Args:
        type: One of `judge_names()`.
        params: The parameters that `describe(type)` lists. `extract` is a regular expression whose last match
            in the output is judged in place of the output (group 1 if it has one). `no_answer` says whether
            an output that holds no answer is "wrong", with the score 0, or "unscored".

    Raises:
        JudgeError: If the name, a parameter or a value is not one that is accepted.
    """
    if type == HUMAN:
        return _human_judge(params)
    pattern = checked(EXTRACT, str | None, params.pop(EXTRACT, None))
    no_answer = checked(NO_ANSWER, NoAnswer, params.pop(NO_ANSWER, "wrong"))
    judge: Judge[Sample] = _CATALOGUE.create(type, params)
    return WithOptions(
        inner=judge,
        pattern=None if pattern is None else _extractor(pattern),
        forms=use_of(type, params),
        no_answer=no_answer,
    )


def _human_judge(params: JsonObject) -> Judge[Sample]:
    for option in (EXTRACT, NO_ANSWER):
        if option in params:
            raise JudgeError(
                f"people judge whole outputs as they see them; leave {option} out", f"judge.{option}"
            )
    judge: Judge[Sample] = _CATALOGUE.create(HUMAN, params)
    return judge


def _extractor(pattern: str) -> regex.Pattern[str]:
    try:
        return compiled(pattern)
    except ValueError as error:
        raise JudgeError(str(error), f"judge.{EXTRACT}") from error


def pair_judge_names() -> tuple[str, ...]:
    """Every judge of pairs, built in and installed, in alphabetical order; none is imported."""
    return _PAIR_CATALOGUE.names()


def describe_pair_judge(name: str) -> JudgeDescription:
    """A pair judge's summary and parameters.

    Raises:
        JudgeError: If there is no such judge or it cannot be imported.
    """
    return _PAIR_CATALOGUE.describe(name)


def pair_judge_code(type: str, /) -> JsonObject:
    """The code of this pair judge, as far as verdicts depend on it, as JSON values.

    Raises:
        JudgeError: If there is no such judge or it cannot be imported.
    """
    return _PAIR_CATALOGUE.code(type, {})


def create_pair_judge(type: str, /, **params: object) -> Judge[Duel]:
    """The pair judge of this name with these parameters.

    Args:
        type: One of `pair_judge_names()`.
        params: The parameters that `describe_pair_judge(type)` lists.

    Raises:
        SpecError: If the name, a parameter, a value or a file named by one is not one that is accepted.
    """
    judge: Judge[Duel] = _PAIR_CATALOGUE.create(type, params)
    return judge


Made = TypeVar("Made")


def within(given: Mapping[str, object], place: str, make: Callable[..., Made]) -> Made:
    """What `create_judge` or `judge_code` makes of a judge that stands within another one.

    Args:
        given: Its type and parameters, as a campaign's `judge` has them.
        place: Its place in the file, such as `judge.scorer`.
        make: Called with its type and parameters.

    Raises:
        JudgeError: With that place.
    """
    params = dict(given)
    name = params.pop("type", None)
    if not isinstance(name, str):
        raise JudgeError(f"must name a judge: one of {', '.join(judge_names())}", f"{place}.type")
    if name == BEST_OF:
        sentence = (
            f"{BEST_OF} chooses among the texts of a pair, which no judge within another one sees; make it "
            "the campaign's judge, and combine judges inside it"
        )
        raise JudgeError(sentence, f"{place}.type")
    try:
        return make(name, **params)
    except JudgeError as error:
        raise JudgeError(error.message, (error.path or "judge").replace("judge", place, 1)) from error
