r"""Parts of a campaign's file that are valid but probably unintended.

* A prompt that is the same for every example: `{input}` instead of `{{ input }}`.
* `'\n'` in single quotes, which is a backslash and an n.
* Targets that are compared as text in an unusual spelling, such as 5.0.
* Targets that are lists of answers written as one text, such as ["x", "y"] in a cell.
* Examples in clusters, of one document or conversation, that `dataset.cluster` does not name.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from winnow.storage.json_types import JsonView
from winnow.storage.objectives import traits_of
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.candidates.candidates import Candidate
from winnow.tasks.data.datasets import Dataset, Example
from winnow.tasks.data.sandboxed_templates import compile_template
from winnow.tasks.dotted_names import column_of
from winnow.tasks.engines.chat import Prompt
from winnow.tasks.errors import TemplateError
from winnow.tasks.judges.target_forms import other_forms, use_of
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.sections.prompts import PromptSpec

MOST_RENDERED = 20_000
"""Maximum number of examples for which a prompt is rendered."""

MOST_SHOWN = 60
"""Maximum length of a quoted text, in characters."""


class LikelyMistake(NamedTuple):
    """A key of the file, the suspected mistake, and the likely correction."""

    path: str
    sentence: str


def likely_mistakes(checked: ResolvedCampaign) -> Iterator[LikelyMistake]:
    """Yield the suspected mistakes of a campaign's file, in the order of its keys."""
    yield from _prompts(checked)
    yield from _other_templates(checked)
    yield from _line_breaks(checked.spec)
    yield from _targets(checked)
    yield from _lists_as_text(checked)
    yield from _clusters(checked)


def unchanging_prompts(checked: ResolvedCampaign) -> Iterator[LikelyMistake]:
    """Yield prompts that probably lack fields of the example, so outputs are useless."""
    yield from _prompts(checked)


_NAME = r"\s*([A-Za-z_][\w.]*)\s*"

_AS_A_FIELD = re.compile(rf"[$#]\{{{_NAME}\}}|(?<![{{}}$#\\\w])\{{{_NAME}\}}(?!\}})|%\({_NAME}\)s")
"""Matches a field in the syntax of other template languages: ${name}, #{name}, {name}, %(name)s."""

_MAYBE_A_FIELD = re.compile(
    rf"<{_NAME}>|\[\[?{_NAME}\]\]?|\$([A-Za-z_]\w*)|\{{\{{\s*['\"]{_NAME}['\"]\s*\}}\}}"
)
"""Matches what may be a field in a prompt without fields: <name>, [name], [[name]], $name, {{ 'name' }}."""

_NO_NAME = re.compile(r"\{\d*\}|%s")

_IN_BRACES = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
"""Matches the parts of a template that jinja2 interprets; the rest is printed unchanged."""


def _prompts(checked: ResolvedCampaign) -> Iterator[LikelyMistake]:
    of_prompts = {each.names.prompt: each for each in reversed(checked.candidates)}
    for index, prompt in enumerate(checked.spec.prompts):
        candidate = of_prompts.get(prompt.name)
        if candidate is None:
            continue
        places = list(_templates(prompt, f"prompts[{index}]")) or [(f"prompts[{index}]", "")]
        if checked.spec.output_type == "generate" and _never_changes(candidate, checked.dataset):
            yield _same_for_all(prompt.name, candidate, places, checked.dataset)
            continue
        for path, source in places:
            for spelled, name in _fields_as_text(source, _AS_A_FIELD):
                if column_of(name, checked.dataset.field_names) is not None:
                    yield LikelyMistake(
                        path,
                        f"prompt '{prompt.name}' shows {spelled} as literal text, not as a field; write "
                        f"{{{{ {name} }}}}",
                    )


def _templates(prompt: PromptSpec, path: str) -> Iterator[tuple[str, str]]:
    """Yield the templates of a prompt for the example itself, with their keys."""
    for key in ("system", "template"):
        if (source := getattr(prompt, key)) is not None:
            yield f"{path}.{key}", source
    for number, message in enumerate(prompt.messages or ()):
        if message.content is not None:
            yield f"{path}.messages[{number}].content", message.content


