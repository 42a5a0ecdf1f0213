"""Prompts for models: a text or chat messages, with or without solved examples."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from winnow.tasks.spec.sections.dataset import SolvedSpec
from winnow.tasks.spec.spec_model import SpecModel
from winnow.tasks.spec.stored_spec import LONGEST_NAME


def _name(value: str) -> str:
    if NAME.fullmatch(value):
        return value
    if not value:
        raise ValueError("must not be empty")
    if len(value) > LONGEST_NAME:
        raise ValueError(f"is longer than {LONGEST_NAME} characters; shorten it")
    plain = re.sub(r"[^A-Za-z0-9._]+", "-", value).strip("-._")
    instead = f"; write {plain}" if plain else ""
    raise ValueError(
        f"may hold letters (a to z), digits, '.', '_' and '-', and no '.', '_' or '-' first{instead}"
    )


NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}")

Name = Annotated[str, AfterValidator(_name), Field(json_schema_extra={"pattern": f"^{NAME.pattern}$"})]
"""Letters, digits, '.', '_' and '-', so that a name is safe in file names, URLs and tables."""


class MessageSpec(SpecModel):
    """A chat message, or the position of the messages that an example contains."""

    role: Literal["system", "user", "assistant"] | None = None
    content: str | None = None
    """A jinja2 template over the fields of an example."""
    turns: str | None = Field(default=None, min_length=1)
    """Instead of role and content: field of an example with a list of {role, content}, which is inserted here
    unchanged.
    """

    @model_validator(mode="after")
    def _is_one_of_the_two(self) -> Self:
        if self.turns is None and None in (self.role, self.content):
            raise ValueError("a message needs role and content, or turns instead of both")
        if self.turns is not None and (self.role, self.content) != (None, None):
            raise ValueError("turns already contain roles and contents; remove role and content")
        return self


def _source(value: object) -> object:
    """Convert files to a mapping, so that each error names the key at fault."""
    if isinstance(value, str | list):
        return {"path": value}
    if value is None or isinstance(value, Mapping | SolvedSpec):
        return value
    raise ValueError("must be a file, a list of files, or the keys of a dataset")


Source = Annotated[
    SolvedSpec | None,
    BeforeValidator(_source, json_schema_input_type=SolvedSpec | str | list[str] | None),
]


class FewShotSpec(SpecModel):
    """Solved examples shown to a model before the question."""

    model_config = ConfigDict(serialize_by_alias=True)

    n: int = Field(ge=1, le=1000)
    source: Source = Field(default=None, alias="from")
    """Files, or the keys of a dataset; None is the campaign's own dataset.
    An example is never shown as a solved example of itself.
    """
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Seed for drawing the solved examples, once for all examples."""
    fewshot_as_multiturn: bool = False
    """For chat models: whether each solved example is a user turn and an assistant turn instead of text."""
    question: str | None = Field(default=None, min_length=1)
    """jinja2 template over the fields of a solved example; None is the template of the prompt."""
    answer: str = Field(default="{{ target }}", min_length=1)
    """jinja2 template of a solved example's answer; `target` is its first accepted target."""
    target_delimiter: str = " "
    """In text prompts: text between question and answer."""
    delimiter: str = "\n\n"
    """In text prompts: text after each solved example."""


class PromptSpec(SpecModel):
    """A prompt; each of its texts is a jinja2 template over an example's fields."""

    name: Name
    template: str | None = Field(default=None, min_length=1)
    """The whole prompt; for a chat model, the user message."""
    system: str | None = Field(default=None, min_length=1)
    """For chat models: the system message before `template`."""
    messages: list[MessageSpec] | None = Field(default=None, min_length=1)
    """For chat models: the whole chat, instead of `template` and `system`.
    If the last message is the assistant's, the model continues it.
    """
    few_shot: FewShotSpec | None = None
    """Solved examples to show before the question; None shows no solved examples."""

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        if (self.template is None) == (self.messages is None):
            raise ValueError("give exactly one of template (a text) and messages (a chat)")
        if self.messages is None:
            return self
        if self.system is not None:
            raise ValueError(
                "system is only for template; move it to the first of messages, with role: system"
            )
        roles = [message.role for message in self.messages]
        if "system" in roles[1:]:
            raise ValueError("a system message can only be the first of messages; move it there")
        if not {"user", None} & set(roles):
            raise ValueError("messages have no message of role user; add one, or turns that contain one")
        if self.few_shot is not None and self.few_shot.question is None and self.question is None:
            raise ValueError(
                "few_shot has no question: the last user message comes from the example; add "
                "few_shot.question"
            )
        return self

    @property
    def question(self) -> str | None:
        """The template of the user's last message; None if an example contains it."""
        if self.messages is None:
            return self.template
        return next((each.content for each in reversed(self.messages) if each.role in ("user", None)), None)
