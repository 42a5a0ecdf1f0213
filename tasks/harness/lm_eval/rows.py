"""Conversion of a task's documents to rows, with lm-eval 0.4.13's prompts and targets."""

import ast
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NoReturn

import jinja2
import numpy as np
import regex

from winnow.storage.json_types import JsonView, Row
from winnow.tasks.data.dataset_files import PlacedRow, json_row
from winnow.tasks.data.hub import Splits
from winnow.tasks.data.sandboxed_templates import (
    Template,
    counted_environment,
    counted_template,
    render,
)
from winnow.tasks.errors import DatasetError, TemplateError
from winnow.tasks.harness.lm_eval import seeds
from winnow.tasks.harness.lm_eval.definition import Definition
from winnow.tasks.harness.lm_eval.files import Function
from winnow.tasks.text.patterns import TIMEOUT_SECONDS, compiled


@dataclass(frozen=True, slots=True)
class Message:
    """One message, and the text that follows it if messages are joined."""

    role: str
    content: str
    delimiter: str = ""

    @property
    def text(self) -> str:
        """The message as part of a text."""
        return self.content + self.delimiter

    @property
    def turn(self) -> dict[str, str]:
        """The message as part of a chat."""
        return {"role": self.role, "content": self.content}


def _turns_of(
    question: str,
    answer: str | None,
    *,
    prefix: str | None,
    target_delimiter: str,
    delimiter: str,
) -> list[Message]:
    """Messages for a question, with its answer or the beginning of an answer.

    Args:
        question: The question.
        answer: Answer of a solved example; None or empty without an answer.
        prefix: Text with which the answer begins.
        target_delimiter: Text between question and answer, if messages are joined.
        delimiter: Text after the answer, if messages are joined.
    """
    between = target_delimiter if answer and not prefix else ""
    if prefix and _needs_delimiter(question, prefix):
        between = target_delimiter
    asked = Message("user", question, between)
    if answer:
        return [asked, Message("assistant", _joined(prefix, answer), delimiter)]
    return [asked, Message("assistant", prefix)] if prefix else [asked]


def _as_text(messages: Sequence[Message]) -> str:
    """All messages joined to one text."""
    return "".join(each.text for each in messages)


def _as_turns(messages: Sequence[Message], *, multiturn: bool) -> list[dict[str, str]]:
    """Messages of a chat; unless multiturn, solved examples are in the single user message.

    The beginning of an answer is omitted, because it is stored separately; see `Documents`.
    """
    if multiturn:
        return [each.turn for each in messages]
    start = int(messages[0].role == "system")
    asked = [*messages[start:-1], replace(messages[-1], delimiter="")]
    return [*(each.turn for each in messages[:start]), Message("user", _as_text(asked)).turn]


def _needs_delimiter(before: str, after: str) -> bool:
    return before != "" and not (before[-1].isspace() or after[0].isspace())


def _joined(prefix: str | None, answer: str) -> str:
    if not prefix:
        return answer
    return f"{prefix} {answer}" if _needs_delimiter(prefix, answer) else prefix + answer


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
    """Render a task's template for a document.

    Raises:
        TemplateError: If the template fails, its result is too long, or rendering takes too long; the message
            begins with `place`.
    """
    try:
        return render(_compiled(source), document)
    except TemplateError as error:
        raise TemplateError(f"{place}: {error.message}", KEY) from error


Chat = Literal["single-turn", "multiturn"]

Document = JsonView

Resolve = Callable[[Function], Callable[..., Any]]
"""Imports a function of a task, or refuses it."""


