"""Write each candidate's results as a log of Inspect, whose logs have one model and one task.

The format is `EvalLog` of inspect_ai 0.3.285 (schema version 2) as JSON; Inspect is not needed to write it. A
missing score is NaN with its reason, as in `Score.unscored`. All ids are digests of names, so that exporting
a campaign twice gives the same logs.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import chain
from pathlib import Path

from sqlalchemy.orm import Session

from winnow.storage.json_types import JsonObject, Row
from winnow.storage.queries.exports import dataset_name, scored_examples, tallied
from winnow.storage.records.outcomes import latest_decision
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.budget import has_ended
from winnow.tasks.campaign.look import Look
from winnow.tasks.engines.chat import as_dicts, from_stored
from winnow.tasks.queries.views import ask

SCHEMA_VERSION = 2
ID_LENGTH = 22
"""Length of an id in Inspect."""
STOP_REASONS = {"stop": "stop", "length": "max_tokens"}
METRIC = "mean"


def model_name(tallied: Row) -> str:
    """Provider and model, such as "vllm/NAME", as in Inspect; the candidate's name if it has no model."""
    model = tallied["model"]
    return f"{model['provider']}/{model['name']}" if model else tallied["name"]


def header(campaign: CampaignRecord, dataset: str, tallied: Row, standing: Row, *, judge: str) -> JsonObject:
    """Everything in a log except its samples.

    Args:
        campaign: The campaign of the candidate.
        dataset: Name of the dataset.
        tallied: The candidate with its totals, from `storage.queries.exports.tallied`.
        standing: The candidate's row of the leaderboard, with `has_ended` and the `decided_at` of the latest
            decision.
        judge: Name of the judge that scored the examples.
    """
    model = model_name(tallied)
    own_id = log_id(campaign, tallied)
    ended = standing["decided_at"].isoformat()
    return {
        "version": SCHEMA_VERSION,
        "status": "success" if standing["has_ended"] else "started",
        "eval": {
            "eval_id": own_id,
            "run_id": _id(campaign.name, campaign.created_at.isoformat()),
            "created": campaign.created_at.isoformat(),
            "task": campaign.name,
            "task_id": own_id,
            "task_args": {"candidate": tallied["name"], "prompt": tallied["prompt"].get("name")},
            "dataset": {"name": dataset, "samples": tallied["comparisons"], "shuffled": True},
            "model": model,
            "model_args": {"sampling": tallied["sampling"]},
            "config": {},
            "packages": {name: str(version) for name, version in campaign.versions.items()},
            "metadata": {"objective": campaign.objective, "seed": campaign.seed},
        },
        "plan": {},
        "results": _results(tallied, standing, judge),
        "stats": {
            "started_at": campaign.created_at.isoformat(),
            "completed_at": ended,
            "model_usage": {model: _usage(tallied)},
        },
    }


def sample(row: Row, model: str, log: str) -> JsonObject:
    """A sample of a log, for one example.

    Args:
        row: A row from `storage.queries.exports.scored_examples`.
        model: The candidate's model; see `model_name`.
        log: Id of the log.
    """
    own_id = _id(log, row["example"])
    messages = _messages(row, own_id, model)
    output = _output(row, model, messages)
    said = row["text"] is not None
    usage = {"model_usage": {model: _usage(row)}, "total_time": row["seconds"]} if said else {}
    return {
        "id": row["example"],
        "epoch": 1,
        "uuid": own_id,
        "input": _input(messages if output["choices"] == [] else messages[:-1]),
        "target": _target(row["targets"] or row["label"] or []),
        "messages": messages,
        "output": output,
        "events": [_model_event(row, model, messages, output)] if said else [],
        "scores": {row["judge"]: _score(row)},
        "metadata": {"round": row["round"]},
        "completed_at": row["decided_at"].isoformat(),
        **usage,
    }


def log_id(campaign: CampaignRecord, tallied: Row) -> str:
    """Id of a candidate's log."""
    return _id(campaign.name, campaign.created_at.isoformat(), tallied["name"])


