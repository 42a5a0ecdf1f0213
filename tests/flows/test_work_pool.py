"""Two workers of a pool, PostgreSQL and a Prefect server: campaigns side by side, one taken over."""

import os
import signal

import campaign_processes as processes
import psutil
import psycopg
import pytest
import work_pools
from campaigns import winnow
from waiting import eventually, until
from without_prefect import leave_prefect_out

from winnow.flows.prefect_support import client

NAMES = {"alpha": 11, "beta": 12}
"""Campaigns and their seeds."""

ROUNDS = processes.BUDGET // processes.BATCH_SIZE

OFTEN_S = 0.05
"""Seconds between two looks at a campaign, whose server alone has it last for a second and a half."""

LOST_S = 120.0
"""Seconds after which an event that Prefect has not acted upon is taken for lost."""


@pytest.fixture
def folder(tmp_path):
    """Two campaigns on the same model and data, kept in SQLite unless somebody says otherwise."""
    with processes.slow_server(seconds=0.2) as server:
        yield written(tmp_path, server.url)


def written(tmp_path, url):
    spec = processes.write_campaign(tmp_path)
    processes.have_served(spec, url)
    text = spec.read_text()
    for name, seed in NAMES.items():
        changed = text.replace("name: survivor", f"name: {name}").replace("seed: 11", f"seed: {seed}")
        (tmp_path / f"{name}.yaml").write_text(changed)
    return tmp_path


@pytest.fixture
def shared(folder, postgresql):
    """The database of the workers."""
    url = postgresql.new_database()
    assert winnow(folder, "db", "upgrade", "--storage", url).returncode == 0
    return url


@pytest.fixture
def pool(prefect_api, folder, shared, monkeypatch):
    """A pool on which both campaigns are scheduled, for a time that does not come."""
    # A machine may take minutes until a worker stands beside what is frozen, which is silent meanwhile.
    monkeypatch.setattr(client, "BEATS_MISSED", 400)
    name = work_pools.make_pool(f"pool-{os.getpid()}")
    for campaign in NAMES:
        where = ["--work-pool", name, "--storage", shared]
        result = winnow(folder, "schedule", f"{campaign}.yaml", "--cron", "0 0 1 1 *", *where)
        assert result.returncode == 0, result.stderr
        assert f"prefect worker start --pool {name} --type process" in result.stdout
    return name


def decisions(folder, storage, name):
    """All that was asked, decided and known, by names and not by the ids of a database."""
    (folder / processes.STORAGE).write_text(storage)
    of = f"JOIN campaigns k ON k.id = r.campaign_id WHERE k.name = '{name}' ORDER BY r.number"
    queries = (
        f"SELECT r.number, r.arms, r.examples FROM rounds r {of}",
        "SELECT r.number, c.name, d.stop, d.reason FROM decisions d JOIN rounds r ON r.id = d.round_id "
        f"LEFT JOIN candidates c ON c.id = d.best_candidate_id {of}",
        f"SELECT * FROM v_standings WHERE campaign = '{name}' ORDER BY round, candidate",
    )
    return [processes.rows(folder, query) for query in queries]


def holder(shared, name):
    """The process that holds the lease of a campaign, as soon as it has had a text made."""
    query = (
        "SELECT l.pid FROM leases l JOIN campaigns k ON k.id = l.campaign_id JOIN rounds r "
        "ON r.campaign_id = k.id JOIN generations g ON g.round_id = r.id "
        "WHERE k.name = %s AND l.released_at IS NULL LIMIT 1"
    )
    with psycopg.connect(shared.replace("+psycopg", ""), autocommit=True) as connection:
        # One connection for all, as they take long to make.
        (pid,) = until(lambda: connection.execute(query, [name]).fetchone(), every_s=OFTEN_S)
    return pid


def freeze(shared, pid):
    """Stop the process that writes to a database, at a moment at which it keeps nobody from writing."""
    query = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'"
    )
    with psycopg.connect(shared.replace("+psycopg", ""), autocommit=True) as connection:

        def is_idle():
            os.kill(pid, signal.SIGSTOP)
            # What it sent before is answered by then, or waits for more of its transaction.
            if connection.execute("SELECT pg_sleep(0.05)") and connection.execute(query).fetchone() == (0,):
                return True
            os.kill(pid, signal.SIGCONT)
            return False

        until(is_idle, every_s=0.003)


def started_by(pid, worker):
    return worker.pid in {parent.pid for parent in psutil.Process(pid).parents()}


def has_ended(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_killed_worker_is_replaced_by_the_other_one_and_nothing_is_decided_otherwise(
    folder, shared, pool, postgresql, tmp_path_factory, monkeypatch
):
    logs = tmp_path_factory.mktemp("logs")
    (folder / processes.STORAGE).write_text(shared)

    def is_sent():
        return len(work_pools.runs_of("resume-all/alpha")) > 1

    with work_pools.worker(pool, logs / "one", limit=1) as one:
        first = work_pools.submit("scheduled-campaign/alpha", campaign="alpha")
        running = holder(shared, "alpha")
        freeze(shared, running)  # however fast, it is still at it when the others come
        frozen = "UPDATE leases SET lifetime_s = lifetime_s + 3600"
        postgresql.execute(frozen, shared.rpartition("/")[2])  # as its heartbeat would have done
        assert started_by(running, one)
        with work_pools.worker(pool, logs / "two", limit=2) as two:
            beside = work_pools.submit("scheduled-campaign/beta", campaign="beta")
            again = work_pools.submit("scheduled-campaign/alpha", campaign="alpha")
            started = holder(shared, "beta")
            assert started_by(started, two)
            assert work_pools.ended(beside).is_completed()
            refused = work_pools.ended(again)
            assert (refused.name, refused.type.value) == ("Skipped", "COMPLETED")
            assert f"'alpha' is being run by process {running}" in refused.message

            work_pools.kill(one)
            until(lambda: has_ended(running))
            assert work_pools.state_of(first).is_running()  # who could have told Prefect?
            assert len(decisions(folder, shared, "alpha")[1]) < ROUNDS
            resumed = work_pools.ended(work_pools.submit("resume-all/alpha"))
            assert resumed.is_completed()
            assert resumed.message.startswith("alpha: undecided")
            assert work_pools.state_of(first).is_crashed()
            # Prefect's automation heard of the crash and sent somebody of its own. A server that is very busy
            # may lose an event, which is Prefect's to mend: it then has to hear of another crash.
            if not eventually(is_sent, every_s=work_pools.RARELY_S, patience_s=LOST_S):
                work_pools.crash("scheduled-campaign/alpha")
                until(is_sent, every_s=work_pools.RARELY_S)
    leave_prefect_out(monkeypatch)  # by whom they are decided alone is no matter
    for name in NAMES:
        assert winnow(folder, "run", f"{name}.yaml", "--storage", "sqlite:///alone.db").returncode == 3
        alone = decisions(folder, f"sqlite:///{folder}/alone.db", name)
        assert decisions(folder, shared, name) == alone
        assert len(alone[1]) == ROUNDS
