"""Derive the campaign that judges another one's stored outputs with another judge.

It generates nothing. It has the candidates, examples, selector and seed of the first campaign, which identify
its outputs, and uses them by `reuse: only`. It draws its examples again, as described in
`tasks.campaign.example_seed`. A pair without an output has no outcome: it counts as anything from 0 to 1 in
every interval and claim, because the available outputs depend on the first judge's verdicts. So no candidate
is dropped for missing outputs (`fail_on_error: 1`). Earlier scores, which are those of another judge, are not
used.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy.orm import Session

from winnow.storage.engine.database import Database
from winnow.storage.json_types import JsonObject, JsonView
from winnow.storage.objectives import traits_of
from winnow.storage.queries import unscored as unscored_views
from winnow.storage.queries.campaign_views import totals
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import stream_batches
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.budget import devices_by_model
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.campaign.stored_values import stored_dataset, values_of
from winnow.tasks.candidates.text_rules import rules_of
from winnow.tasks.data.hub_cache import pinned, revisions_of
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.check import check_campaign
from winnow.tasks.setup.load import Approve
from winnow.tasks.setup.yaml_file import SpecFile, overriding, parse_spec, read_spec_file
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.judge_tree import SPARE
from winnow.tasks.spec.sections.dataset import DatasetSpec
from winnow.tasks.spec.selector_traits import refuse_confidence
from winnow.tasks.spec.stored_spec import ONLY
from winnow.tasks.spec.types_alone import read_by_types
from winnow.tasks.text.phrases import amount

SUFFIX = "-rescored"
JUDGE = "judge"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTexts:
    """Number of a campaign's outputs that can be judged again."""

    name: str
    pairs: int
    """Number of pairs of a candidate and an example in the campaign."""
    with_text: int
    """Number of these pairs with an output."""
    least: int
    """Number of pairs with an output for the candidate with the fewest; `most` is the largest number."""
    most: int
    examples: int
    asked: int
    """Number of the campaign's comparisons."""

    def __str__(self) -> str:
        told = (
            f"'{self.name}' has outputs for {amount(self.with_text)} of {amount(self.pairs)} pairs of a "
            f"candidate and an example ({self.least} to {self.most} of {self.examples} by candidate)"
        )
        left = self.pairs - self.with_text
        if not left:
            return f"{told}; no output is generated"
        told += f"; the outputs of the other {amount(left)} are not generated: pairs without a stored output "
        told += "stay without an outcome"
        if self.asked < self.pairs:
            told += (
                ". Its own judge determined which pairs have outputs: candidates that were dropped early "
                "have few, and another judge can hardly rule out a candidate with few outputs"
            )
        return told


def rescoring_campaign(
    database: Database,
    name: str,
    judge: str | JsonView | None,
    new_name: str | None,
    overrides: list[str],
    approve: Approve,
) -> ResolvedCampaign:
    """The campaign that judges the stored outputs of another one; writes nothing.

    Args:
        database: The database of the other campaign.
        name: Name of the other campaign.
        judge: A YAML file with a judge in the form of a campaign's file, or the judge itself. None for the
            other campaign's judge in its current version.
        new_name: Name of the new campaign; None for the other campaign's name with the suffix "-rescored".
        overrides: `key=value` settings that override the other campaign's.
        approve: Called before anything that the campaign refers to is used.

    Raises:
        CampaignNotFound: No campaign has this name.
        SpecError: The campaign cannot be judged again, or the judge is invalid.
    """
    new_name = new_name or f"{name}{SUFFIX}"
    with database.reading() as session:
        first = campaign_records.get_campaign(session, name)
        known = campaign_records.find_campaign(session, new_name)
        examples = list(stream_batches.each_example(session, first.id))
    _refuse_unfit(first, new_name)
    dataset = read_by_types(DatasetSpec, first.spec["dataset"])
    values = _values(first, database.url, new_name)
    judge_of_first = {key: value for key, value in first.spec[JUDGE].items() if key != SPARE}
    own = SpecFile(Path(f"'{name}'"), {**values, JUDGE: judge_of_first})
    file = overriding(own if judge is None else _with_judge(values, judge), overrides)
    spec = parse_spec(file)
    if spec.judge.spare is not None:
        raise SpecError(f"rescore judges every stored output; remove {SPARE}", path=f"{JUDGE}.{SPARE}")
    if (spec.reuse, spec.storage) != (ONLY, database.url):
        raise SpecError("--set: rescore uses the stored outputs of one database; remove reuse and storage")
    if spec.seed != first.spec["seed"]:
        raise SpecError(
            f"--set: stored outputs are found by the seed of '{name}', {first.spec['seed']}; remove seed"
        )
    if (spec.dataset, spec.name) != (dataset, new_name):
        raise SpecError(
            f"--set: rescore judges outputs on the examples of '{name}', and --name names the new campaign; "
            "remove dataset and name"
        )
    spec = _without_old_prices(spec, first)
    approve(file, spec)
    try:
        if known is None:
            refuse_confidence(spec.stopping.delta)
        revisions = revisions_of((known or first).spec)
        checked = check_campaign(pinned(spec, revisions), stored_dataset(first, examples))
        for each in checked.judges:
            each.try_out()
    except SpecError as error:
        raise SpecError(f"{_place(file, error.path or '', name)}: {error.message}") from error
    # Outputs are found under the keys that the first campaign stored them under.
    return replace(checked.begun_at(first.spec["served_at"]), text_rules=rules_of(first.spec))


