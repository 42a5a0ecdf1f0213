"""Generate and score a few outputs of every candidate, before a campaign begins.

Outputs are generated and judged as in a campaign, under a temporary name that is deleted afterwards. The
outputs are kept for the campaign. The examples whose outputs the user has seen are recorded, because the
campaign's line on new examples mentions them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast
from uuid import uuid4

from winnow.flows.reports.summary import check_lines, hanging
from winnow.storage.admin.prune import forget
from winnow.storage.engine.database import Database
from winnow.storage.json_types import JsonObject
from winnow.storage.objectives import traits_of
from winnow.storage.queries.candidate_outputs import JudgedOutput
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import leases
from winnow.storage.records.record_types import CampaignRecord, NewComparison, StoredText
from winnow.tasks.answer.earlier_campaigns import SHOWN
from winnow.tasks.campaign.lease import is_gone
from winnow.tasks.campaign.planned_outputs import GenerationBatch
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.campaign.session import CampaignSession, running
from winnow.tasks.data.datasets import Dataset, Example
from winnow.tasks.data.images import DETAILS
from winnow.tasks.data.labels import labels_of
from winnow.tasks.engines.pool.pool import EnginePool
from winnow.tasks.errors import SpecError
from winnow.tasks.objectives.best_mean.traits import NAME as SCORED
from winnow.tasks.objectives.round_functions import generate_round, judge_round
from winnow.tasks.queries.warnings.first_outputs import judged_output, looked_so_far
from winnow.tasks.queries.warnings.from_outputs import warnings_about
from winnow.tasks.queries.warnings.from_spec import CampaignWarning
from winnow.tasks.rounds.plan import plan_rounds
from winnow.tasks.setup.check import check_campaign
from winnow.tasks.setup.open_campaign import as_stored, open_campaign
from winnow.tasks.spec.campaign import CampaignSpec, SelectorSpec, StoppingSpec
from winnow.tasks.spec.judge_tree import HUMAN
from winnow.tasks.spec.sections.objectives import EmbedderSpec
from winnow.tasks.spec.stored_spec import LONGEST_NAME
from winnow.tasks.text.canonical_json import digest
from winnow.tasks.text.phrases import example_name, rounded
from winnow.tasks.text.printable import one_line

ASKS_ALL = "row-mean"
"""Name of a selector that evaluates every candidate on every example."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOutput:
    """One output of a trial, with input, targets and score."""

    candidate: str
    example: str
    asked: str
    """Input of the example."""
    images: Sequence[str]
    """Names or URLs of the example's images."""
    targets: Sequence[str]
    text: str | None
    """The output; None if no output was generated."""
    score: float | None
    why: str | None
    """Reason for a missing output or score; None if both exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """All outputs of a trial, ordered by example, and warnings about suspected problems."""

    outputs: Sequence[TrialOutput]
    warnings: Sequence[CampaignWarning]


def require_scores(spec: CampaignSpec) -> None:
    """Refuse a campaign whose judge compares pairs or needs people.

    Raises:
        SpecError: If the campaign is refused.
    """
    if traits_of(spec.objective).compares_pairs or spec.judge.type == HUMAN:
        raise SpecError(
            f"judge {spec.judge.type} does not score single outputs by itself, so winnow try cannot show "
            "scores; start the campaign with winnow run"
        )


def try_out(database: Database, checked: ResolvedCampaign, n: int, pool: EnginePool) -> Trial:
    """Let every candidate answer a few examples, and score the outputs.

    Args:
        database: The campaign's database, with all tables.
        checked: The campaign; its judge scores single outputs, and its models are available.
        n: Maximum number of examples.
        pool: The campaign's engines, which stay open.

    Raises:
        WinnowError: If models or judges fail, as in a campaign.
    """
    _delete_abandoned(database)
    examples = _draw(checked.dataset, n)
    numbers = {each.key: number for number, each in enumerate(checked.dataset.examples)}
    trial = check_campaign(_spec(checked.spec), checked.dataset.part(examples))
    record = open_campaign(database, trial, marks={SHOWN: "outputs were shown"})
    shown: set[int] = set()
    try:
        trial = as_stored(database, record, trial) or trial
        with running(database, record, trial, pool) as session:
            session.load_engines()
            [round_] = plan_rounds(session, begins=True)
            texts = generate_round(session, round_)
            comparisons = judge_round(session, round_, texts)
        shown |= {*round_.examples}
        return _trial(session, record, round_.arms, round_.examples, texts, comparisons, numbers)
    finally:
        with database.writing() as writing:
            forget(writing, record, shown)


def _draw(dataset: Dataset, n: int) -> list[Example]:
    """Draw examples by a hash of their keys, those with targets first; the same ones in each call."""
    order = sorted(dataset.examples, key=lambda each: (not each.targets, digest(f'["try",{each.key!a}]')))
    chosen = {each.key for each in order[:n]}
    return [each for each in dataset.examples if each.key in chosen]


def _spec(spec: CampaignSpec) -> CampaignSpec:
    """Spec of a trial: every candidate on every example in one round."""
    most = 10**6
    unused: dict[str, object] = {
        "samples": spec.samples,
        "metrics": [],
        "constraints": [],
        "certify": None,
        "embedder": EmbedderSpec(),
        "prompt_type": None,
        "fresh_generations": True,
        "history": [],
        "groups": None,
        "holdout": None,
        "tags": [],
        "lookahead": 0,
    }
    name = f"{spec.name[: LONGEST_NAME - 14]}.try-{uuid4().hex[:8]}"
    return spec.model_copy(
        update={
            **unused,
            "name": name,
            "objective": SCORED,
            "selector": SelectorSpec(name=ASKS_ALL),
            "judge": spec.judge.judging_all,
            "batch_size": most,
            "stopping": StoppingSpec(budget=most),
            "fail_on_error": 1.0,
        }
    )


def _delete_abandoned(database: Database) -> None:
    """Delete what is left of trials whose process was killed."""
    with database.reading() as session:
        left = [each for each in campaign_records.campaigns(session) if SHOWN in each.versions]
    for record in left:
        with database.writing() as session:
            lease = leases.find(session, record.id)
            if lease is None or not leases.is_live(lease, is_gone=is_gone):
                forget(session, record, ())


def _trial(
    session: CampaignSession,
    record: CampaignRecord,
    arms: Sequence[int],
    examples: Sequence[int],
    texts: GenerationBatch,
    comparisons: Sequence[NewComparison],
    numbers: Mapping[str, int],
) -> Trial:
    """The outputs and warnings; `numbers` are the positions of examples in the campaign's dataset, by key."""
    checked = session.checked
    found: list[tuple[int, int, TrialOutput]] = []
    judged: dict[int, list[tuple[JudgedOutput, NewComparison]]] = {}
    for place, (arm, at, comparison) in enumerate(zip(arms, examples, comparisons, strict=True)):
        example = checked.dataset.examples[at]
        number, text = numbers[example.key], texts[place * checked.spec.texts_each]
        output = TrialOutput(
            candidate=checked.candidates[arm].name,
            example=example_name(example.key, number),
            asked=example.question,
            images=_images_of(checked.spec, example),
            targets=example.targets,
            text=text.text if isinstance(text, StoredText) else None,
            score=comparison.outcome,
            why=comparison.detail or comparison.reason,
        )
        found.append((at, arm, output))
        if isinstance(text, StoredText):
            judged.setdefault(arm, []).append((judged_output(example, number, text, comparison), comparison))
    looked = [looked_so_far(session, arm, outputs) for arm, outputs in sorted(judged.items())]
    for each in looked:
        each.find_faults(record.spec)
    labels = labels_of(each.targets for each in checked.dataset.examples)
    warnings = warnings_about(record, looked, labels, has_ended=True, fewest=1)
    in_order = sorted(found, key=lambda one: one[:2])
    return Trial(outputs=[output for *_, output in in_order], warnings=warnings)


