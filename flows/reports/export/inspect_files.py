"""Write logs of Inspect to a folder, one per candidate, one sample at a time."""

import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from sqlalchemy.orm import Session

from winnow.flows.reports.export.inspect_log import header, log_id, model_name, sample
from winnow.storage.json_types import JsonObject
from winnow.storage.queries.exports import dataset_name, scored_examples, tallied
from winnow.storage.records.outcomes import latest_decision
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.budget import has_ended
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.views import ask

LONGEST_NAME = 80
"""Maximum characters of a campaign's and of a candidate's name in a file name."""


def write_logs(session: Session, campaign: CampaignRecord, folder: Path) -> int:
    """Write the log of every candidate with a score; return their total number of samples."""
    decision = latest_decision(session, campaign.id)
    if decision is None:
        return 0
    dataset = dataset_name(session, campaign.dataset_id)
    is_over = has_ended(session, campaign, decision)
    board = {row["candidate"]: row for row in ask(Look(session, campaign), "leaderboard")}
    folder.mkdir()
    count = 0
    for each in tallied(session, campaign.id):
        rows = scored_examples(session, each["id"])
        first = next(rows)
        standing = {**board[each["name"]], "has_ended": is_over, "decided_at": decision.decided_at}
        beginning = header(campaign, dataset, each, standing, judge=first["judge"])
        model, own_id = model_name(each), log_id(campaign, each)
        samples = (sample(row, model, own_id) for row in chain([first], rows))
        count += _write(folder / _file_name(campaign, each["name"], own_id), beginning, samples)
    return count


def _write(path: Path, beginning: JsonObject, samples: Iterator[JsonObject]) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(_json(beginning).removesuffix("}") + ', "samples": [')
        for count, each in enumerate(samples, start=1):
            file.write(("\n" if count == 1 else ",\n") + _json(each))
        file.write("\n]}\n")
    return count


def _json(value: JsonObject) -> str:
    # Escapes carry what UTF-8 cannot, such as half a surrogate pair in a target.
    return json.dumps(value)


def _file_name(campaign: CampaignRecord, candidate: str, own_id: str) -> str:
    """A log's file name in Inspect's form: time, names and id, with names cut for file systems."""
    begun = campaign.created_at.strftime("%Y-%m-%dT%H-%M-%S+00-00")
    names = "-".join(
        re.sub(r"[^A-Za-z0-9.]+", "-", each)[:LONGEST_NAME] for each in (campaign.name, candidate)
    )
    return f"{begun}_{names}_{own_id}.json"
