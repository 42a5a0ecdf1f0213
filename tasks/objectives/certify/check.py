"""Check a certify campaign: the costs of candidates, and the autoevaluator.

The cost of a candidate, which defines the order of the tests, is one of these:

* size           bytes of the checkpoint's weights
* prompt-length  mean number of characters of its prompts over the dataset
* price, custom  a number for each candidate in `certify.costs`
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import regex

from winnow.tasks.candidates.candidate_costs import given_costs
from winnow.tasks.candidates.candidates import Candidate
from winnow.tasks.candidates.model_refs import model_ref, sampling_of
from winnow.tasks.data.datasets import Dataset, Example
from winnow.tasks.data.sandboxed_templates import Template, compile_template, render
from winnow.tasks.data.trial_renders import try_templates
from winnow.tasks.engines.chat import words_of
from winnow.tasks.engines.protocol import ModelRef, Sampling
from winnow.tasks.errors import SpecError, unknown_name
from winnow.tasks.objectives.certify.split import Parts, divide_by_spec
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.judge_tree import HUMAN
from winnow.tasks.spec.sections.generate_config import SamplesSpec
from winnow.tasks.spec.sections.objectives import AutoevaluatorSpec, CertifySpec
from winnow.tasks.spec.selector_traits import HUMAN_ONLY
from winnow.tasks.text.patterns import compiled, last_answer

PLACE = "certify.autoevaluator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoevaluator:
    """A checked autoevaluator; its outputs are stored like those of candidates.

    It generates one output per example and seed.
    """

    model: ModelRef
    template: Template
    sampling: Sampling
    pattern: regex.Pattern[str] | None

    def prompt(self, example: Example) -> str:
        """The prompt for one example."""
        return render(self.template, example.fields, example.key)

    def answer(self, text: str) -> str | None:
        """The answer that replaces a human label; None if the output has no answer."""
        try:
            found = text.strip() if self.pattern is None else last_answer(self.pattern, text)
        except TimeoutError:
            return None
        return found or None


def check_autoevaluator(spec: AutoevaluatorSpec, dataset: Dataset) -> Autoevaluator:
    """Resolve everything that an autoevaluator refers to, and try its prompt.

    Raises:
        SpecError: A part is missing or invalid; gives the key, the problem and the remedy.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Certification:
    """A checked section `certify`, with candidates in testing order.

    The most expensive candidate is tested first.
    """

    spec: CertifySpec
    costs: Mapping[str, float]
    """Cost of each candidate, in testing order."""
    parts: Parts
    autoevaluator: Autoevaluator | None
    """The autoevaluator; None if the selector does not use one."""
    baseline: int | None
    """Arm from whose scores drops are measured; None without a baseline."""
    samples: SamplesSpec | None = None
    """Number of outputs per arm and example, and how their scores are reduced; None for one output."""

    @property
    def texts(self) -> int:
        """Number of outputs per arm and example."""
        return 1 if self.samples is None else self.samples.n


def certify_section(spec: CampaignSpec) -> CertifySpec:
    """The section `certify` of a certify campaign's spec.

    Raises:
        SpecError: The spec has no such section.
    """
    if spec.certify is None:
        raise SpecError(
            "certify needs a section certify: with cost, and alpha or drop; add this section",
            path="objective",
        )
    return spec.certify


def check_certification(
    spec: CampaignSpec, dataset: Dataset, candidates: Sequence[Candidate]
) -> tuple[Certification, list[Candidate]]:
    """Check the section `certify`, and put the candidates into testing order.

    Raises:
        SpecError: The section is invalid; gives the key, the problem and the remedy.
    """
    section = certify_section(spec)
    costs = candidate_costs(section, candidates, dataset)
    order = list(costs)
    if section.baseline is not None and section.baseline not in costs:
        raise SpecError(unknown_name("candidate", section.baseline, order), path="certify.baseline")
    certification = Certification(
        spec=section,
        costs=costs,
        parts=divide_by_spec(
            spec.model_dump(mode="json", include={"certify", "judge"}),
            [bool(each.targets) for each in dataset.examples],
            seed=spec.seed,
            fingerprint=dataset.fingerprint,
        ),
        autoevaluator=_autoevaluator(spec, dataset, candidates),
        baseline=None if section.baseline is None else order.index(section.baseline),
        samples=spec.samples,
    )
    return certification, sorted(candidates, key=lambda each: order.index(each.name))


def _autoevaluator(
    spec: CampaignSpec, dataset: Dataset, candidates: Sequence[Candidate]
) -> Autoevaluator | None:
    given = certify_section(spec).autoevaluator
    if spec.judge.type == HUMAN and spec.selector.name not in HUMAN_ONLY:
        raise SpecError(
            f"{spec.selector.name} uses an autoevaluator, which answers examples, but judge: human rates "
            "outputs; choose r-eval",
            path="selector.name",
        )
    if given is None:
        if spec.selector.name not in HUMAN_ONLY:
            raise SpecError(
                f"{spec.selector.name} uses an autoevaluator's losses: add certify.autoevaluator with a "
                "model and a prompt, or choose r-eval, which needs none",
                path="selector.name",
            )
        return None
    checked = check_autoevaluator(given, dataset)
    for candidate in candidates:
        if candidate.model.name == checked.model.name and candidate.model != checked.model:
            raise SpecError(
                f"the name {checked.model.name!r} is another model's; rename one", path=f"{PLACE}.model.name"
            )
    return None if spec.selector.name in HUMAN_ONLY else checked


WEIGHTS = ("*.safetensors", "*.bin", "*")
"""Patterns of weight files.
Only files of the first pattern with a match are counted.
"""


def candidate_costs(spec: CertifySpec, candidates: Sequence[Candidate], dataset: Dataset) -> dict[str, float]:
    """Cost of each candidate by name, in testing order: the most expensive first.

    Candidates of the same cost keep the order of the spec.

    Raises:
        SpecError: A candidate has no cost.
    """
    if spec.cost == "size":
        sizes = {each.model.name: _size(each) for each in candidates}
        costs = {each.name: sizes[each.model.name] for each in candidates}
    elif spec.cost == "prompt-length":
        costs = {each.name: _prompt_length(each, dataset) for each in candidates}
    else:
        costs = given_costs(spec.costs, [each.name for each in candidates], "certify.costs")
    return dict(sorted(costs.items(), key=lambda item: -item[1]))


def _size(candidate: Candidate) -> float:
    folder = Path(candidate.model.model)
    if not folder.is_dir():
        raise SpecError(
            f"size is the size of a checkpoint's folder, and model '{candidate.model.name}' is no folder; "
            "use price or custom with certify.costs",
            path="certify.cost",
        )
    found = [sorted(folder.glob(pattern)) for pattern in WEIGHTS]
    weights = next((paths for paths in found if paths), [])
    return float(sum(path.stat().st_size for path in weights if path.is_file()))


def _prompt_length(candidate: Candidate, dataset: Dataset) -> float:
    lengths = [len(words_of(candidate.prompt(each.fields, each.key))) for each in dataset.examples]
    return sum(lengths) / len(lengths)
