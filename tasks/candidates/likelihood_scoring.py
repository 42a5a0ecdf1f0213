"""Prompt for one example, and the texts whose likelihood after it is scored, if any."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from winnow.storage.json_types import JsonView
from winnow.tasks.data.images import DETAILS
from winnow.tasks.data.sandboxed_templates import Template, compile_template, render
from winnow.tasks.dotted_names import column_of, value_of
from winnow.tasks.engines.chat import Prompt, is_continued, words_of
from winnow.tasks.engines.images import Image, Place
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.errors import TemplateError, unknown_name
from winnow.tasks.spec.campaign import ChoicesSpec, OutputType

FIELD = "choices.field"

NO_PLACES: Mapping[str, Place] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Prompt for a model about one example, and the texts to score after it, if any."""

    prompt: Prompt
    continuations: tuple[str, ...] = ()
    """Texts scored after the prompt, one for each of `texts`; empty if the model generates."""
    texts: tuple[str, ...] = ()
    """Texts that identify the continuations for judges."""
    is_greedy: bool = False
    """Whether to report as well whether greedy decoding would give the single continuation."""
    images: tuple[Image, ...] = ()
    """Images shown with the prompt."""


class Weighing(Protocol):
    """Interface of a method that creates the continuations to score for an example."""

    @property
    def variables(self) -> frozenset[str]:
        """Fields that the continuations need in every example, besides those of the prompt."""
        ...

    def asked(self, model: ModelRef, prompt: Prompt, fields: Mapping[str, object], key: str) -> Asked:
        """Prompt and continuations to send to a model; raises `TemplateError`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WholePrompt:
    """Score the prompt itself, after an empty prompt."""

    variables: frozenset[str] = frozenset()

    def asked(self, model: ModelRef, prompt: Prompt, fields: Mapping[str, object], key: str) -> Asked:
        """See `Weighing`."""
        if not isinstance(prompt, str):
            raise TemplateError(f"example {key!r}: messages have no perplexity; use one text as the prompt")
        if not prompt or "\0" in prompt:
            raise TemplateError(f"example {key!r}: an empty text, or one with NUL, cannot be scored")
        return Asked(prompt="", continuations=(prompt,), texts=(prompt,))


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTargets:
    """Score the first target of an example, and compare it with greedy decoding's output."""

    targets: Mapping[str, Sequence[str]]
    """Accepted answers, by the key of an example."""
    delimiter: str | None
    variables: frozenset[str] = frozenset()

    def of(self, key: str) -> str:
        """Target of one example; raises `TemplateError` if it has no target that can be scored."""
        target = next(iter(self.targets.get(key, ())), "")
        if not target or "\0" in target:
            raise TemplateError(
                f"example {key!r} has no target to score: it is missing, empty or contains NUL; correct "
                "it, or exclude such examples by dataset.filter: target",
                "dataset.fields.target",
            )
        return target

    def asked(self, model: ModelRef, prompt: Prompt, fields: Mapping[str, object], key: str) -> Asked:
        """See `Weighing`."""
        between = _space(model, prompt) if self.delimiter is None else self.delimiter
        target = self.of(key)
        return Asked(prompt=prompt, continuations=(f"{between}{target}",), texts=(target,), is_greedy=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Score the choices of an example; see `ChoicesSpec`."""

    field: str | None
    column: str | None
    """Column of the dataset that holds the field."""
    templates: tuple[Template, ...]
    delimiter: str | None

    @property
    def variables(self) -> frozenset[str]:
        """See `Weighing`."""
        if self.field is not None:
            return frozenset({str(self.column)})
        return frozenset().union(*(each.variables for each in self.templates))

    def of(self, fields: Mapping[str, object], key: str) -> tuple[str, ...]:
        """Choices of one example, at least two, all non-empty; raises `TemplateError`."""
        found = (
            tuple(render(each, fields, key) for each in self.templates)
            if self.field is None
            else _listed(self.field, fields, key)
        )
        if len(found) < 2:
            raise TemplateError(f"example {key!r} has {len(found)} choices; it needs two or more", FIELD)
        if any(not each or "\0" in each for each in found):
            raise TemplateError(
                f"example {key!r} has a choice that is empty or contains the character NUL; change it", FIELD
            )
        return found

    def asked(self, model: ModelRef, prompt: Prompt, fields: Mapping[str, object], key: str) -> Asked:
        """See `Weighing`."""
        between = _space(model, prompt) if self.delimiter is None else self.delimiter
        texts = self.of(fields, key)
        return Asked(prompt=prompt, continuations=tuple(f"{between}{each}" for each in texts), texts=texts)


class Prompted(Protocol):
    """Interface of a model with a prompt for every example, such as a candidate."""

    @property
    def model(self) -> ModelRef:
        """The model."""
        ...

    def prompt(self, fields: Mapping[str, object], key: str) -> Prompt:
        """Render the prompt for one example; raises `TemplateError`."""
        ...


def asked_of(
    candidate: Prompted,
    weighing: Weighing | None,
    fields: JsonView,
    key: str,
    places: Mapping[str, Place] = NO_PLACES,
) -> Asked:
    """Prompt, images and continuations of a candidate for an example.

    Args:
        candidate: The candidate.
        weighing: The method of making continuations; None if the model generates.
        fields: The example's.
        key: The example's.
        places: Where the bytes of images are, see `Dataset.images`; needed if a request is sent.

    Raises:
        TemplateError: If the prompt cannot be rendered, or the example has no text to score.
    """
    prompt = candidate.prompt(fields, key)
    if weighing is not None:
        return weighing.asked(candidate.model, prompt, fields, key)
    if not candidate.model.shows_images:
        return Asked(prompt=prompt)
    shown = tuple(Image.from_json(each, places) for each in fields.get(DETAILS, ()))
    return Asked(prompt=prompt, images=shown)


def weighing_of(
    output_type: OutputType,
    choices: ChoicesSpec | None,
    delimiter: str | None,
    fields: Collection[str],
    targets: Mapping[str, Sequence[str]],
) -> Weighing | None:
    """Method that creates continuations, from the keys of a spec; None if models generate."""
    if output_type == "perplexity":
        return WholePrompt()
    if output_type == "loglikelihood":
        return FirstTargets(targets=targets, delimiter=delimiter)
    return None if choices is None else compile_choices(choices, delimiter, fields)


def compile_choices(spec: ChoicesSpec, delimiter: str | None, fields: Collection[str]) -> Choices:
    """Compile the choices of a spec; raises `TemplateError`."""
    column = None if spec.field is None else column_of(spec.field, fields)
    if spec.field is not None and column is None:
        raise TemplateError(unknown_name("field", spec.field.partition(".")[0], sorted(fields)), FIELD)
    templates = [compile_template(each, fields, f"choices.texts[{i}]") for i, each in enumerate(spec.texts)]
    return Choices(field=spec.field, column=column, templates=tuple(templates), delimiter=delimiter)


def _space(model: ModelRef, prompt: Prompt) -> str:
    """Text between prompt and choice if the spec sets no delimiter."""
    if not model.chat:
        return " "
    # A chat template ends with the text before an answer; an assistant's open message does not.
    is_open = is_continued(prompt) and not words_of(prompt)[-1:].isspace()
    return " " if is_open else ""


def _listed(field: str, fields: Mapping[str, object], key: str) -> tuple[str, ...]:
    found = value_of(fields, field)
    if not isinstance(found, list) or not all(_is_text(each) for each in found):
        raise TemplateError(f"example {key!r}: {field} is not a list of texts; write a list", FIELD)
    return tuple(str(each) for each in found)


def _is_text(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
