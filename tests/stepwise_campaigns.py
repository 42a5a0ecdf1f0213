"""Campaigns run step by step in this process, on scripted engines: things can happen between two steps."""

import datetime as dt
import json
from contextlib import contextmanager

import yaml

from winnow.storage.admin import prune as pruning
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.answer.earlier_campaigns import seen_by
from winnow.tasks.campaign.lease import is_gone, now
from winnow.tasks.campaign.session import running
from winnow.tasks.objectives.round_functions import generate_round, judge_round
from winnow.tasks.rounds.plan import plan_round
from winnow.tasks.rounds.record import decide_round, record_round
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign, reopen_campaign

N_EXAMPLES = 8


def write_campaign(folder, name, *, numbers=range(N_EXAMPLES), **changes):
    """The file of a campaign whose one round asks two models, each with two prompts, all examples.

    Args:
        folder: Gets the checkpoints, which hold no weights, the data and the spec.
        name: Of the campaign.
        numbers: The examples; those of other campaigns may be among them.
        changes: Keys of the spec to set; None takes one away.
    """
    for model in ("one", "two", "judge"):
        (folder / model).mkdir(exist_ok=True)
        (folder / model / "config.json").write_text(json.dumps({"name": model}))
    rows = [{"id": f"e{number}", "input": f"{number}", "target": "abcdefg"[number % 7]} for number in numbers]
    data = folder / f"{name}.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {
        "name": name,
        "objective": "best-mean",
        "seed": 3,
        "models": [_model(folder, "one", "knows"), _model(folder, "two", "guesses")],
        "prompts": [
            {"name": "plain", "template": "{{ input }}="},
            {"name": "asked", "template": "Q {{ input }}:"},
        ],
        "dataset": {"path": str(data), "fields": {"id": "id", "input": "input", "target": "target"}},
        "judge": {"type": "exact"},
        "selector": {"name": "row-mean"},
        "batch_size": 4 * len(rows),
        "stopping": {"budget": 4 * len(rows), "delta": 0.05},
    }
    path = folder / f"{name}.yaml"
    spec = {key: value for key, value in {**spec, **changes}.items() if value is not None}
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return path


def write_duels(folder, name, **changes):
    """The same as duels before a model that prefers what it is shown first."""
    judge = {"type": "llm", "models": [_model(folder, "judge", "partial")]}
    duels = {"objective": "best-duel", "judge": judge, "selector": {"name": "llm-po"}, "batch_size": 12}
    return write_campaign(folder, name, **{**duels, "stopping": {"budget": 12, "delta": 0.05}, **changes})


def _model(folder, name, provider):
    return {"name": name, "provider": provider, "model": str(folder / name)}


@contextmanager
def begun(database, path):
    """A stored campaign that is being run, from its file."""
    record = open_campaign(database, check_campaign_file(str(path)))
    with running(database, *reopen_campaign(database, record.name, database.url)) as campaign:
        yield campaign


class Steps:
    """One round of a running campaign, each step when it is called."""

    def __init__(self, campaign):
        self._campaign = campaign
        self.round = plan_round(campaign)

    def generate(self):
        self._texts = generate_round(self._campaign, self.round)

    def judge(self):
        self._comparisons = judge_round(self._campaign, self.round, self._texts)

    def record(self):
        decision = decide_round(self._campaign, self.round, self._comparisons)
        record_round(self._campaign, self.round, self._comparisons, decision)


STEPS = ("generate", "judge", "record")


def run_round(campaign, *, between=None):
    """Run a round; `between` maps the name of a step to what happens right after it."""
    steps = Steps(campaign)
    for name in STEPS:
        getattr(steps, name)()
        (between or {}).get(name, lambda: None)()


def run_campaign(database, path, *, between=None):
    """Run the one round of a campaign."""
    with begun(database, path) as campaign:
        run_round(campaign, between=between)


def prune(database, name):
    """Delete a campaign as `winnow db prune --campaign NAME` does, however young it is."""
    with database.writing() as session:
        campaign_records.get_campaign(session, name)
        found = pruning.prunable(session, before=now() + dt.timedelta(days=1), name=name)
        pruning.prune(session, found, is_gone=is_gone, seen_by=seen_by)
