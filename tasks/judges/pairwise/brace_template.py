"""Judge templates as others publish them, with `{question}` in single braces, used unchanged.

Two ways of writing them are in use. One is made for `str.format`: braces hold a variable, and are doubled
where a brace is meant. The other is filled in by searching for the variables; its other braces mean
themselves, as in a JSON example. A template that `str.format` would take is of the first kind, any other of
the second. In both, a value is put in once and not looked at again: braces in an answer stay braces.
"""

import re
from collections.abc import Collection, Mapping
from string import Formatter

from winnow.tasks.errors import TemplateError, unknown_name

_VARIABLE = re.compile(r"\{(\w+)\}")
_VARIABLE_OR_DOUBLED = re.compile(r"\{\{|\}\}|\{(\w+)\}")


def variables_in_braces(source: str) -> frozenset[str]:
    """All names in single braces."""
    return frozenset(re.findall(r"(?<!\{)\{(\w+)\}(?!\})", source))


class BracesTemplate:
    """A template with variables in single braces.

    Args:
        source: The template.
        allowed: The variables it will be given.
        path: The template's place in the spec.

    Raises:
        TemplateError: If `str.format` would take it and it uses a variable that is not allowed.
    """

    def __init__(self, source: str, allowed: Collection[str], path: str) -> None:
        is_format_string = _is_format_string(source)
        for name in sorted(variables_in_braces(source) - set(allowed)):
            if is_format_string:
                raise TemplateError(unknown_name("variable", name, allowed), path)
        self._source = source
        self._pattern = _VARIABLE_OR_DOUBLED if is_format_string else _VARIABLE

    def render(self, values: Mapping[str, str]) -> str:
        """The template with the values in place of its variables."""
        return self._pattern.sub(
            lambda match: values.get(match.group(1), match.group()) if match.group(1) else match.group()[0],
            self._source,
        )


def _is_format_string(source: str) -> bool:
    """Whether `str.format` would take it: balanced, and nothing but plain names in braces."""
    try:
        parts = list(Formatter().parse(source))
    except ValueError:
        return False
    return all(
        name is None or (name.isidentifier() and not specification and conversion is None)
        for _, name, specification, conversion in parts
    )
