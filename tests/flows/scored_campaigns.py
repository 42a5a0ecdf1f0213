"""Campaigns of scripted models with known mistakes: wrong never, on one in 40, on every other example."""

import json

import campaign_processes as processes
import pytest
import scripted_engines
from campaign_processes import Kill, rows
from campaigns import write_spec
from certify_campaigns import model, truth
from duel_campaigns import start
from tiny_models import save_tiny_llama
from waiting import PATIENCE_S
from without_prefect import leave_prefect_out

from winnow.flows.reports.summary import campaign_line
from winnow.tasks.campaign.campaign import opened_campaign

N_EXAMPLES = 120
EXACT = {"type": "exact"}
KILLS = (Kill(commit=6, after=True), Kill(commit=9, after=False))


def write_scored(folder, names, selector, *, budget=1_000, judge=EXACT, streaming=True, **stopping):
    """The file of a campaign that scores some of `knows`, `slips` and `guesses` on one prompt each."""
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        save_tiny_llama(folder / name, seed=number)
    with (folder / "data.jsonl").open("w") as file:
        for number in range(N_EXAMPLES):
            row = {"id": f"e{number}", "input": f"{number}", "target": truth(number)}
            file.write(json.dumps(row) + "\n")
    spec = {
        "name": "survivor",
        "objective": "best-mean",
        "seed": 5,
        "storage": f"sqlite:///{folder}/winnow.db",
        "models": [model(name, name) for name in names],
        "prompts": [{"name": "plain", "template": "{{ input }}="}],
        "dataset": {"path": "data.jsonl", "fields": {"id": "id", "input": "input", "target": "target"}},
        "judge": judge,
        "selector": selector,
        "batch_size": 12,
        "streaming": streaming,
        "stopping": {"budget": budget, "delta": 0.05, "epsilon": 0.1, **stopping},
        "execution": {"log_folder": str(folder / "logs")},
    }
    return write_spec(folder, spec)


def decisions_with_kills(folder, spec, kills, *, is_trusted=False):
    """All that a campaign stores, and its decisions, where it was killed so often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        storage = processes.store(spec, is_trusted=is_trusted)
        if kills:
            run_with_kills(folder, storage, kills)
        else:
            run_here(patch, storage)
    decisions = rows(
        folder, "SELECT claim, against_candidate_id, differences_delta FROM decisions ORDER BY round_id"
    )
    return processes.history(folder), decisions


def run_with_kills(folder, storage, kills):
    forks = processes.fork_server()
    for kill in [*kills, None]:
        process = start(forks, folder, storage, kill)
        process.join(PATIENCE_S)
        assert process.exitcode == (0 if kill is None else -9)


def run_here(patch, storage):
    """Run a campaign that nobody kills in this process, which has imported what its judges need."""
    from winnow.flows.run import flow

    leave_prefect_out(patch)
    scripted_engines.provide_all(patch)
    flow.run_campaign(storage, "survivor")


def line_of(storage, name):
    """The line on a stored campaign that `resume --all` and schedules write."""
    with opened_campaign(storage, name) as campaign:
        return campaign_line(campaign)
