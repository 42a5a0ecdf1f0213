"""Prompts: render a prompt of the spec and an example's fields to a text or messages."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Self, cast, get_args

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.candidates.few_shot import FewShot, last_of_user
from winnow.tasks.data.sandboxed_templates import Template, compile_template, render
from winnow.tasks.dotted_names import column_of, value_of
from winnow.tasks.engines.chat import Message, Prompt, Role
from winnow.tasks.errors import SpecError, TemplateError, unknown_name
from winnow.tasks.spec.sections.prompts import MessageSpec, PromptSpec
from winnow.tasks.text.canonical_json import canonical_json

GUARDED = "prompt"
"""Variable for the prompt in the template of a guardrail."""

ROLES = get_args(Role)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a prompt: its role and the template of its content."""

    role: Role
    content: Template


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTurns:
    """Position at which an example's own messages are inserted."""

    field: str
    variables: frozenset[str]
    """Column that holds the field, as the only element."""
    path: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTemplate:
    """A checked and compiled prompt."""

    turns: tuple[Turn | OwnTurns, ...]
    is_chat: bool
    """Whether the prompt is for chat models only; otherwise it is the text of its only turn."""
    few_shot: FewShot | None = None
    """Solved examples shown before the question; None if the prompt has none."""

    @classmethod
    def compile(
        cls,
        spec: PromptSpec,
        fields: Collection[str],
        path: str | None = None,
        few_shot: FewShot | None = None,
    ) -> Self:
        """Check and compile a prompt.

        Args:
            spec: The prompt as in the file.
            fields: Names of the example fields available to templates.
            path: The prompt's key in the spec, such as "prompts[0]".
            few_shot: The prompt's solved examples, if it has any.

        Raises:
            TemplateError: If a template of the prompt is refused.
            SpecError: If the prompt names a field that examples lack.
        """
        where = "" if path is None else f"{path}."
        if spec.messages is not None:
            places = [f"{where}messages[{number}]" for number in range(len(spec.messages))]
            turns = [_turn(each, fields, place) for each, place in zip(spec.messages, places, strict=True)]
            return cls(turns=tuple(turns), is_chat=True, few_shot=few_shot)
        named: list[tuple[Role, str, str | None]] = [
            ("system", "system", spec.system),
            ("user", "template", spec.template),
        ]
        texts = [(role, key, source) for role, key, source in named if source is not None]
        return cls(
            turns=tuple(
                Turn(role=role, content=compile_template(source, fields, f"{where}{key}"))
                for role, key, source in texts
            ),
            is_chat=spec.system is not None or (few_shot is not None and few_shot.as_multiturn),
            few_shot=few_shot,
        )

    @classmethod
    def from_record(cls, record: JsonView, fields: Collection[str]) -> Self:
        """Read a record that `as_record` wrote.

        Raises:
            ValueError: If the record was not written by `as_record`; also raises like `compile`.
        """
        prompt = dict(record)
        shots = prompt.pop("few_shot", None)
        few_shot = None if shots is None else FewShot.from_record(shots, fields)
        return cls.compile(PromptSpec.model_validate(prompt), fields, few_shot=few_shot)

    @property
    def variables(self) -> frozenset[str]:
        """Fields of an example that the prompt uses; all of them are required."""
        shown = frozenset[str]() if self.few_shot is None else self.few_shot.variables
        used = [
            each.variables if isinstance(each, OwnTurns) else each.content.variables for each in self.turns
        ]
        return shown.union(*used)

    @property
    def is_continued(self) -> bool:
        """Whether the prompt ends with the beginning of the assistant's message."""
        last = self.turns[-1]
        return isinstance(last, Turn) and last.role == "assistant"

    def render(self, fields: JsonView, key: str, guardrail: Template | None = None) -> Prompt:
        """Render the prompt for one example.

        Args:
            fields: Fields of the example.
            key: Key of the example, for errors.
            guardrail: Template around the prompt; for a chat, around the last user message.

        Raises:
            TemplateError: If the prompt cannot be rendered.
        """
        first = self.turns[0]
        if not self.is_chat and self.few_shot is None and guardrail is None and isinstance(first, Turn):
            return render(first.content, fields, key)  # the usual case
        messages = [each for turn in self.turns for each in _rendered(turn, fields, key)]
        if self.few_shot is not None:
            messages = self.few_shot.before(messages, fields, key)
        last = last_of_user(messages, key)
        if guardrail is not None:
            messages[last] = Message("user", render(guardrail, {GUARDED: messages[last].content}, key))
        if isinstance(self.turns[-1], OwnTurns) and messages[-1].role == "assistant":
            raise TemplateError(
                f"example {key!r}: its turns end with the assistant, so no question is left to answer; end "
                "them with the user",
                self.turns[-1].path,
            )
        return tuple(messages) if self.is_chat else messages[0].content


class WholeExample(PromptTemplate):
    """Input of an agent: the fields of the example, and the prompt about it if it has one."""

    __slots__ = ()

    @classmethod
    def around(cls, prompt: PromptTemplate | None) -> Self:
        """Create the input with a prompt, or without one."""
        if prompt is None:
            return cls(turns=(), is_chat=False)
        return cls(turns=prompt.turns, is_chat=prompt.is_chat, few_shot=prompt.few_shot)

    @property
    def is_continued(self) -> bool:
        """See `PromptTemplate`; False, because an agent receives the messages unchanged."""
        return False

    def render(self, fields: JsonView, key: str, guardrail: Template | None = None) -> Prompt:
        """Render the prompt, and write it with the example as JSON; see `PromptTemplate`."""
        if not self.turns:
            return canonical_json({"example": fields})
        prompt = PromptTemplate.render(self, fields, key, guardrail)
        told = prompt if isinstance(prompt, str) else [each._asdict() for each in prompt]
        return canonical_json({"example": fields, "prompt": told})


def as_record(spec: PromptSpec, few_shot: FewShot | None) -> JsonObject:
    """A prompt as stored in the database, including the solved examples themselves."""
    record = spec.model_dump(mode="json", exclude_none=True, exclude={"few_shot"})
    return record if few_shot is None else {**record, "few_shot": few_shot.as_record()}


def _turn(spec: MessageSpec, fields: Collection[str], place: str) -> Turn | OwnTurns:
    if spec.turns is not None:
        if (column := column_of(spec.turns, fields)) is None:
            raise SpecError(unknown_name("field", spec.turns, fields), path=f"{place}.turns")
        return OwnTurns(field=spec.turns, variables=frozenset({column}), path=f"{place}.turns")
    assert spec.role is not None
    assert spec.content is not None
    return Turn(role=spec.role, content=compile_template(spec.content, fields, f"{place}.content"))


def _rendered(turn: Turn | OwnTurns, fields: JsonView, key: str) -> Iterator[Message]:
    if isinstance(turn, Turn):
        yield Message(turn.role, render(turn.content, fields, key))
        return
    given = value_of(fields, turn.field)
    for each in given if isinstance(given, list) else [given]:
        role, content = (each.get("role"), each.get("content")) if isinstance(each, dict) else (None, None)
        if role not in ROLES or not isinstance(content, str):
            raise TemplateError(
                f"example {key!r}: the field {turn.field!r} is not a list of messages; each needs a role "
                f"({', '.join(ROLES)}) and a text as content",
                turn.path,
            )
        yield Message(cast("Role", role), content)
