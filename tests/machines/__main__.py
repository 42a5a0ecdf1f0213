"""A Ray cluster over two machines and PostgreSQL beside them; one machine dies, and the campaign goes on.

    python -m tests.machines --out FOLDER [--provider vllm]

Needs root: the machines are namespaces of this one (see `machine`). Each campaign below has engines on
both. Once half of its texts are stored, a machine is switched off: first its network, then all its processes.

- The machine with an engine alone dies: the campaign goes on where it runs, on the machine that is left.
- The machine of the campaign dies, and of the cluster's head: another cluster is begun on the machine that is
  left, and the campaign is resumed there.

Both have to end with the rounds, texts, comparisons and decisions of the same campaign left alone, without a
cluster, and `winnow db check` has to find nothing.
"""

import argparse
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "flows")]

import campaign_processes as processes  # noqa: E402
from ray_clusters import ACTOR, on_ray  # noqa: E402

from tests.benchmarks.tables import Row, told, write  # noqa: E402
from tests.machines.machine import GATEWAY, NETWORK, Machine, machines, network  # noqa: E402
from tests.postgres_server import PostgresServer, postgres_server  # noqa: E402

BUDGET = 120
PATIENCE_S = 900.0
RAY = str(Path(sys.executable).parent / "ray")
RAY_PORT = 6379
DECIDED = (0, 3)
HELD = "is being run by"
"""What `winnow resume` says as long as the lease of a machine that is gone has not run out."""


class Trial:
    """A campaign in a folder and a database of its own, on two machines.

    Args:
        folder: Gets the models, the data, the spec and what the machines print.
        server: Holds its database.
        provider: Of its two models.
        on_cluster: Whether its engines are Ray's.
    """

    def __init__(self, folder: Path, server: PostgresServer, provider: str, *, on_cluster: bool) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.storage = server.new_database().replace("127.0.0.1", GATEWAY)
        spec = processes.write_campaign(folder, provider=provider, storage=self.storage, budget=BUDGET)
        if on_cluster:
            on_ray(spec, "auto")
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT / ".package"),
            "PREFECT_HOME": str(folder / "prefect"),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
            "WINNOW_STORAGE": self.storage,
        }

    def winnow(self, machine: Machine, *words: str) -> subprocess.Popen[str]:
        """A command of Winnow's on a machine."""
        return self.start(machine, sys.executable, "-m", "winnow.flows.main", *words)

    def ray(self, machine: Machine, *words: str) -> None:
        """Have a machine join a cluster, or begin one."""
        room = ("--num-cpus=2", f"--object-store-memory={100 * 2**20}", "--disable-usage-stats")
        joined = self.start(machine, RAY, "start", f"--node-ip-address={machine.address}", *room, *words)
        ended(joined, "ray start")

    def n_texts(self) -> int:
        """Stored so far."""
        try:
            return int(processes.rows(self.folder, "SELECT count(*) FROM generations")[0][0])
        except Exception:  # there are no tables yet
            return 0

    def start(self, machine: Machine, *command: str) -> subprocess.Popen[str]:
        """Any command on a machine."""
        return machine.start(*command, environment=self.environment, folder=self.folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--provider", choices=["transformers", "vllm"], default="transformers")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=given.out))
    with network(), database_server() as server:
        rows = told(_trials(folder, server, given.provider))
    shutil.rmtree(folder)  # it stays where something fails
    write("machines", {"machines": "One of two machines dies"}, {"machines": rows}, given.out)


def _trials(folder: Path, server: PostgresServer, provider: str) -> Generator[Row, None, None]:
    alone = Trial(folder / "alone", server, provider, on_cluster=False)
    with machines("first") as [first]:
        ended(alone.winnow(first, "run", "campaign.yaml"), "winnow run", codes=DECIDED)
    whole = processes.history(alone.folder)
    for name, goes_on in (("with an engine", _engine_lost), ("of the campaign", _campaign_lost)):
        trial = Trial(folder / name.replace(" ", "-"), server, provider, on_cluster=True)
        with machines("first", "second") as [first, second]:
            yield {"the machine that dies": f"the one {name}", **goes_on(trial, first, second, whole)}


def _engine_lost(trial: Trial, first: Machine, second: Machine, whole: Mapping[str, object]) -> Row:
    campaign = begin(trial, first, second)
    stored = until_half(trial, first, second)
    second.switch_off()
    start = time.perf_counter()
    ended(campaign, "winnow run", codes=DECIDED)
    return judged(trial, first, whole, stored, start)


def _campaign_lost(trial: Trial, first: Machine, second: Machine, whole: Mapping[str, object]) -> Row:
    campaign = begin(trial, first, second)
    stored = until_half(trial, first, second)
    first.switch_off()
    campaign.wait()
    start = time.perf_counter()
    ended(trial.start(second, RAY, "stop", "--force"), "ray stop")
    trial.ray(second, "--head", f"--port={RAY_PORT}", "--include-dashboard=false")
    while trial.winnow(second, "resume", "survivor", "--trust").wait(PATIENCE_S) not in DECIDED:
        if HELD not in (log := (trial.folder / "second.log").read_text()).splitlines()[-1]:
            raise SystemExit(f"winnow resume failed: {log[-2000:]}")
        time.sleep(5.0)
    return judged(trial, second, whole, stored, start)


def begin(trial: Trial, first: Machine, second: Machine) -> subprocess.Popen[str]:
    """Begin the campaign on the first machine, with a cluster over both."""
    trial.ray(first, "--head", f"--port={RAY_PORT}", "--include-dashboard=false")
    trial.ray(second, f"--address={first.address}:{RAY_PORT}")
    return trial.winnow(first, "run", "campaign.yaml")


def until_half(trial: Trial, *both: Machine) -> int:
    """Wait until half of the texts are stored, and engines have been on both machines; how many there are."""
    seen: set[str] = set()
    give_up = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up:
        seen |= {each.name for each in both if any(each.processes(ACTOR))}
        if (stored := trial.n_texts()) >= BUDGET // 2:
            if len(seen) < len(both):
                raise SystemExit(f"engines were on {sorted(seen)} alone")
            return stored
        time.sleep(0.05)
    raise SystemExit(f"half of the texts were not stored within {PATIENCE_S:g} s; see {trial.folder}")


def judged(trial: Trial, machine: Machine, whole: Mapping[str, object], stored: int, start: float) -> Row:
    """What became of a campaign that has ended, held against the one left alone."""
    seconds = time.perf_counter() - start
    ended(trial.winnow(machine, "db", "check"), "winnow db check")
    found = processes.history(trial.folder)
    differing = [name for name in whole if found[name] != whole[name]]
    return {
        "texts stored by then": f"{stored} of {len(found['generations'])}",
        "from then to the end": f"{seconds:.0f} s",
        "beside the campaign left alone": f"differs in {', '.join(differing)}" if differing else "the same",
    }


def ended(process: subprocess.Popen[str], what: str, codes: Collection[int] = (0,)) -> None:
    """Wait for a command, which has to end well."""
    if (code := process.wait(PATIENCE_S)) not in codes:
        raise SystemExit(f"{what} ended with {code}")


@contextmanager
def database_server() -> Generator[PostgresServer, None, None]:
    """PostgreSQL on this machine, for those in the network."""
    with postgres_server(listen_addresses="*", fsync="on") as server:
        rule = f"host all all {NETWORK}.0/24 trust\n"
        with (server.folder / "data" / "pg_hba.conf").open("a") as access:
            access.write(rule)
        server.execute("SELECT pg_reload_conf()")
        yield server


if __name__ == "__main__":
    main()
