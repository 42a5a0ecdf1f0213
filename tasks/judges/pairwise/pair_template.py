"""Templates for the prompts of pair judges: built in, published, or the user's own.

A template may use these variables, or their names in published templates (`ALIASES`):

* question, answer_a, answer_b   the duel; answer_a is the answer shown first
* reference                      the example's targets, one per line; empty if it has no target
* reply_format                   instructions on the form of the reply that the judge reads (jinja2 only)
* boundary                       a mark that occurs in none of the texts, to delimit them (jinja2 only)
* metadata                       the example's other fields, as in `metadata.category` (jinja2 only)

Only in templates with a boundary, an output cannot imitate the end of its own quotation.

Published templates have `{question}` in single braces and are used unchanged. There are two kinds. The first
is for `str.format`: braces contain a variable, and literal braces are doubled. The second is filled by
searching for the variables, and all other braces are literal, as in a JSON example. A template that
`str.format` accepts is of the first kind, any other of the second. In both, a value is inserted once and not
interpreted: braces in an answer stay braces.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from string import Formatter

from winnow.storage.json_types import JsonView
from winnow.storage.plain_files import read_text
from winnow.storage.text import in_home
from winnow.tasks.data.sandboxed_templates import compile_template, render
from winnow.tasks.errors import JudgeError, TemplateError, unknown_name
from winnow.tasks.judges.asking.boundary import boundary
from winnow.tasks.judges.asking.calls import PresentationOrder
from winnow.tasks.judges.pairwise.verdicts import VerdictFormatName
from winnow.tasks.judges.protocol import Duel
from winnow.tasks.spec.judge_tree import names_file

BUILT_IN: Mapping[str, VerdictFormatName] = {"alpaca": "m/M", "arena-hard": "[[A>>B]]", "mt-bench": "[[A]]"}
"""Verdict format of each built-in template, by name."""

ALIASES = {
    "question": ("question", "instruction", "QUESTION"),
    "answer_a": ("answer_a", "output_1", "ANSWER_A"),
    "answer_b": ("answer_b", "output_2", "ANSWER_B"),
    "reference": ("reference", "ref_answer_1", "REFERENCE"),
}
REPLY_FORMAT = "reply_format"

_PATH = "judge.template"
_TEXTS = tuple(alias for aliases in ALIASES.values() for alias in aliases)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTemplate:
    """A checked template of a pair judge."""

    source: str
    """Text of the template, also if it was read from a file."""
    variables: frozenset[str]
    """Names of the variables that the template uses."""
    fill: Callable[[JsonView], str] = field(repr=False, compare=False)
    """Insert values for the variables; raises `TemplateError`."""

    def prompt(self, duel: Duel, presentation_order: PresentationOrder, reply_format: str) -> str:
        """Render the prompt of one judgment.

        Raises:
            TemplateError: If a value is missing or the prompt is longer than any context window.
        """
        answers = duel.answer_a, duel.answer_b
        first, second = answers if presentation_order == "original" else answers[::-1]
        reference = "\n".join(duel.targets)
        values = {"question": duel.question, "answer_a": first, "answer_b": second, "reference": reference}
        mark = boundary(values.values())
        named = {alias: values[name] for name, aliases in ALIASES.items() for alias in aliases}
        given = {"boundary": mark, REPLY_FORMAT: reply_format, "metadata": dict(duel.fields)}
        return self.fill({**named, **given})


def load_template(template: str) -> PairTemplate:
    """Load and check a template by name, file or text.

    Args:
        template: A key of `BUILT_IN`, a path that ends in .j2, .jinja, .jinja2 or .txt, or the text itself.

    Raises:
        JudgeError: If the name or file does not exist, or the template does not show both answers.
        TemplateError: If the template cannot be compiled or uses an unavailable variable.
    """
    source = _source(template)
    pair_template = _compiled(source)
    for answer in ("answer_a", "answer_b"):
        if not pair_template.variables & set(ALIASES[answer]):
            raise JudgeError(f"the template never shows {answer}; a judge must see both answers", _PATH)
    return pair_template


def _source(template: str) -> str:
    if template in BUILT_IN:
        folder = files("winnow.tasks.judges.pairwise") / "templates"
        return (folder / f"{template}.j2").read_text(encoding="utf-8")
    if names_file(template):
        try:
            return read_text(in_home(template))
        except (OSError, UnicodeDecodeError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            sentence = f"the file {template!r} cannot be read as text ({why}); give its path relative to"
            raise JudgeError(f"{sentence} {Path.cwd()}", _PATH) from error
    if "{" not in template:
        sentence = unknown_name("template", template, BUILT_IN)
        raise JudgeError(f"{sentence}; or name a file that ends in .j2, or write the template's text", _PATH)
    return template


def _compiled(source: str) -> PairTemplate:
    in_braces = variables_in_braces(source)
    if all(in_braces & set(ALIASES[answer]) for answer in ("answer_a", "answer_b")):
        braces = BracesTemplate(source, _TEXTS, _PATH)
        return PairTemplate(source=source, variables=in_braces, fill=braces.render)
    jinja = compile_template(source, (*_TEXTS, "boundary", REPLY_FORMAT, "metadata"), _PATH)
    return PairTemplate(
        source=source,
        variables=jinja.variables,
        fill=lambda values: render(jinja, {name: values[name] for name in jinja.variables}),
    )


_VARIABLE = re.compile(r"\{(\w+)\}")
_VARIABLE_OR_DOUBLED = re.compile(r"\{\{|\}\}|\{(\w+)\}")


def variables_in_braces(source: str) -> frozenset[str]:
    """Names of all variables in single braces."""
    return frozenset(re.findall(r"(?<!\{)\{(\w+)\}(?!\})", source))


class BracesTemplate:
    """A template with variables in single braces.

    Args:
        source: The template's text.
        allowed: The available variables.
        path: The template's key in the spec.

    Raises:
        TemplateError: If `str.format` accepts the template and it uses a variable that is not allowed.
    """

    def __init__(self, source: str, allowed: Collection[str], path: str) -> None:
        is_format_string = _is_format_string(source)
        for name in sorted(variables_in_braces(source) - set(allowed)):
            if is_format_string:
                raise TemplateError(unknown_name("variable", name, allowed), path)
        self._source = source
        self._pattern = _VARIABLE_OR_DOUBLED if is_format_string else _VARIABLE

    def render(self, values: Mapping[str, str]) -> str:
        """Render the template with these values; each is inserted once, uninterpreted."""
        return self._pattern.sub(
            lambda match: values.get(match.group(1), match.group()) if match.group(1) else match.group()[0],
            self._source,
        )


def _is_format_string(source: str) -> bool:
    """Whether `str.format` accepts a text: balanced braces that hold only plain names."""
    try:
        parts = list(Formatter().parse(source))
    except ValueError:
        return False
    return all(
        name is None or (name.isidentifier() and not specification and conversion is None)
        for _, name, specification, conversion in parts
    )
