"""Campaigns of models that servers run, without Prefect: their rounds are run by plain calls."""

import json
from pathlib import Path

from winnow.tasks.campaign.session import running
from winnow.tasks.objectives.round_functions import generate_round
from winnow.tasks.objectives.runner import Runner
from winnow.tasks.rounds.plan import plan_round
from winnow.tasks.setup.check import check_campaign
from winnow.tasks.setup.open_campaign import open_campaign, reopen_campaign
from winnow.tasks.spec.campaign import CampaignSpec

N_EXAMPLES = 6


def write_data(folder: Path) -> None:
    """Six examples, whose targets are letters."""
    rows = [{"id": f"e{i}", "input": f"{i} plus", "target": "abcdef"[i]} for i in range(N_EXAMPLES)]
    (folder / "letters.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def served_model(url, name="one", **keys):
    """A model that a server runs; greedy unless its `generate_config` says otherwise."""
    return {"name": name, "provider": "openai", "model": "served", "model_base_url": url} | keys


def served_spec(*models, name="letters", prompts=("{{ input }}=", "{{ input }}:"), **keys):
    """A best-mean campaign that fills its whole grid in rounds of four."""
    spec = {
        "name": name,
        "objective": "best-mean",
        "seed": 7,
        "models": list(models),
        "prompts": [{"name": f"p{i}", "template": text} for i, text in enumerate(prompts)],
        "dataset": {"path": "letters.jsonl", "fields": {"id": "id", "input": "input", "target": "target"}},
        "judge": {"type": "contains"},
        "selector": {"name": "row-mean", "params": {"variant": "paper"}},  # leaves nobody out
        "batch_size": 4,
        "stopping": {"budget": 1000, "delta": 0.05},
        "execution": {"max_retries": 0, "max_restarts": 0, "log_folder": "logs"},
    }
    return CampaignSpec.model_validate(spec | keys)


def begun(database, spec):
    """Store a campaign, or find it again, as `winnow run` does; the record and the checked campaign."""
    open_campaign(database, check_campaign(spec))
    return reopen_campaign(database, spec.name, database.url)


def run(database, spec, *, rounds=1000):
    """Run at most so many rounds, as a process of their own would."""
    record, checked = begun(database, spec)
    with running(database, record, checked) as campaign, Runner(campaign) as runner:
        for _ in range(rounds):
            if runner.run_round():
                break
    return record


def die_before_judging(database, spec):
    """Begin the next round, and end when its texts are committed."""
    record, checked = begun(database, spec)
    with running(database, record, checked) as campaign:
        generate_round(campaign, plan_round(campaign))
    return record