class Documents:
    """Documents of a task, as rows of a dataset.

    A row has the keys `id` (its number), `input` (only the question), `target`, `doc` (the document itself),
    `context` (the whole prompt as a text) or, for chats, `messages` and `prefix`, and `choices`.

    Args:
        definition: The task.
        splits: The task's dataset.
        resolve: Imports a function of the task, if this is allowed.
        num_fewshot: Number of solved examples before each question.
        seed: Seed for drawing solved examples.
        chat: Form of a chat; None for a text.
    """

    def __init__(
        self,
        definition: Definition,
        splits: Splits,
        resolve: Resolve,
        *,
        num_fewshot: int,
        seed: int,
        chat: Chat | None,
    ) -> None:
        self._task = definition
        self._splits = splits
        self._resolve = resolve
        self._n = num_fewshot
        self._chance = random.Random(seed)
        self._chat = chat
        self._made: dict[str, Sequence[Document]] = {}
        self._documents, pool = self._read()
        if len(self._documents) == 0:
            self._refuse("has no documents")
        first = self._documents[0]
        self._features = self._names(first)
        self._pool = list(pool) if self._n else []
        self._has_several_targets = isinstance(self._target(first), list)

    def _read(self) -> tuple[Sequence[Document], Sequence[Document]]:
        """Documents to evaluate, and documents from which solved examples are drawn.

        Functions that draw at random are called in lm-eval's order: first for the solved examples, even if
        none are shown, then twice for the documents. The second result is evaluated.
        """
        split, process = self._task.eval_split, self._task.config.get("process_docs")
        before = seeds.state()
        documents = self._split(split, process)
        if seeds.state() == before:
            return documents, self._solved() if self._n else ()
        seeds.put_back(before)
        self._made.clear()
        pool = list(self._solved())
        self._split(split, process)
        return self._split(split, process), pool

    def rows(self) -> Iterator[PlacedRow]:
        """Yield each document as a row with its place, in order.

        Raises:
            DatasetError: If a document has no valid question, choice or target.
        """
        for number, document in enumerate(self._documents):
            place = f"task {self._task.name}, document {number}"
            row = {"id": number, **self._row(document, place), "doc": _kept(document)}
            yield place, json_row(place, row, KEY)

    def _row(self, document: Document, place: str) -> Row:
        if self._task.output_type == "loglikelihood_rolling":
            return {"input": self._text_of(self._target(document), place, "doc_to_target")}
        question = self._text_of(self._text(document), place, "doc_to_text")
        choices = self._choices(document, self._task.config.get("doc_to_choice"))
        prefix = self._named_or_rendered(self._task.config.get("gen_prefix"), document)
        messages = self._before(document)
        asked = _turns_of(
            question, None, prefix=None, target_delimiter=self._task.target_delimiter, delimiter=""
        )
        row: Row = {"input": question, "target": self._gold(document, choices, place)}
        if choices is not None:
            row["choices"] = choices
        if self._task.has_metric_functions and self._task.output_type == "generate_until":
            row["gold"] = row["target"] if choices is not None else self._target(document)
        if self._chat is None:
            asked = _turns_of(
                question, None, prefix=prefix, target_delimiter=self._task.target_delimiter, delimiter=""
            )
            return {**row, "context": _as_text([*messages, *asked])}
        row["messages"] = _as_turns([*messages, *asked], multiturn=self._chat == "multiturn")
        return {**row, "prefix": prefix} if prefix else row

    def _before(self, document: Document) -> list[Message]:
        """Messages before the question: the description and the solved examples."""
        described = self._named_or_rendered(self._task.description, document)
        messages = [Message("system", described)] if described else []
        for solved in self._drawn(document):
            messages += self._solved_turns(solved)
        return messages

    def _solved_turns(self, solved: Document) -> list[Message]:
        fewshot = self._task.fewshot
        question = self._text_of(self._text(solved, fewshot.doc_to_text), "a solved example", "doc_to_text")
        answer = self._target(solved, fewshot.doc_to_target)
        choices = self._choices(solved, fewshot.doc_to_choice)
        if choices and isinstance(answer, int):
            answer = choices[answer]
        elif isinstance(answer, list):
            answer = answer[0]
        return _turns_of(
            question,
            self._text_of(answer, "a solved example", "doc_to_target"),
            prefix=self._named_or_rendered(fewshot.gen_prefix, solved),
            target_delimiter=fewshot.target_delimiter,
            delimiter=fewshot.fewshot_delimiter,
        )

    def _drawn(self, document: Document) -> Sequence[Document]:
        """Solved examples for a document, never the document itself if both are in one split."""
        if self._n == 0:
            return []
        shares = self._task.fewshot.split == self._task.config.get("test_split")
        others = [each for each in self._pool if each != document] if shares else self._pool
        if len(others) < self._n or len(self._pool) < self._n + shares:
            self._refuse(
                f"has {len(others)} solved examples, but {self._n} are requested",
                f"{KEY}.num_fewshot",
            )
        if self._task.fewshot.sampler == "first_n":
            return others[: self._n]
        drawn = self._chance.sample(self._pool, self._n + shares)
        left = [each for each in drawn if each != document] if shares else drawn
        return left[: self._n] if len(left) >= self._n else self._chance.sample(others, self._n)

    def _solved(self) -> Sequence[Document]:
        """Documents from which solved examples are drawn."""
        fewshot, config = self._task.fewshot, self._task.config
        if fewshot.split is not None:
            return self._split(fewshot.split, fewshot.process_docs)
        if isinstance(fewshot.samples, Function):
            samples: list[Document] = self._resolve(fewshot.samples)()
            return samples
        if fewshot.samples is not None:
            return fewshot.samples
        own = config.get("training_split") or config.get("validation_split") or config.get("test_split")
        return self._split(str(own), config.get("process_docs"))

    def _split(self, name: str, process: Function | None) -> Sequence[Document]:
        if name not in self._splits:
            self._refuse(f"names the split {name!r} of a dataset with {', '.join(self._splits)}")
        found: Sequence[Document] = self._splits[name]
        if process is None:
            return found
        if not isinstance(process, Function):
            self._refuse("has a process_docs that is not a !function")
        before = seeds.state()
        processed: Sequence[Document] = self._resolve(process)(found)
        return self._as_made_first(processed, before)

    def _as_made_first(self, processed: Sequence[Document], before: seeds.State) -> Sequence[Document]:
        """Documents that the same steps created first, because the library `datasets` caches them.

        lm-eval gets them from the library's cache, so nothing is drawn for them again.
        """
        steps = getattr(processed, "_fingerprint", None)
        if steps is None:
            return processed
        if steps in self._made:
            seeds.put_back(before)
        return self._made.setdefault(steps, processed)

    def _names(self, first: Document) -> frozenset[str]:
        features = getattr(self._documents, "features", None)
        return frozenset(first if features is None else features)

    def _text(self, document: Document, given: object = None) -> object:
        template = self._task.config.get("doc_to_text") if given is None else given
        rendered = self._rendered(template, document)
        if rendered is None:
            return self._found(template, document)
        return int(rendered) if rendered.isdigit() and self._has_choices else rendered

    def _target(self, document: Document, given: object = None) -> object:
        template = self._task.config.get("doc_to_target") if given is None else given
        rendered = self._rendered(template, document)
        if rendered is None:
            return self._found(template, document)
        if rendered.isdigit() and self._has_choices:
            return int(rendered)
        is_list = len(rendered) >= 2 and rendered[0] == "[" and rendered[-1] == "]"
        return _literal(rendered) if is_list else rendered

    def _choices(self, document: Document, template: object) -> list[str] | None:
        if template is None:
            return None
        rendered = self._rendered(template, document)
        found = self._found(template, document) if rendered is None else _literal(rendered)
        if isinstance(found, dict):
            found = list(found.values())
        if not isinstance(found, list) or not all(isinstance(each, str) and each for each in found):
            self._refuse("has choices that are not a list of texts (doc_to_choice)")
        return found

    @property
    def _has_choices(self) -> bool:
        return self._task.config.get("doc_to_choice") is not None

    def _rendered(self, template: object, document: Document) -> str | None:
        """The rendered template; None for any other value, such as the name of a field."""
        if not isinstance(template, str) or template in self._features:
            return None
        return apply_template(template, document, f"task {self._task.name}")

    def _found(self, template: object, document: Document) -> object:
        """Value of the field that a template names, or a function's result; other values unchanged."""
        if isinstance(template, Function):
            return _plain(self._resolve(template)(document))
        return document[template] if isinstance(template, str) else template

    def _named_or_rendered(self, template: object, document: Document) -> str:
        if not template:
            return ""
        if isinstance(template, Function):
            return str(self._resolve(template)(document))
        name = str(template)
        if name in document:
            return str(document[name])
        return apply_template(name, document, f"task {self._task.name}")

    def _gold(self, document: Document, choices: list[str] | None, place: str) -> object:
        """Accepted answers as targets of a row: positions of choices, or texts."""
        gold = self._target(document)
        if self._task.config.get("process_results") is not None:
            return _readable(gold)  # the task's function reads the document
        if self._task.output_type == "multiple_choice":
            if choices is None:
                self._refuse("has no choices (doc_to_choice)")
            accepted = gold if isinstance(gold, list) else [gold]
            return [_position(each, choices) for each in accepted]
        if choices is not None:
            if not isinstance(gold, int) or not 0 <= gold < len(choices):
                raise DatasetError(f"{place}: the target {gold!r} is not a position of a choice", KEY)
            return choices[gold]
        if not self._has_several_targets:
            return str(gold)
        accepted = gold if isinstance(gold, list) else [gold]
        if not all(isinstance(each, str) for each in accepted):
            raise DatasetError(f"{place}: the targets {str(gold)[:60]} are not all text", KEY)
        return accepted

    def _text_of(self, value: object, place: str, what: str) -> str:
        if not isinstance(value, str):
            raise DatasetError(f"{place}: {what} must give a text, got {value!r}; choose another task", KEY)
        return value

    def _refuse(self, why: str, key: str = KEY) -> NoReturn:
        raise DatasetError(f"the task {self._task.name} {why}", key)


def _plain(value: object) -> object:
    """Result of a function, with numpy's numbers converted to Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _position(gold: object, choices: list[str]) -> object:
    if isinstance(gold, bool):
        return int(gold)
    if isinstance(gold, str):  # as in lm-eval, a text that is not a choice has no position
        return choices.index(gold) if gold in choices else -100
    return gold


def _readable(gold: object) -> object:
    """The value if it is a text, a number or a list of these, which can be targets; else None."""
    accepted = gold if isinstance(gold, list) else [gold]
    return gold if all(isinstance(each, str | int | float) for each in accepted) else None


def _literal(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return text


def _kept(document: Document) -> Row:
    """JSON part of a document."""
    kept: Row = {}
    for name, value in document.items():
        try:
            kept |= json_row("", {name: value}, KEY)
        except DatasetError:
            continue
    return kept
