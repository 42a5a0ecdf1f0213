"""Export a learned policy to files that `router.Router` loads."""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import numpy as np

from winnow.algorithms.route.advantage import Advantage
from winnow.storage.engine.database import Database
from winnow.storage.json_types import JsonObject
from winnow.storage.plain_files import make_folder
from winnow.storage.records import rounds as round_records
from winnow.storage.records.outcomes import latest_decision
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.campaign.replay import restored
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.errors import WinnowError
from winnow.tasks.objectives.route.arrivals import require_route
from winnow.tasks.objectives.route.router import ARRAYS, FORMAT, PARAMETERS, VERSION
from winnow.tasks.objectives.route.selector import as_router
from winnow.tasks.objectives.route.status import advantage_of
from winnow.tasks.text.phrases import ends, list_of, percent, rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedPolicy:
    """An exported policy in numbers, and whether it is better than one candidate."""

    prompts: int
    """Number of scored prompts from which the policy was learned."""
    doubt: str | None
    """Sentence on why routing may not be better than one candidate; None if it is shown to score more."""


def export_policy(
    database: Database, record: CampaignRecord, checked: ResolvedCampaign, folder: Path
) -> ExportedPolicy:
    """Export a policy to a folder, and replace an existing one.

    Raises:
        WinnowError: The campaign does not route, or the folder cannot be written.
    """
    checked = require_route(record, checked, does="have a policy").prepared(database)
    with database.reading() as session:
        selector, _, _ = restored(session, record, checked)
        # The policy includes candidates that joined since the last round, without any scores.
        checked.at_round(selector, round_records.next_round_number(session, record.id))
        told = round_records.told_rounds(session, record.id)
        prompts = sum(score is not None for round_ in told for score in round_.outcomes)
        advantage, uncompared = advantage_of(Look(session, record))
        decision = latest_decision(session, record.id)
    policy = as_router(selector).policy()
    description: JsonObject = {
        "format": FORMAT,
        "version": VERSION,
        "campaign": record.name,
        "prompts": prompts,
        "selector": checked.spec.selector.model_dump(mode="json"),
        "embedder": checked.spec.embedder.model_dump(mode="json"),
        "fields": list(checked.dataset.field_names),
        "embedder_identity": checked.embedding.identity,
        "candidates": [
            {"name": each.name, "model": each.model, "prompt": each.prompt, "sampling": each.sampling}
            for each in (candidate.as_record() for candidate in checked.candidates)
        ],
        "parameters": dict(policy.parameters),
    }
    try:
        make_folder(folder)
        arrays = BytesIO()
        np.savez(arrays, allow_pickle=False, **dict(policy.arrays))
        description["arrays_sha256"] = sha256(arrays.getvalue()).hexdigest()
        described = json.dumps(description, indent=2, ensure_ascii=False).encode() + b"\n"
        _write({folder / ARRAYS: arrays.getvalue(), folder / PARAMETERS: described})
    except OSError as error:
        raise WinnowError(f"{folder} cannot be written: {error.strerror}; name another folder") from error
    names = [each.name for each in checked.candidates]
    dropped = [arm for arm, each in enumerate(decision.status if decision else ()) if each == "dropped"]
    return ExportedPolicy(prompts=prompts, doubt=doubt_of(advantage, names, {*uncompared, *dropped}))


def doubt_of(
    advantage: Advantage | None, candidates: Sequence[str], left_out: Collection[int] = ()
) -> str | None:
    """Sentence that a single candidate may be as good as routing.

    None if all single candidates were shown to be worse.

    Args:
        advantage: The advantage of routing so far, in scores in [0, 1]; None if unknown.
        candidates: Names of the candidates, by arm.
        left_out: Arms that routing is not compared with, because they were dropped or are new.
    """
    if advantage is None:
        return (
            "routing was not shown to pay: it is unknown what one candidate alone would have scored; "
            "set the selector's parameter explore, for example to 0.05, in a new campaign to estimate this"
        )
    without = list_of([candidates[arm] for arm in sorted(left_out)])
    if advantage.lower > 0.0 and not left_out:
        return None
    if advantage.lower > 0.0:
        shown = f"routing was shown to pay against each single candidate except {without}"
        return f"{shown}, with which it is not compared"
    by, (lower, upper) = rounded(advantage.estimate, "+"), ends(advantage.lower, advantage.upper, "+")
    verdict = "routing did not pay" if advantage.upper < 0.0 else "routing was not shown to pay"
    return (
        f"{verdict}: its mean score is estimated to differ by {by} from that of the best "
        f"single candidate on the prompts since it joined, by this estimate "
        f"{candidates[advantage.single]}; the {percent(advantage.delta)} interval is "
        f"{lower} to {upper}, whichever of them is the best"
        + (f"; {without} {'is' if len(left_out) == 1 else 'are'} not among them" if left_out else "")
    )


def _write(contents: Mapping[Path, bytes]) -> None:
    """Write files, and replace existing ones after all are written.

    The digest of the arrays lets a reader detect files of two exports.
    """
    beside = {path: path.with_name(f"{path.name}.part") for path in contents}
    for path, content in contents.items():
        beside[path].write_bytes(content)
    for path in contents:
        os.replace(beside[path], path)