def _images_of(spec: CampaignSpec, example: Example) -> list[str]:
    details = cast("list[JsonObject]", example.fields[DETAILS]) if spec.dataset.images else []
    return [each.get("name") or each["url"] for each in details]


MOST_SHOWN = 400
"""Maximum number of characters shown of each text."""
PLAIN_WIDTH = 100
"""Maximum width of a line, and its width without a terminal, in columns."""


def trial_lines(trial: Trial, width: int | None, most: int | None = None) -> list[str]:
    """Lines that show a trial: a block for each output, and a line for each warning.

    Args:
        trial: The trial.
        width: Width of the terminal in columns; None without a terminal.
        most: Maximum number of outputs; None for all.
    """
    width = min(width or PLAIN_WIDTH, PLAIN_WIDTH)
    lines: list[str] = []
    for number, each in enumerate(trial.outputs[:most], 1):
        lines += [*_block(number, each, width), ""]
    for warning in trial.warnings:
        lines += check_lines(warning.sentence, width)
    return lines


def _block(number: int, output: TrialOutput, width: int) -> list[str]:
    score = "no score" if output.score is None else f"score {rounded(output.score)}"
    head = f"{number}. {one_line(output.candidate)}, example {_cut(output.example, 40)}"
    gap = max(width - len(head) - len(score), 2)
    lines = [f"{head}{' ' * gap}{score}"]
    lines += hanging("   input   ", _cut(output.asked), width)
    if output.images:
        lines += hanging("   images  ", _cut(", ".join(output.images)), width)
    if output.targets:
        lines += hanging("   target  ", _cut(" | ".join(output.targets)), width)
    if output.text is not None:
        lines += hanging("   output  ", _cut(output.text) or "(empty)", width)
    if output.score is None and output.why:
        lines += hanging("   why     ", _cut(output.why), width)
    return lines


def _cut(text: str, most: int = MOST_SHOWN) -> str:
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"