def texts_of(session: Session, name: str) -> StoredTexts:
    """Number of a campaign's outputs that can be judged again."""
    campaign = campaign_records.get_campaign(session, name)
    tallied = unscored_views.texts_by_candidate(session, campaign.id)
    sizes = totals(session, campaign.id)
    return StoredTexts(
        name=name,
        pairs=sizes["grid"],
        with_text=sum(tallied),
        least=min(tallied),
        most=max(tallied),
        examples=sizes["examples"],
        asked=sizes["comparisons"],
    )


def _refuse_unfit(campaign: CampaignRecord, new_name: str) -> None:
    if not traits_of(campaign.objective).can_be_rescored:
        raise SpecError(
            f"rescore judges single outputs again, and '{campaign.name}' has objective {campaign.objective}; "
            "change the judge in its file, then run: winnow run SPEC --fork NEW_NAME (it reuses all outputs)"
        )
    if campaign.name == new_name:
        raise SpecError(f"'{new_name}' is the campaign whose outputs are judged; give another --name")
    if (reuse := campaign.execution["reuse"]) in ("campaign", "none"):
        raise SpecError(
            f"'{campaign.name}' does not share its outputs, because of reuse: {reuse}; name a campaign with "
            "reuse: all"
        )


def _values(campaign: CampaignRecord, storage: str, new_name: str) -> JsonObject:
    """The first campaign in the form of a file, without its judge."""
    values = {
        **values_of(campaign, storage),
        "name": new_name,
        "reuse": ONLY,
        "fail_on_error": 1.0,
    }
    return {key: value for key, value in values.items() if key not in ("history", JUDGE)}


def _without_old_prices(spec: CampaignSpec, first: CampaignRecord) -> CampaignSpec:
    """The spec without prices of judge models that only the first campaign used."""
    asked, known = devices_by_model(spec.identity()), devices_by_model(first.spec)
    kept = {
        model: price for model, price in spec.execution.prices.items() if model in asked or model not in known
    }
    return spec.model_copy(update={"execution": spec.execution.model_copy(update={"prices": kept})})


def _place(file: SpecFile, key: str, name: str) -> str:
    """The place of a key of the new campaign, for error messages.

    A judge's file has only the judge's keys.
    """
    is_written = key.startswith(JUDGE) or file.is_overridden(key)
    return file.locate(key) if is_written or not key else f"'{name}' (--set changes it): {key}"


def _with_judge(values: JsonView, given: str | JsonView) -> SpecFile:
    """The values with a judge, or with the judge of a file that contains nothing else."""
    if not isinstance(given, str):
        return SpecFile(Path("rescore"), {**values, JUDGE: given})
    file = read_spec_file(given, kind="judge")
    if JUDGE not in file.values:
        if "type" not in file.values:
            raise SpecError(
                f"{file.locate('')}: contains no judge; write judge: {{type: …}}, or only type: …"
            )
        lines = {(JUDGE, *key): line for key, line in file.lines.items()}
        return SpecFile(file.path, {**values, JUDGE: file.values}, lines)
    if others := sorted(file.values.keys() - {JUDGE}):
        raise SpecError(f"{file.locate(others[0])}: a judge's file has only the key judge; remove this key")
    return SpecFile(file.path, {**values, **file.values}, file.lines)
