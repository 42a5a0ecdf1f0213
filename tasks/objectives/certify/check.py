"""Checking what a campaign that certifies needs beside candidates, data and a judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from winnow.tasks.candidates.candidates import Candidate
from winnow.tasks.candidates.judge_entries import HUMAN
from winnow.tasks.data.datasets import Dataset
from winnow.tasks.errors import SpecError
from winnow.tasks.objectives.certify.autoevaluator import PLACE, Autoevaluator, check_autoevaluator
from winnow.tasks.objectives.certify.certificate import HUMAN_ONLY
from winnow.tasks.objectives.certify.costs import candidate_costs
from winnow.tasks.objectives.certify.split import Parts, divide
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.sections.certify import CertifySpec
from winnow.tasks.spec.suggestions import unknown_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Certification:
    """What is certified, of whom and with what; candidates are named in testing order, dearest first."""

    spec: CertifySpec
    costs: Mapping[str, float]
    """By candidate, in testing order."""
    parts: Parts
    autoevaluator: Autoevaluator | None
    """None where the selector has no use for one."""
    baseline: int | None
    """The arm that a drop is measured from."""


def certify_section(spec: CampaignSpec) -> CertifySpec:
    """The section `certify` of a campaign that certifies.

    Raises:
        SpecError: If there is none.
    """
    if spec.certify is None:
        raise SpecError(
            "certify needs a section certify: that gives alpha or drop, and cost; add it", path="objective"
        )
    return spec.certify


def check_certification(
    spec: CampaignSpec, dataset: Dataset, candidates: Sequence[Candidate]
) -> tuple[Certification, list[Candidate]]:
    """Check the section `certify`, and put the candidates into testing order.

    Raises:
        SpecError: With the key, what is wrong and what to do.
    """
    section = certify_section(spec)
    costs = candidate_costs(section, candidates, dataset)
    order = list(costs)
    if section.baseline is not None and section.baseline not in costs:
        raise SpecError(unknown_name("candidate", section.baseline, order), path="certify.baseline")
    certification = Certification(
        spec=section,
        costs=costs,
        parts=divide_dataset(
            spec, [bool(each.targets) for each in dataset.examples], fingerprint=dataset.fingerprint
        ),
        autoevaluator=_autoevaluator(spec, dataset, candidates),
        baseline=None if section.baseline is None else order.index(section.baseline),
    )
    return certification, sorted(candidates, key=lambda each: order.index(each.name))


def divide_dataset(spec: CampaignSpec, has_target: Sequence[bool], *, fingerprint: str) -> Parts:
    """The parts of a campaign's dataset; see `divide`. A target is no label where people rate outputs."""
    section = certify_section(spec)
    by_people = spec.judge.type == HUMAN
    return divide(
        [False] * len(has_target) if by_people else has_target,
        seed=spec.seed,
        fingerprint=fingerprint,
        per_label=0 if section.autoevaluator is None else section.unlabelled_per_label,
        labellable=section.labellable,
    )


def _autoevaluator(
    spec: CampaignSpec, dataset: Dataset, candidates: Sequence[Candidate]
) -> Autoevaluator | None:
    given = certify_section(spec).autoevaluator
    if spec.judge.type == HUMAN and spec.selector.name not in HUMAN_ONLY:
        raise SpecError(
            f"{spec.selector.name} reads an autoevaluator's losses, which answers examples and rates no "
            "outputs as people do here; choose r-eval",
            path="selector.name",
        )
    if given is None:
        if spec.selector.name not in HUMAN_ONLY:
            raise SpecError(
                f"{spec.selector.name} reads an autoevaluator's losses: add certify.autoevaluator with a "
                "model and a prompt, or choose r-eval, which does without",
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
