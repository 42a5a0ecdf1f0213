"""Detect targets of which a judge reads (almost) nothing, so that it cannot judge.

Some judges' tokenizers or parsers ignore such text: BLEU treats a Chinese sentence as one word, SQuAD drops
the letter A as an article. The content of an output then does not affect its score.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import regex

from winnow.tasks.data.datasets import Example
from winnow.tasks.data.labels import as_options, labels_of
from winnow.tasks.errors import SpecError
from winnow.tasks.judges.isolated import rouge, translation
from winnow.tasks.judges.isolated import words as scripts
from winnow.tasks.judges.isolated.libraries import library_judge
from winnow.tasks.judges.protocol import UNREADABLE_TARGET, Judge, Sample
from winnow.tasks.judges.registry import EXTRACT, NO_ANSWER, create_judge
from winnow.tasks.judges.rules import string_match
from winnow.tasks.judges.rules.regex import RegexJudge
from winnow.tasks.spec.campaign import CampaignSpec, judges_of

MOST_IN_A_PROCESS = 200
"""Maximum number of targets that a library reads, which needs a separate process."""

MOST_SHOWN = 40
"""Maximum length of a target in a sentence, in characters."""


_NOT_LATIN = regex.compile(r"[^\p{Latin}\p{Common}\p{Inherited}]")
_OF_LATEX = regex.compile(r"\\text\w*\s*\{[^{}]*\}|\\[A-Za-z]+")
_SENTENCE = regex.compile(r"[A-Za-z]{2,}(?:[ ,]+[A-Za-z]{2,}){3,}")


@dataclass(frozen=True, slots=True)
class _Loss:
    """Why a judge reads (almost) nothing of a target, and the remedy."""

    how_much: str
    why: str
    remedy: str


Params = Mapping[str, object]
_Reader = Callable[[str, Params, Sequence[str]], Mapping[str, _Loss]]
"""Function from the judge's key in the file, its parameters and different targets, to the loss of each
target.
"""


def unread_targets(spec: CampaignSpec, examples: Sequence[Example]) -> Iterator[str]:
    """Yield one sentence for each judge and each cause of unread targets."""
    holders = {target: each.key for each in reversed(examples) for target in each.targets if target.strip()}
    targets = list(dict.fromkeys(each for one in examples for each in one.targets if each in holders))
    for judge in judges_of(spec):
        name = str(judge.type)
        if (reader := _READERS.get(name)) is None:
            continue
        lost = reader(judge.place, _own(judge.params), targets)
        if name in _ONE_IS_ENOUGH:
            helped = {each for one in examples if not lost.keys() >= {*one.targets} for each in one.targets}
            lost = {target: loss for target, loss in lost.items() if target not in helped}
        for loss in dict.fromkeys(lost.values()):
            found = [target for target, each in lost.items() if each == loss]
            yield (
                f"judge {name} reads {loss.how_much} of {len(found)} of {len(targets)} targets, such as "
                f"{_shown(found[0])} of example {holders[found[0]]!r}: {loss.why}; {loss.remedy}"
            )


def check_readable(spec: CampaignSpec, examples: Sequence[Example]) -> None:
    """Refuse a campaign whose judge can read no target, and would score no output.

    The judge is one of `READS_TARGETS`.

    Raises:
        SpecError: No target can be read; gives a target, the judge and the remedy.
    """
    name = spec.judge.type
    having = [each for each in examples if each.targets][:MOST_IN_A_PROCESS]
    if not having:
        return
    judge = create_judge(name, **_own(spec.judge.params))
    if any(not _are_unreadable(judge, each.targets) for each in having):
        return
    shown = having[0].targets[0]
    loss = _READERS[name]("judge", spec.judge.params, list(having[0].targets)).get(shown) or _NO_MATHEMATICS
    remedy = loss.remedy
    if name == "choice" and (labels := labels_of(each.targets for each in examples)):
        remedy = f"set judge.options: {as_options(labels)}"
    raise SpecError(
        f"judge {name} can read no target, such as {_shown(shown)} of example {having[0].key!r}, and would "
        f"score no output: {loss.why}; {remedy}",
        path="judge",
    )


def _own(params: Params) -> dict[str, object]:
    """Parameters of a judge, without those that all judges have."""
    return {key: value for key, value in params.items() if key not in ("type", EXTRACT, NO_ANSWER)}


def _shown(target: str) -> str:
    return repr(target if len(target) <= MOST_SHOWN else f"{target[:MOST_SHOWN]}…")


def _of_rule(name: str, why: str, remedy: str) -> _Reader:
    """Create the reader of a fast rule, which is applied to the targets themselves."""

    def read(place: str, params: Params, targets: Sequence[str]) -> dict[str, _Loss]:
        judge, loss = create_judge(name, **_own(params)), _Loss("nothing", why, remedy.format(place=place))
        return {target: loss for target in targets if _are_unreadable(judge, [target])}

    return read


def _of_rouge(place: str, params: Params, targets: Sequence[str]) -> dict[str, _Loss]:
    pairs = _Loss("nothing", "one word makes no pair of words", f"set {place}.variant: rougeL")
    none = _Loss("nothing", "its words are letters and digits", "choose exact for such targets")
    fewest = 2 if params.get("variant", rouge.RougeJudge.variant) == "rouge2" else 1
    counts = {target: len(scripts.words(target)) for target in targets}
    return {target: pairs if count else none for target, count in counts.items() if count < fewest}


def _of_squad(place: str, params: Params, targets: Sequence[str]) -> dict[str, _Loss]:
    none = _Loss(
        "nothing", "it drops punctuation and the articles a, an and the", "choose exact or normalised"
    )
    return {target: none for target in targets if not string_match.words(target)}


def _of_f1(place: str, params: Params, targets: Sequence[str]) -> dict[str, _Loss]:
    one = _Loss(
        "next to nothing",
        "its words end at spaces, which their script does not use",
        "choose rouge with variant: rouge1",
    )
    lost = {target: one for target in targets if not scripts.leaves(string_match.words(target), target)}
    return {**lost, **_of_squad(place, params, targets)}


def _by_sacrebleu(name: str) -> _Reader:
    def read(place: str, params: Params, targets: Sequence[str]) -> dict[str, _Loss]:
        suspects = [each for each in targets if not scripts.leaves([each], each)][:MOST_IN_A_PROCESS]
        build = "winnow.tasks.judges.isolated.translation:reading"
        settings = {"metric": name.upper(), "settings": dict(params)}
        helps = _lost(name, build, ("sacrebleu",), suspects, **settings)
        return {target: _of_tokenizer(place, json.loads(more)) for target, more in helps.items()}

    return read


def _of_tokenizer(place: str, helping: Mapping[str, object]) -> _Loss:
    settings = " and ".join(f"{place}.{name}: {_in_yaml(value)}" for name, value in helping.items())
    remedy = f"set {settings}" if helping else "choose chrf, which compares characters"
    return _Loss("next to nothing", "its tokenizer takes a sentence without spaces for one word", remedy)


def _of_similarity(place: str, params: Params, targets: Sequence[str]) -> dict[str, _Loss]:
    if params.get("embedder") is not None:
        return {}
    suspects = [each for each in targets if _NOT_LATIN.search(each)][:MOST_IN_A_PROCESS]
    build = "winnow.tasks.judges.isolated.similarity:reading"
    lost = _lost("similarity", build, ("transformers",), suspects, model=params.get("model"))
    loss = _Loss(
        "next to nothing",
        "its model has no tokens for such characters",
        f"set {place}.model to a sentence-embedding model of their language",
    )
    return dict.fromkeys(lost, loss)


def _of_math(place: str, params: Params, targets: Sequence[str]) -> dict[str, _Loss]:
    given = params.get("target_format", "expression")
    other = "text" if given == "expression" else "expression"
    judge, otherwise = create_judge("math", target_format=given), create_judge("math", target_format=other)
    texts = [each for each in targets if given == "expression" and _SENTENCE.search(_OF_LATEX.sub("", each))]
    lost = [each for each in targets[:MOST_IN_A_PROCESS] if _are_unreadable(judge, [each])]
    helped = _Loss(
        "nothing", f"it is no mathematics as target_format: {given}", f"set {place}.target_format: {other}"
    )
    text = _Loss("next to nothing", "a text is read as one expression", f"set {place}.target_format: text")
    return {
        **dict.fromkeys(texts, text),
        **{each: _NO_MATHEMATICS if _are_unreadable(otherwise, [each]) else helped for each in lost},
    }


_NO_MATHEMATICS = _Loss(
    "nothing", "it is no mathematics that math-verify reads", "write it in LaTeX or as a number"
)


def _are_unreadable(judge: Judge[Sample], targets: Sequence[str]) -> bool:
    return judge.judge(Sample(output="1", targets=targets)).reason == UNREADABLE_TARGET


def _of_regex(place: str, params: Params, targets: Sequence[str]) -> dict[str, _Loss]:
    judge = RegexJudge(**params)  # type: ignore[arg-type]
    loss = _Loss(
        "nothing",
        "its pattern has no group and is not compared with them, so every output that contains it is right",
        f"put a group or {{target}} into {place}.pattern to compare with the target",
    )
    try:
        return {target: loss for target in targets if judge.is_found_alone([target])}
    except (TimeoutError, MemoryError):
        return {}


def _lost(
    name: str, build: str, libraries: Sequence[str], targets: Sequence[str], **params: object
) -> dict[str, str]:
    """Targets that score 0 in a function that reads targets as outputs.

    The value of each target is the function's answer.
    """
    if not targets:
        return {}
    reading = library_judge(name, build, libraries, **params)
    verdicts = {target: reading.judge(Sample(output=target)) for target in targets}
    return {target: each.answer or "{}" for target, each in verdicts.items() if each.score == 0.0}


def _in_yaml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_READERS: Mapping[str, _Reader] = {
    "bleu": _by_sacrebleu(translation.BleuJudge.name),
    "choice": _of_rule("choice", "it is none of the options", "add it to {place}.options"),
    "f1": _of_f1,
    "math": _of_math,
    "numeric": _of_rule("numeric", "it contains no number", "choose exact or choice for such targets"),
    "regex": _of_regex,
    "rouge": _of_rouge,
    "similarity": _of_similarity,
    "squad": _of_squad,
    "ter": _by_sacrebleu(translation.TerJudge.name),
}

_ONE_IS_ENOUGH = ("choice", "numeric")
"""Judges for which only examples without any readable target are reported."""