def _never_changes(candidate: Candidate, dataset: Dataset) -> bool:
    """Whether different examples get the same prompt, apart from solved examples."""
    if candidate.model.shows_images:
        return False
    template = replace(candidate.template, few_shot=None)
    first: Prompt | None = None
    asked: Example | None = None
    differ = False
    for example in islice(dataset.examples, MOST_RENDERED):
        try:
            prompt = template.render(example.fields, example.key)
        except TemplateError:  # reported elsewhere
            return False
        if asked is None:
            first, asked = prompt, example
        elif prompt != first:
            return False
        differ = differ or example.question != asked.question
    return differ


def _same_for_all(
    name: str, candidate: Candidate, places: Sequence[tuple[str, str]], dataset: Dataset
) -> LikelyMistake:
    for path, source in places:
        if (spelled := _spelled(source, dataset)) is not None:
            return LikelyMistake(path, _same(name, spelled))
    shown = sorted(candidate.template.variables & set(dataset.field_names))
    why = (
        f"{' and '.join(shown)} never changes; show another field, such as"
        if shown
        else "it shows no field of the example; show the question, such as"
    )
    return LikelyMistake(places[-1][0], _same(name, f"{why} {{{{ input }}}}"))


def _spelled(source: str, dataset: Dataset) -> str | None:
    """Clause on a field that a template prints as literal text, with a correction.

    None without such a field.
    """
    known = {each.casefold(): each for each in dataset.field_names}
    for pattern in (_AS_A_FIELD, _MAYBE_A_FIELD):
        for spelled, field in _fields_as_text(source, pattern):
            guess = "input" if pattern is _AS_A_FIELD else None
            if (meant := known.get(field.casefold(), guess)) is not None:
                return f"it shows {spelled} as literal text; write {{{{ {meant} }}}}"
    if found := _NO_NAME.search(_IN_BRACES.sub("", source)):
        return f"it shows {found[0]} as literal text; write {{{{ input }}}}"
    return None


def _other_templates(checked: ResolvedCampaign) -> Iterator[LikelyMistake]:
    """Yield templates other than prompts that should show the example, but do not."""
    spec = checked.spec
    templates = {"embedder.text": spec.embedder.text} if traits_of(spec.objective).is_stream else {}
    if spec.certify is not None and spec.certify.autoevaluator is not None:
        templates["certify.autoevaluator.prompt"] = spec.certify.autoevaluator.prompt
    for path, source in templates.items():
        if not compile_template(source, None).variables:
            why = _spelled(source, checked.dataset) or "it shows no field of the example; write {{ input }}"
            yield LikelyMistake(path, f"the template is the same for every example: {why}")


def _same(name: str, why: str) -> str:
    return f"prompt '{name}' is the same for every example: {why}"


