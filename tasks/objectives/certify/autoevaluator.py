"""The autoevaluator: a model that answers an example instead of a human."""

from dataclasses import dataclass

import regex

from winnow.tasks.candidates.model_refs import model_ref, sampling_of
from winnow.tasks.data.datasets import Dataset, Example
from winnow.tasks.data.sandboxed_templates import Template, compile_template, render
from winnow.tasks.data.trial_renders import try_templates
from winnow.tasks.engines.protocol import ModelRef, Sampling
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.sections.objectives import AutoevaluatorSpec
from winnow.tasks.text.patterns import compiled, last_answer

PLACE = "certify.autoevaluator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoevaluator:
    """A checked autoevaluator. Its outputs are stored like any other, one per example and seed."""

    model: ModelRef
    template: Template
    sampling: Sampling
    pattern: regex.Pattern[str] | None

    def prompt(self, example: Example) -> str:
        """The prompt about one example."""
        return render(self.template, example.fields, example.key)

    def answer(self, text: str) -> str | None:
        """The answer that replaces the label; None if the output has none."""
        try:
            found = text.strip() if self.pattern is None else last_answer(self.pattern, text)
        except TimeoutError:
            return None
        return found or None


def check_autoevaluator(spec: AutoevaluatorSpec, dataset: Dataset) -> Autoevaluator:
    """Resolve and check everything that an autoevaluator refers to, and try its prompt.

    Raises:
        SpecError: With the key, what is wrong and what to do.
    """
    model = model_ref(spec.model, f"{PLACE}.model")
    try:
        pattern = None if spec.extract is None else compiled(spec.extract)
    except ValueError as error:
        raise SpecError(str(error), path=f"{PLACE}.extract") from error
    template = compile_template(spec.prompt, dataset.field_names, f"{PLACE}.prompt")
    try_templates([lambda example: render(template, example.fields, example.key)], dataset.examples)
    return Autoevaluator(
        model=model,
        template=template,
        sampling=sampling_of(
            spec.model.generate_config, spec.model, f"{PLACE}.model.generate_config.{{}}".format
        ),
        pattern=pattern,
    )
