"""The texts that a certifying round needs: answers to labelled examples and to those that belong to them."""

from winnow.storage.records.values import RoundRecord
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.candidates.weighing import Asked
from winnow.tasks.objectives.certify.check import Certification
from winnow.tasks.rounds.generate import have_outputs, plan_generation, plan_text, rendered
from winnow.tasks.rounds.generation_batch import GenerationBatch, PlannedGeneration

Author = int | None
"""Who answers: an arm, or None for the autoevaluator."""
Answer = tuple[Author, int]
"""An author and an example position."""


def generate_answers(
    campaign: CampaignSession, certification: Certification, round_: RoundRecord
) -> GenerationBatch:
    """Have every answer of `answers_of`, in that order; raises like `have_texts`."""
    planned = [
        _planned(campaign, certification, author, example)
        for author, example in answers_of(certification, round_)
    ]
    return have_outputs(campaign, round_, planned)


def answers_of(certification: Certification, round_: RoundRecord) -> list[Answer]:
    """Each answer once: of every arm, of the baseline and of the autoevaluator, pair by pair as planned."""
    wanted: dict[Answer, None] = {}
    for arm, example in zip(round_.arms, round_.examples, strict=True):
        authors: list[Author] = [arm]
        examples = [example]
        if certification.baseline is not None:
            authors.append(certification.baseline)
        if certification.autoevaluator is not None:
            examples += certification.parts.block(example)
            authors.append(None)
        wanted |= dict.fromkeys((author, each) for author in authors for each in examples)
    return list(wanted)


def _planned(
    campaign: CampaignSession, certification: Certification, author: Author, example: int
) -> PlannedGeneration:
    if author is not None:
        return plan_generation(campaign, author, example, 0)
    autoevaluator = certification.autoevaluator
    assert autoevaluator is not None
    return plan_text(
        autoevaluator.model,
        campaign.checked.judge_fingerprints[autoevaluator.model.name],
        rendered(lambda: Asked(prompt=autoevaluator.prompt(campaign.checked.dataset.examples[example]))),
        autoevaluator.sampling,
        seed=campaign.record.seed,
    )