def _fields_as_text(source: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield the names that a template prints as literal text, as spelled and plain."""
    text = source if pattern is _MAYBE_A_FIELD else _IN_BRACES.sub(" ", source)
    for found in pattern.finditer(text):
        yield found[0], next(each for each in found.groups() if each is not None)


_BREAK = re.compile(r"\\[ntr]")
_BREAK_IN_TEXT = re.compile(r"\\(?:n[a-z]*|[tr](?![a-z]))")

_COMMANDS = """
    nabla natural ncong ne nearrow neg neq newcommand newenvironment newline newpage nexists ngeq ngtr ni
    nleftarrow nleq nless nmid nobreak nocite node noindent nolimits nonumber normalsize not notag notin
    nparallel nprec nrightarrow nsim nsubseteq nsucc nu null nwarrow
"""
_LATEX = frozenset(_COMMANDS.split())
"""LaTeX commands that begin with n."""


def _line_breaks(spec: CampaignSpec) -> Iterator[LikelyMistake]:
    for path, text in _delimiters(spec):
        if _BREAK.search(text):
            yield _literal(path, text, _BREAK)
    for path, source in _all_templates(spec):
        text = _IN_BRACES.sub(" ", source)
        found = [each for each in _BREAK_IN_TEXT.finditer(text) if each[0][1:] not in _LATEX]
        if found:
            shown = f"contains a backslash and {_letter(found[0][0])} instead of a {_meant(found[0][0])}"
            yield LikelyMistake(
                path, f"{shown}: put the text in double quotes, or write it in lines after a |"
            )


def _delimiters(spec: CampaignSpec) -> Iterator[tuple[str, str]]:
    """Yield the texts that separate or end other texts, with their keys."""
    settings = [
        (f"models[{at}].generate_config", each.generate_config) for at, each in enumerate(spec.models)
    ]
    settings += [(f"generate_configs[{at}]", each) for at, each in enumerate(spec.generate_configs)]
    for path, config in settings:
        yield from ((f"{path}.stop_seqs[{at}]", each) for at, each in enumerate(config.stop_seqs))
    if spec.target_delimiter is not None:
        yield "target_delimiter", spec.target_delimiter
    for at, prompt in enumerate(spec.prompts):
        if prompt.few_shot is not None:
            for key in ("target_delimiter", "delimiter"):
                yield f"prompts[{at}].few_shot.{key}", getattr(prompt.few_shot, key)


def _all_templates(spec: CampaignSpec) -> Iterator[tuple[str, str]]:
    for at, prompt in enumerate(spec.prompts):
        yield from _templates(prompt, f"prompts[{at}]")
        if prompt.few_shot is not None:
            for key in ("question", "answer"):
                if (source := getattr(prompt.few_shot, key)) is not None:
                    yield f"prompts[{at}].few_shot.{key}", source
    for at, guardrail in enumerate(spec.guardrails):
        yield f"guardrails[{at}].template", guardrail.template
    if spec.certify is not None and spec.certify.autoevaluator is not None:
        yield "certify.autoevaluator.prompt", spec.certify.autoevaluator.prompt


def _literal(path: str, text: str, pattern: re.Pattern[str]) -> LikelyMistake:
    meant = pattern.sub(lambda found: {"n": "\n", "t": "\t", "r": "\r"}[found[0][1]], text)
    return LikelyMistake(
        path,
        f"'{text[:MOST_SHOWN]}' contains a backslash and {_letter(pattern.findall(text)[0])}, which single "
        f"quotes keep: write {json.dumps(meant[:MOST_SHOWN], ensure_ascii=False)} in double quotes",
    )


def _letter(escape: str) -> str:
    return {"n": "an n", "t": "a t", "r": "an r"}[escape[1]]


def _meant(escape: str) -> str:
    return "tab" if escape[1] == "t" else "line break"


AS_TEXT = ("choice", "contains", "exact", "exact_match", "f1", "inspect", "normalised", "regex", "squad")
"""Judges that compare an output with targets as text."""


def _targets(checked: ResolvedCampaign) -> Iterator[LikelyMistake]:
    spec, examples = checked.spec, checked.dataset.examples
    spelled = [target for each in examples for target in each.targets if other_forms(target)]
    judges = [part for part in _judges(spec) if part["type"] in AS_TEXT]
    if not (spelled and judges):
        return
    judge, (form, *_) = judges[0]["type"], other_forms(spelled[0])
    those = "a target is" if len(spelled) == 1 else f"{len(spelled)} targets are"
    counts = f"{form} counts as right, too; if it is wrong, write the targets as answers should be"
    if use_of(judge, judges[0]) == "never":
        counts = f"judge {judge} counts {form} as wrong; write the targets as answers should be"
    yield LikelyMistake(
        "dataset.fields.target", f"{those} spelled as no model would answer, such as {spelled[0]}: {counts}"
    )


_LIST_AS_TEXT = re.compile(
    r"""\s*(?:\[\s*(?P<quote>['"]).*(?P=quote)\s*,?\s*\]|(?:array\(\[|\{)\s*'.*[\])}])\s*""", re.DOTALL
)
"""Matches a list of texts as JSON, Python or numpy write it, or an object as Python writes it."""


def _lists_as_text(checked: ResolvedCampaign) -> Iterator[LikelyMistake]:
    """Yield targets that are a list written as one text, which equals no output."""
    targets = [target for each in checked.dataset.examples for target in each.targets]
    written = [each for each in targets if _LIST_AS_TEXT.fullmatch(each)]
    if written and any(part["type"] in AS_TEXT for part in _judges(checked.spec)):
        those = "a target is" if len(written) == 1 else f"{len(written)} targets are"
        yield LikelyMistake(
            "dataset.fields.target",
            f"{those} a list or an object written as text, such as {written[0].strip()[:MOST_SHOWN]}, which "
            "is compared as a whole; if each of its parts is a right answer, save the data with lists, as "
            ".jsonl or .parquet",
        )


def _judges(spec: CampaignSpec) -> Iterable[JsonView]:
    """Judges of single outputs, nested ones included, with types and parameters."""
    return [each.params for each in spec.judge.tree().walk() if each.type is not None and not each.inner]


NAMES_A_SOURCE = re.compile(
    r"(?:.*[_. -])?(?:doc|document|context|passage|paragraph|article|story|conversation|dialog|dialogue"
    r"|thread|session|chapter|page|video|patient|parent|cluster)(?:[_. -]?(?:id|key|title|name|index))?",
    re.IGNORECASE,
)
"""Matches typical names of fields that identify an example's document or conversation."""

LONG = 200
"""Length, in characters, of a text that two independent examples never share."""

FEWEST, AT_ONCE = 5, 1.5
"""Minimum number of clusters, and of examples per cluster on average, at which a field is reported."""


def _clusters(checked: ResolvedCampaign) -> Iterator[LikelyMistake]:
    """Yield at most one warning: a field with clusters, or a common beginning of inputs."""
    spec = checked.spec
    if spec.dataset.cluster is not None or traits_of(spec.objective).is_stream:
        return
    examples = list(islice(checked.dataset.examples, MOST_RENDERED))
    remedy = (
        "if these were drawn together, keep one of each, because a certificate does not hold for clusters"
        if traits_of(spec.objective).measures_risk
        else "if these were drawn together, {}; otherwise intervals for new examples are too narrow"
    )
    used = {spec.prompt_type, *spec.tags, None if spec.groups is None else spec.groups.by}
    for name in sorted(set(examples[0].fields) - used - {"input"}):
        values = [each.fields.get(name) for each in examples]
        is_source = NAMES_A_SOURCE.fullmatch(name) is not None
        is_long = all(isinstance(value, str) and len(value) >= LONG for value in values)
        if (is_source or is_long) and (said := _alike(values)):
            named = f"set dataset.cluster: {name}"
            told = f"{said} share their {name} with another one: {remedy.format(named)}"
            yield LikelyMistake("dataset.cluster", told)
            return
    begins = [str(each.fields["input"])[:LONG] for each in examples]
    if said := _alike([text if len(text) == LONG else None for text in begins]):
        named = "name the field of their document in dataset.cluster"
        yield LikelyMistake(
            "dataset.cluster",
            f"{said} begin with the same {LONG} characters as another one: {remedy.format(named)}",
        )


def _alike(values: Sequence[object]) -> str | None:
    """The number of examples that share their value, in words.

    None if the values do not look like small clusters.
    """
    if not all(isinstance(value, str | int) for value in values):
        return None
    sizes = Counter(map(str, values)).values()
    if len(sizes) < FEWEST or len(values) < AT_ONCE * len(sizes) or max(sizes) > len(values) / 2:
        return None
    return f"{sum(size for size in sizes if size > 1):,} of {len(values):,} examples"
