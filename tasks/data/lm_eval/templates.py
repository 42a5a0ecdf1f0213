"""The templates of tasks: jinja2 as lm-eval has it, in a sandbox, and bounded in time and length.

They are looser than a campaign's own (`tasks.candidates.templates`): they may assign and define, and a null
is printed as "None". They cannot reach beyond a document's fields.
"""

from functools import lru_cache

import jinja2
import regex

from winnow.storage.json_types import JsonView
from winnow.tasks.candidates.templates import Template, counted_environment, counted_template, render
from winnow.tasks.errors import TemplateError
from winnow.tasks.judges.rules.patterns import TIMEOUT_SECONDS, compiled

KEY = "dataset.lm_eval"


def _regex_replace(text: str, pattern: str, replacement: str, count: int = 0) -> str:
    replaced: str = compiled(pattern).sub(replacement, text, count=count, timeout=TIMEOUT_SECONDS)
    return replaced


_ENVIRONMENT = counted_environment({"regex_replace": _regex_replace})


@lru_cache(maxsize=256)
def _compiled(source: str) -> Template:
    try:
        return counted_template(_ENVIRONMENT, source, KEY)
    except (jinja2.TemplateError, regex.error, RecursionError) as error:
        raise TemplateError(f"the template {source[:80]!r}: {error}", KEY) from error


def apply_template(source: str, document: JsonView, place: str) -> str:
    """The text that a template of a task comes to for a document.

    Raises:
        TemplateError: If it fails, is too long or takes too long; it begins with `place`.
    """
    try:
        return render(_compiled(source), document)
    except TemplateError as error:
        raise TemplateError(f"{place}: {error.message}", KEY) from error