def _results(tallied: Row, standing: Row, judge: str) -> JsonObject:
    scored = tallied["scored"]
    mean = {"name": METRIC, "value": tallied["outcome_sum"] / scored} if scored else None
    return {
        "total_samples": tallied["comparisons"],
        "completed_samples": tallied["comparisons"],
        "scores": [
            {
                "name": judge,
                "scorer": judge,
                "scored_samples": scored,
                "unscored_samples": tallied["comparisons"] - scored,
                "metrics": {METRIC: mean} if mean else {},
            }
        ],
        # The selector chose the examples, so the plain mean can be biased; these are its own estimates.
        "metadata": {name: standing[name] for name in ("estimate", "lower", "upper", "best")},
    }


def _score(row: Row) -> JsonObject:
    losses = {
        name: row[name]
        for name in ("human_loss", "auto_loss", "unlabelled_loss", "unlabelled_missing")
        if row[name] is not None
    }
    return {
        "value": math.nan if row["outcome"] is None else row["outcome"],
        "answer": row["answer"],
        "explanation": row["detail"],
        "reason": row["reason"],
        "metadata": losses or None,
    }


def _messages(row: Row, sample_id: str, model: str) -> list[JsonObject]:
    """Messages of the prompt, then the answer, as far as they exist."""
    asked: list[JsonObject] = [] if row["prompt"] is None else [*as_dicts(from_stored(row["prompt"]))]
    said: list[JsonObject] = (
        [] if row["text"] is None else [{"role": "assistant", "content": _said(row), "model": model}]
    )
    return [
        {"id": _id(sample_id, str(number), each["role"]), **each}
        for number, each in enumerate([*asked, *said])
    ]


def _input(asked: Sequence[JsonObject]) -> str | list[JsonObject]:
    """The prompt as a text if it is a single user message, else as messages."""
    if [each["role"] for each in asked] == ["user"]:
        return str(asked[0]["content"])
    return list(asked) or ""


def _said(row: Row) -> str | list[JsonObject]:
    """The answer as a text; if the model's reasoning is known, as parts with the reasoning first."""
    if row["reasoning"] is None:
        return str(row["text"])
    return [{"type": "reasoning", "reasoning": row["reasoning"]}, {"type": "text", "text": row["text"]}]


def _output(row: Row, model: str, messages: Sequence[JsonObject]) -> JsonObject:
    if row["text"] is None:
        return {"model": model, "choices": [], "error": row["detail"] or row["reason"]}
    choice = {
        "message": messages[-1],
        "stop_reason": STOP_REASONS.get(row["finish_reason"], "unknown"),
    }
    return {
        "model": model,
        "choices": [choice],
        "completion": row["text"],
        "usage": _usage(row),
        "time": row["seconds"],
    }


def _model_event(row: Row, model: str, messages: Sequence[JsonObject], output: JsonObject) -> JsonObject:
    """The model call as an event, because Inspect's data frames read messages from events."""
    return {
        "event": "model",
        "timestamp": row["decided_at"].isoformat(),
        "model": model,
        "input": messages[:-1],
        "tools": [],
        "tool_choice": "none",
        "config": {},
        "output": output,
    }


def _usage(row: Row) -> JsonObject:
    tokens = {name: row[name] for name in ("input_tokens", "output_tokens")}
    return {**tokens, "total_tokens": sum(tokens.values())}


def _target(targets: Sequence[object]) -> str | list[str]:
    texts = [str(target) for target in targets]
    return texts[0] if len(texts) == 1 else texts


def _id(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:ID_LENGTH]


LONGEST_NAME = 80
"""Maximum characters of each name (campaign, candidate) in a file name."""


def write_logs(session: Session, campaign: CampaignRecord, folder: Path) -> int:
    """Write a log for every candidate with comparisons; return the total number of samples.

    Without a decision, nothing is written and the result is 0.
    """
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
    # JSON escapes can hold what UTF-8 cannot, such as half a surrogate pair in a target.
    return json.dumps(value)


def _file_name(campaign: CampaignRecord, candidate: str, own_id: str) -> str:
    """File name of a log as in Inspect: time, names and id; long names are cut for file systems."""
    begun = campaign.created_at.strftime("%Y-%m-%dT%H-%M-%S+00-00")
    names = "-".join(
        re.sub(r"[^A-Za-z0-9.]+", "-", each)[:LONGEST_NAME] for each in (campaign.name, candidate)
    )
    return f"{begun}_{names}_{own_id}.json"
