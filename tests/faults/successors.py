"""Commands that run campaigns of their own beside one that is there, and are killed or get in its way."""

import signal
from collections.abc import Generator
from functools import partial

from tests.faults.commands import done, killed_at_calls
from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
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
