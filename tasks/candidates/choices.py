"""The choices of an example: what a model weighs, where it is not to write a text."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from winnow.tasks.candidates.templates import Template, compile_template, render
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.errors import TemplateError
from winnow.tasks.spec.campaign import ChoicesSpec
from winnow.tasks.spec.suggestions import unknown_name

FIELD = "choices.field"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Where the choices of an example come from; see `ChoicesSpec`."""

    field: str | None
    texts: tuple[Template, ...]
    delimiter: str | None

    @property
    def variables(self) -> frozenset[str]:
        """The fields that every example must have for it."""
        if self.field is not None:
            return frozenset({self.field.partition(".")[0]})
        return frozenset().union(*(each.variables for each in self.texts))

    def of(self, fields: Mapping[str, Any], key: str) -> tuple[str, ...]:
        """The choices of one example, two or more, none empty; raises `TemplateError`."""
        found = (
            tuple(render(each, fields, key) for each in self.texts)
            if self.field is None
            else _listed(self.field, fields, key)
        )
        if len(found) < 2:
            raise TemplateError(f"example {key!r} has {len(found)} choices; give it two or more", FIELD)
        if any(not each or "\0" in each for each in found):
            raise TemplateError(
                f"example {key!r} has a choice that is empty or holds the character NUL; change it", FIELD
            )
        return found


def compile_choices(spec: ChoicesSpec, delimiter: str | None, fields: Collection[str]) -> Choices:
    """The choices as the spec has them.

    Args:
        spec: As written.
        delimiter: What stands between prompt and choice; None leaves it to each model.
        fields: What every example has.

    Raises:
        TemplateError: If a template is refused, or there is no such field.
    """
    if spec.field is not None and spec.field.partition(".")[0] not in fields:
        raise TemplateError(unknown_name("field", spec.field.partition(".")[0], sorted(fields)), FIELD)
    texts = [compile_template(each, fields, f"choices.texts[{i}]") for i, each in enumerate(spec.texts)]
    return Choices(field=spec.field, texts=tuple(texts), delimiter=delimiter)


def continuations_of(
    choices: Choices | None, model: ModelRef, fields: Mapping[str, Any], key: str
) -> tuple[str, ...]:
    """What a model weighs after the prompt of an example, one for each choice; none where it writes a text.

    Raises:
        TemplateError: If the example has no choices.
    """
    if choices is None:
        return ()
    between = choices.delimiter
    if between is None:  # a chat template ends its prompt in whatever comes before an answer
        between = "" if model.chat else " "
    return tuple(f"{between}{each}" for each in choices.of(fields, key))


def _listed(field: str, fields: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found: object = fields
    for part in field.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    if not isinstance(found, list) or not all(_is_text(each) for each in found):
        raise TemplateError(f"example {key!r}: {field} is no list of texts; give it one", FIELD)
    return tuple(str(each) for each in found)


def _is_text(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
