"""kill -9 at commits, then resume: the same rounds, texts and decisions, nothing made twice.

`make faults` kills at random moments, and at every system call of a round.
"""

import os
import signal
import time

import campaign_processes as processes
import pytest
from campaign_processes import Kill
from postgres_server import postgres_server
from waiting import PATIENCE_S

BUDGET = 24
"""Three rounds: the first, the last, and one between them."""
SEED = 12
"""One by which some outputs are right."""
ENOUGH = 60
"""Processes after which a campaign that does not end is stuck."""


@pytest.fixture(scope="module")
def forks():
    return processes.fork_server()


@pytest.fixture(scope="module")
def uninterrupted(forks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    storage = written(folder)
    process = processes.start(forks, folder, storage)
    process.join(PATIENCE_S)
    assert process.exitcode == 0
    return processes.history(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def prepared(request, tmp_path):
    """The storage URL of a campaign that is to be run from `tmp_path`."""
    if request.param == "sqlite":
        return written(tmp_path)
    return written(tmp_path, request.getfixturevalue("postgresql").new_database())


@pytest.fixture
def server_of(prefect_api):
    """The Prefect server that campaigns in a file are flow runs of; those in PostgreSQL run without."""
    return lambda storage: prefect_api if storage.startswith("sqlite") else None


def written(folder, storage=None):
    """Store a campaign, by default in a file; return the URL of its database."""
    return processes.store(processes.write_campaign(folder, storage=storage, budget=BUDGET, seed=SEED))


def assert_nothing_is_made_twice(folder, stored_before):
    asked = processes.asked_texts(folder)
    assert len(asked) == len(set(asked))
    assert not set(asked) & set(stored_before)


def killed_again_and_again(forks, folder, storage, kill_of_process, **prefect):
    """Resume until the campaign ends, each process killed as told; return the number of kills."""
    for kills in range(ENOUGH):
        stored_before = processes.stored_texts(folder)
        process = processes.start(forks, folder, storage, kill_of_process(kills), **prefect)
        process.join(PATIENCE_S)
        assert_nothing_is_made_twice(folder, stored_before)
        assert process.exitcode == -9
        if processes.has_ended(folder):
            return kills + 1
    raise AssertionError(f"not finished after {ENOUGH} processes")


def test_the_campaign_has_enough_rounds_and_groups_to_be_worth_killing(uninterrupted):
    assert len(uninterrupted["rounds"]) == BUDGET // processes.BATCH_SIZE == 3
    assert len(uninterrupted["comparisons"]) == BUDGET == len(uninterrupted["generations"])
    assert len({outcome for *_, outcome, _, _, _ in uninterrupted["comparisons"]}) > 1


# A process commits its lease, then one thing more, and dies right after that or as it is about to go on.
BEFORE, AFTER = Kill(commit=3, after=False), Kill(commit=2, after=True)
TURNS = [BEFORE, AFTER, AFTER]
"""Three, which no round's number of commits is a multiple of: each boundary meets both in some round."""


def test_killed_at_every_commit_boundary(forks, uninterrupted, prepared, server_of, tmp_path):
    kills = killed_again_and_again(
        forks, tmp_path, prepared, lambda kills: TURNS[kills % len(TURNS)], prefect_api=server_of(prepared)
    )
    assert kills >= 10
    assert processes.history(tmp_path) == uninterrupted


def test_killed_amid_the_several_texts_of_a_pair_ends_as_uninterrupted(forks, tmp_path):
    histories = []
    for name, kills in (("whole", [None]), ("killed", [Kill(commit=4, after=True), None])):
        folder = tmp_path / name
        folder.mkdir()
        spec = processes.write_campaign(folder, budget=processes.BATCH_SIZE)
        spec.write_text(spec.read_text() + "samples: {n: 2, reduce: pass@2}\n")
        storage = processes.store(spec)
        for kill in kills:
            stored_before = processes.stored_texts(folder)
            process = processes.start(forks, folder, storage, kill)
            process.join(PATIENCE_S)
            assert_nothing_is_made_twice(folder, stored_before)
            assert process.exitcode == (0 if kill is None else -9)
        assert bool(stored_before) == (name == "killed")  # it was killed amid its texts
        outputs = processes.rows(
            folder,
            "SELECT o.comparison_id, o.number, g.key, o.score FROM outputs o "
            "JOIN generations g ON g.id = o.generation_id ORDER BY 1, 2",
        )
        assert len(outputs) == 2 * processes.BATCH_SIZE
        histories.append((processes.history(folder), outputs))
    whole, killed = histories
    assert killed == whole


def test_killed_while_a_model_cannot_be_loaded_ends_as_uninterrupted(forks, tmp_path):
    histories = []
    for name, is_killed in (("whole", False), ("killed", True)):
        folder = tmp_path / name
        folder.mkdir()
        spec = processes.write_campaign(folder, budget=BUDGET)
        (folder / "model-2" / "model.safetensors").write_bytes(b"these are no weights")
        storage = processes.store(spec)
        for kills in range(ENOUGH):
            # Groups of a model that is not there are commits as well: a process gets as far as a round.
            kill = Kill(commit=6 + kills % 4, after=False) if is_killed else None
            process = processes.start(forks, folder, storage, kill)
            process.join(PATIENCE_S)
            if process.exitcode == 0:
                break
            assert process.exitcode == -9
        assert kills >= 3 * is_killed
        assert processes.rows(folder, "SELECT sum(answered) FROM decisions") == [(BUDGET,)]
        histories.append(processes.history(folder))
    whole, killed = histories
    assert len(whole["comparisons"]) > BUDGET
    assert killed == whole


def test_killed_before_every_commit_on_two_devices_ends_as_on_one(forks, uninterrupted, tmp_path):
    spec = processes.write_campaign(tmp_path, budget=BUDGET, seed=SEED)
    one, two = "max_loaded: 2", "max_loaded: 1, devices: [0, 1]"
    assert one in spec.read_text()
    spec.write_text(spec.read_text().replace(one, two))
    storage = processes.store(spec)
    kills = killed_again_and_again(forks, tmp_path, storage, lambda _: Kill(commit=3, after=False))
    assert kills >= 10
    assert processes.history(tmp_path) == uninterrupted
    used = {devices for (devices,) in processes.rows(tmp_path, "SELECT devices FROM model_loads")}
    assert used == {"[0]", "[1]"}


def test_killed_with_rounds_in_flight_ends_as_uninterrupted(forks, uninterrupted, prefect_api, tmp_path):
    """The selector's plans follow from the seed alone, so that they are the same without lookahead."""
    spec = processes.write_campaign(tmp_path, budget=BUDGET, seed=SEED)
    spec.write_text(spec.read_text() + "lookahead: 1\n")
    storage = processes.store(spec)
    exits = [-9]
    while exits[-1] == -9 and len(exits) < ENOUGH:
        kill = Kill(commit=6, after=False)
        process = processes.start(forks, tmp_path, storage, kill, prefect_api=prefect_api)
        process.join(PATIENCE_S)
        exits.append(process.exitcode)
    assert exits[-1] == 0
    assert len(exits) > 4
    assert processes.history(tmp_path) == uninterrupted
    assert processes.rows(tmp_path, "SELECT max(number - planned_after) FROM rounds") == [(1,)]


def test_a_server_killed_within_a_round_ends_the_run_and_resume_completes_it(
    forks, uninterrupted, prefect_api, tmp_path
):
    with postgres_server(fsync="on") as server:
        storage = written(tmp_path, server.new_database())
        process = processes.start(forks, tmp_path, storage, prefect_api=prefect_api)
        while not processes.rows(tmp_path, "SELECT 1 FROM generations"):
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGSTOP)
        server.kill()
        os.kill(process.pid, signal.SIGCONT)
        process.join(PATIENCE_S)
        assert process.exitcode == 1
        server.start()
        assert not processes.has_ended(tmp_path)
        stored_before = processes.stored_texts(tmp_path)
        again = processes.start(forks, tmp_path, storage, prefect_api=prefect_api)
        again.join(PATIENCE_S)
        assert again.exitcode == 0
        assert_nothing_is_made_twice(tmp_path, stored_before)
        assert processes.history(tmp_path) == uninterrupted


def test_a_second_process_is_refused_and_changes_nothing(forks, prepared, tmp_path):
    first = processes.start(forks, tmp_path, prepared)
    while not processes.rows(tmp_path, "SELECT 1 FROM leases"):
        time.sleep(0.001)
    # Frozen, it is still alive and holds the lease, however fast it would have finished.
    os.kill(first.pid, signal.SIGSTOP)
    second = processes.start(forks, tmp_path, prepared)
    second.join(PATIENCE_S)
    os.kill(first.pid, signal.SIGCONT)
    first.join(PATIENCE_S)
    assert (first.exitcode, second.exitcode) == (0, 1)
    assert processes.rows(tmp_path, "SELECT token FROM leases") == [(1,)]
