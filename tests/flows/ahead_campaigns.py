"""Campaigns of scripted engines with several rounds in flight, run by plain calls and killed at commits."""

import json
import threading
from contextlib import closing, suppress

import campaign_processes as processes
import numpy as np
import yaml
from sqlalchemy import event
from sqlalchemy.orm import Session
from stored_campaigns import store_checked

from winnow.algorithms.protocols import Batch
from winnow.flows.run import flow
from winnow.storage.engine.database import open_database
from winnow.storage.records import rounds as round_records
from winnow.storage.records.candidate_states import STANDINGS, known_after
from winnow.tasks.engines.errors import EngineDied
from winnow.tasks.objectives.runner import Runner
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import reopen_campaign

N_EXAMPLES = 60
ENOUGH = 90
"""Processes after which a campaign that does not end is stuck."""


class Killed(BaseException):
    """The process is gone."""


def write(folder, *, name="ahead", n_models=2, **changes):
    """The file of a campaign of four candidates on scripted engines."""
    folder.mkdir(exist_ok=True)
    models = []
    for number in range(n_models):
        model = folder / f"model-{number}"
        model.mkdir(exist_ok=True)
        (model / "config.json").write_text(json.dumps({"name": model.name}))
        models.append({"name": f"m{number}", "provider": "joining", "model": str(model)})
    rows = [{"id": f"e{n}", "input": f"{n}", "target": "abcdefg"[n % 7]} for n in range(N_EXAMPLES)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {
        "name": name,
        "objective": "best-mean",
        "seed": 5,
        "storage": f"sqlite:///{folder}/winnow.db",
        "models": models,
        "prompts": [
            {"name": "plain", "template": "{{ input }}="},
            {"name": "asked", "template": "Q {{ input }}:"},
        ],
        "dataset": {
            "path": str(folder / "data.jsonl"),
            "fields": {"id": "id", "input": "input", "target": "target"},
        },
        "judge": {"type": "exact"},
        "selector": {"name": "champion"},
        "batch_size": 8,
        "lookahead": 2,
        "stopping": {"budget": 240, "delta": 0.05},
        "execution": {"log_folder": str(folder / "logs")},
        **changes,
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return path


def stored(path):
    """A campaign's file, checked and stored."""
    checked = check_campaign_file(str(path))
    store_checked(checked)
    return checked.spec


def run(path):
    """Run a campaign to its end, or go on with it."""
    spec = stored(path)
    flow.run_campaign(spec.storage, spec.name)


def is_killed(path, commit, *, after):
    """Go on with a campaign until this commit, counted from the one of the lease, is about to be made or was.

    Nothing is committed from then on. Returns whether it came so far.
    """
    spec, made, killed = stored(path), [], []

    def count(session):
        is_ours = threading.current_thread() is threading.main_thread()
        if is_ours and session.get_bind().get_execution_options().get("winnow_writes"):
            made.append(session)
            if killed or len(made) == commit:
                killed.append(session)
                raise Killed

    moment = "after_commit" if after else "before_commit"
    event.listen(Session, moment, count)
    try:
        with suppress(Killed):
            flow.run_campaign(spec.storage, spec.name)
    finally:
        event.remove(Session, moment, count)
    return bool(killed)


def history(folder):
    """All that must be the same however often it was killed, and after which round each was planned."""
    planned = processes.rows(folder, "SELECT number, planned_after FROM rounds ORDER BY number")
    return {**processes.history(folder), "planned": planned}


TURNS = [(3, False), (2, True), (2, True)]
"""Until then a process commits its lease and one thing more; each boundary meets both in some round."""


def finish_with_kills(path, turns=TURNS):
    """Go on with a campaign to its end, killed at every commit boundary; return how often that was."""
    for kills in range(ENOUGH):
        commit, after = turns[kills % len(turns)]
        if not is_killed(path, commit, after=after):
            return kills
    raise AssertionError(f"not finished after {ENOUGH} processes")


def most_in_flight(found):
    return max(number - after for number, after in found["planned"])


def decided(folder):
    """What was stored of each decision: who leads, estimates, statuses."""
    stored = processes.rows(
        folder,
        "SELECT d.best_candidate_id, d.round_id, r.campaign_id "
        "FROM decisions d JOIN rounds r ON r.id = d.round_id ORDER BY d.round_id",
    )
    found = []
    with closing(open_database(f"sqlite:///{folder}/winnow.db")) as database, database.reading() as session:
        for best, round_id, campaign_id in stored:
            known = known_after(session.connection(), campaign_id, round_id, [STANDINGS])
            estimates, _, _, status = known.columns[STANDINGS]
            found.append((best - 1, estimates, status))
    return found


def decided_again(path):
    """The same of a fresh selector that is told the stored rounds alone."""
    spec, found = check_campaign_file(str(path)).spec, []
    with closing(open_database(spec.storage)) as database:
        record, checked = reopen_campaign(database, spec.name, spec.storage)
        selector = checked.create_selector()
        with database.reading() as session:
            for told in round_records.told_rounds(session, record.id):
                batch = Batch(np.array(told.arms), np.array(told.examples))
                selector.tell(batch, checked.outcomes(told.outcomes, told.losses, told.metrics))
                decision = selector.decision()
                known = [None if np.isnan(each) else each for each in decision.estimates]
                found.append((decision.best, known, list(decision.status)))
    return found


def persistent(deaths):
    """Run rounds as `flow.run_rounds` does, again each time that an engine died, which is noted down."""

    def run_rounds(campaign, callback):
        with Runner(campaign, callback) as runner:
            while True:
                try:
                    return runner.run()
                except EngineDied as error:
                    deaths.append(error)

    return run_rounds
