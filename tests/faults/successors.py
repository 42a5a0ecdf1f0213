"""Commands that run campaigns of their own beside one that is there, and are killed or get in its way."""

import signal
import sqlite3
from collections.abc import Generator
from contextlib import closing, suppress
from functools import partial

import psutil
from faulty_server import HANGING

from tests.faults.commands import done, killed_at_calls
from tests.faults.kinds import OBJECTIVES
from tests.faults.model_servers import SERVER, Spoils
from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene, problems_of
from tests.faults.strangers import copied, put_in_its_place
from tests.faults.tampering import At, die, hold

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
BOTH = ("sqlite", "postgresql")
KILLED = (-signal.SIGKILL,)
FOUND = (
    "SELECT a.name, e.key, c.outcome, c.reason FROM comparisons c JOIN rounds r ON r.id = c.round_id "
    "JOIN campaigns k ON k.id = r.campaign_id JOIN candidates a ON a.id = c.candidate_a_id "
    "JOIN examples e ON e.id = c.example_id WHERE k.name = '{}' ORDER BY r.number, c.position"
)
FIRST_ENDED = (
    "SELECT 1 FROM decisions d JOIN rounds r ON r.id = d.round_id "
    "WHERE d.stop AND r.campaign_id = (SELECT min(id) FROM campaigns)"
)
TEXTS_TWICE = "SELECT key FROM generations GROUP BY key HAVING count(*) > 1"
NIGHTLY = "nightly.db"
SCHEDULE = ("schedule", "campaign.yaml", "--interval", "5", "--storage", f"sqlite:///{NIGHTLY}")
GATE = ("--set", "selector.name=gate", "--set", "selector.params={}", "--baseline", "one/plain/warm")


@fault("kill -9 of winnow rescore", "best-mean", codes=KILLED, states=SETTLED, databases=BOTH)
def rescore(scene: Scene) -> Meeting:
    done(scene, "run", "campaign.yaml")
    (scene.folder / "judge.yaml").write_text("judge: {type: exact}\n")
    command = ("rescore", "survivor", "--judge", "judge.yaml", "--name", "other", "--storage", scene.storage)
    done(scene, *command)
    whole = _found(scene, "other")
    _prune(scene, "other")
    yield from killed_at_calls(scene, *command, again=partial(_prune, scene, "other"))
    _goes_on(scene, "other", *command)
    assert _found(scene, "other") == whole, "after a kill it comes to something else"
    _prune(scene, "other")


@fault("kill -9 of winnow gate", "best-mean", codes=KILLED, databases=BOTH)
def gate(scene: Scene) -> Meeting:
    command = ("gate", "campaign.yaml", "--set", "name=other", *GATE)
    _ends(scene, *command)
    whole = _found(scene, "other")
    _prune(scene, "other")
    scene.cut_short()
    killed = scene.command(*command, tamperings=[At("before a batch", 4, die)]).ended()
    _ends(scene, *command)
    assert _found(scene, "other") == whole, "after a kill it comes to something else"
    _prune(scene, "other")
    yield killed


@fault("kill -9 of winnow db index", *OBJECTIVES, codes=KILLED)
def index(scene: Scene) -> Meeting:
    scene.cut_short()
    again = partial(put_in_its_place, scene, copied(scene))
    again()
    yield from killed_at_calls(scene, "db", "index", "--storage", scene.storage, again=again)
    assert scene.problems() == []
    done(scene, "db", "index", "--storage", scene.storage)


@fault("db index beside a running campaign", *OBJECTIVES, codes=DONE, states=SETTLED, databases=BOTH)
def index_beside(scene: Scene) -> Meeting:
    run = scene.run(At("before a batch", 3, hold)).held()
    done(scene, "db", "index", "--storage", scene.storage)
    yield run.go().ended()


@fault("kill -9 of winnow schedule within its campaign", "served", codes=KILLED, states=SETTLED)
def schedule(scene: Scene) -> Meeting:
    yield from _schedule_killed(scene, with_campaign=False)


@fault("kill -9 of winnow schedule and of its campaign", "served", codes=KILLED, states=SETTLED)
def schedule_and_campaign(scene: Scene) -> Meeting:
    yield from _schedule_killed(scene, with_campaign=True)


def _schedule_killed(scene: Scene, *, with_campaign: bool) -> Meeting:
    """Kill a schedule in the second round of its first campaign, and serve it again until that is settled.

    A campaign that was left may be at work yet when the schedule is served again, or end for want of Prefect.
    """
    done(scene, "run", "campaign.yaml")
    met = scene.folder / "met"
    SERVER.start(Spoils(fault=HANGING, met=met))
    # Two servers of one home would write to the same file.
    prefect = {"PREFECT_API_URL": "", "PREFECT_HOME": str(scene.folder / "prefect")}
    serving = scene.anew(*SCHEDULE, **prefect).until(met.exists)
    left = psutil.Process(serving.pid).children(recursive=True)
    if with_campaign:
        _kill(left)
    serving.send(signal.SIGKILL).ended()
    SERVER.start()
    again = scene.anew(*SCHEDULE, **prefect)
    again.until(lambda: "survivor-" in again.out and _nightly(scene, FIRST_ENDED))  # it tells of firings
    assert again.send(signal.SIGTERM).code == 0, again.said
    _kill(left)  # a process that was left tells its server of its end for minutes
    ((first,),) = _nightly(scene, "SELECT name FROM campaigns ORDER BY id LIMIT 1")
    assert _nightly(scene, FOUND.format(first)) == _found(scene, "survivor"), "it came to something else"
    assert _nightly(scene, TEXTS_TWICE) == [], "a text was asked for twice"
    assert problems_of(f"sqlite:///{scene.folder}/{NIGHTLY}", scene.folder) == ([], [])
    yield serving


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _nightly(scene: Scene, query: str) -> list[tuple]:
    """What the database of the schedule has."""
    with closing(sqlite3.connect(scene.folder / NIGHTLY)) as database:
        return database.execute(query).fetchall()


def _found(scene: Scene, name: str) -> list[tuple]:
    return scene.stored(FOUND.format(name))


def _goes_on(scene: Scene, name: str, *command: str) -> None:
    """Have a campaign that was killed come to its end, or begin anew where nothing was stored of it."""
    is_stored = scene.stored(f"SELECT 1 FROM campaigns WHERE name = '{name}'")
    done(scene, *(("resume", name, "--storage", scene.storage) if is_stored else command))


def _ends(scene: Scene, *command: str) -> None:
    run = scene.command(*command).ended()
    assert run.code in (*DONE, 4), f"{' '.join(command)}: {run.code}: {run.said}"


def _prune(scene: Scene, name: str) -> None:
    if scene.stored(f"SELECT 1 FROM campaigns WHERE name = '{name}'"):
        where = ("--campaign", name, "--yes", "--storage", scene.storage)
        done(scene, "db", "prune", "--older-than", "0h", *where)
