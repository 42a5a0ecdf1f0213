"""Few-shot examples shown to a model before the question, drawn once for a whole campaign."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from winnow.storage.json_types import JsonObject, JsonView
from winnow.storage.objectives import traits_of
from winnow.tasks.data.datasets import Dataset
from winnow.tasks.data.sandboxed_templates import Template, compile_template, render
from winnow.tasks.data.sources import read_solved
from winnow.tasks.data.template_grammar import TARGET
from winnow.tasks.engines.chat import Message
from winnow.tasks.errors import SpecError, TemplateError
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.sections.prompts import FewShotSpec
from winnow.tasks.text.canonical_json import sha256


class Shot(NamedTuple):
    """A solved example: question and answer."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FewShot:
    """Few-shot examples of a prompt, and how they are shown."""

    shots: tuple[Shot, ...]
    """The solved examples, plus a spare one if available, which replaces one that equals the current example.
    """
    n: int
    question: Template | None
    """Template of an example's question, so that a solved example with the same question is not shown with
    it. None if the campaign's examples lack a field that the template uses."""
    as_multiturn: bool
    target_delimiter: str
    delimiter: str

    @property
    def variables(self) -> frozenset[str]:
        """Fields of an example that the few-shot examples need."""
        return frozenset() if self.question is None else self.question.variables

    def shown(self, fields: JsonView, key: str) -> list[Shot]:
        """Solved examples to show with an example, never that example itself."""
        asked = None if self.question is None else render(self.question, fields, key)
        others = [each for each in self.shots if each.question != asked]
        return others[: self.n]

    def before(self, messages: Sequence[Message], fields: JsonView, key: str) -> list[Message]:
        """Add the solved examples to messages.

        They become turns after a system message, or text before the user's last message.

        Raises:
            TemplateError: If the question cannot be rendered for the example.
        """
        shots = self.shown(fields, key)
        if self.as_multiturn:
            start = int(messages[0].role == "system")
            pairs = [(Message("user", each.question), Message("assistant", each.answer)) for each in shots]
            return [*messages[:start], *(turn for pair in pairs for turn in pair), *messages[start:]]
        text = "".join(
            f"{each.question}{self.target_delimiter}{each.answer}{self.delimiter}" for each in shots
        )
        last = last_of_user(messages, key)
        asked = Message("user", text + messages[last].content)
        return [*messages[:last], asked, *messages[last + 1 :]]

    def as_record(self) -> JsonObject:
        """The solved examples as stored in the database, as JSON values."""
        return {
            "shots": [list(shot) for shot in self.shots],
            "n": self.n,
            "question": None if self.question is None else self.question.source,
            "as_multiturn": self.as_multiturn,
            "target_delimiter": self.target_delimiter,
            "delimiter": self.delimiter,
        }

    @classmethod
    def from_record(cls, record: JsonView, fields: Collection[str]) -> Self:
        """Read a record that `as_record` wrote."""
        question = record["question"]
        return cls(
            **{
                **record,
                "shots": tuple(Shot(*shot) for shot in record["shots"]),
                "question": None if question is None else compile_template(question, fields),
            }
        )


def last_of_user(messages: Sequence[Message], key: str) -> int:
    """Position of the user's last message; raises `TemplateError` if the user has no message."""
    places = [place for place, each in enumerate(messages) if each.role == "user"]
    if not places:
        raise TemplateError(f"example {key!r}: no message has the role user; add one")
    return places[-1]


def draw_few_shot(
    spec: CampaignSpec, index: int, dataset: Dataset, path: str, *, is_allowed: bool = True
) -> FewShot | None:
    """Draw and render the solved examples of a prompt; None if the prompt uses none.

    The examples whose keys, hashed with the seed, come first are drawn, so that neither the order of a file
    nor the version of a library matters.

    Raises:
        SpecError: If too few examples have targets, or the examples cannot be read or rendered.
    """
    prompt = spec.prompts[index]
    asked = prompt.few_shot
    if asked is None:
        return None
    source = _source(spec, asked, dataset, path, is_allowed)
    question = compile_template(
        asked.question or str(prompt.question),
        source.field_names,
        f"{path}.question" if asked.question else path,
    )
    return FewShot(
        shots=tuple(_drawn(asked, source, question, path)),
        n=asked.n,
        question=question if question.variables <= set(dataset.field_names) else None,
        as_multiturn=asked.fewshot_as_multiturn,
        target_delimiter=asked.target_delimiter,
        delimiter=asked.delimiter,
    )


def _source(spec: CampaignSpec, asked: FewShotSpec, dataset: Dataset, path: str, is_allowed: bool) -> Dataset:
    """Dataset from which solved examples are drawn."""
    if asked.source is None:
        if not traits_of(spec.objective).looks_for_best:
            raise SpecError(
                f"objective {spec.objective} makes claims beyond its dataset's examples, so these cannot "
                "serve as few-shot examples; set from to a file with other examples",
                path=path,
            )
        return dataset
    try:
        return read_solved(asked.source, spec.dataset.fields, is_allowed=is_allowed)
    except SpecError as error:
        raise SpecError(error.message, path=f"{path}.from") from error


def _drawn(asked: FewShotSpec, source: Dataset, question: Template, path: str) -> list[Shot]:
    """Draw n different questions with their answers, and one more if available."""
    is_own = asked.source is None
    answer = compile_template(
        asked.answer, source.field_names.with_more(TARGET), f"{path}.answer", shows_target=True
    )
    pool = [each for each in source.examples if each.targets or TARGET not in answer.variables]
    shots: dict[str, Shot] = {}
    for each in sorted(pool, key=lambda each: sha256([asked.seed, each.key])):
        solved = {**each.fields, **({TARGET: each.targets[0]} if each.targets else {})}
        shot = Shot(render(question, each.fields, each.key), render(answer, solved, each.key))
        shots.setdefault(shot.question, shot)
        if len(shots) > asked.n:
            break
    if len(shots) < asked.n + is_own:
        reason = ", one more than n, because no example is a few-shot example for itself" if is_own else ""
        raise SpecError(
            f"{source.path} has {len(shots)} different questions with a target, but {asked.n + is_own} are "
            f"needed{reason}; lower n, or set from to a larger file",
            path=f"{path}.n",
        )
    return list(shots.values())
