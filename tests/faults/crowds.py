"""Many processes at the same moment, and many campaigns in one database."""

import json
from collections.abc import Callable, Generator, Sequence

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, STOPPED, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, die

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
BOTH = ("sqlite", "postgresql")
MANY = 10
CAMPAIGNS = 1_000


@fault(
    "resume --all from ten processes at once", *OBJECTIVES, codes=(*DONE, 1), states=SETTLED, databases=BOTH
)
def resumed_by_ten(scene: Scene) -> Meeting:
    scene.cut_short()
    yield _last(lambda: scene.command("resume", "--all", "--storage", scene.storage), codes=DONE)


@fault("ten processes begin the campaign in a new database", "best-mean", "certify", codes=(*DONE, 1),
       states=SETTLED, databases=BOTH)  # fmt: skip
def begun_by_ten(scene: Scene) -> Meeting:
    yield _last(scene.run, codes=(*DONE, 1))


@fault("ten processes resume it after a kill", "best-duel", "route", codes=(*DONE, 1), states=SETTLED,
       databases=BOTH)  # fmt: skip
def resumed_after_a_kill(scene: Scene) -> Meeting:
    scene.cut_short()
    yield _last(scene.resume, codes=(*DONE, 1))


@fault("ten processes resume it and one is killed", "best-mean", "route", codes=(*DONE, 1, -9),
       states=(*SETTLED, *STOPPED), databases=BOTH)  # fmt: skip
def one_of_ten_is_killed(scene: Scene) -> Meeting:
    scene.cut_short()
    yield _last(lambda: scene.resume(At("before a batch", 2, die)), codes=(*DONE, 1, -9))


@fault("status with 1 000 campaigns", "best-mean", "route", codes=(0,), states=STOPPED, databases=BOTH)
def many_campaigns(scene: Scene) -> Meeting:
    scene.cut_short()
    _multiply(scene)
    run = scene.command("status", "--json", "--storage", scene.storage).ended()
    found = {row["name"] for row in json.loads(run.out)}
    assert len(found) == CAMPAIGNS + 1, f"{len(found)} campaigns"
    _change(scene, "DELETE FROM candidates WHERE campaign_id > 1", "DELETE FROM campaigns WHERE id > 1")
    yield run


def _last(start: Callable[[], Run], codes: Sequence[int]) -> Run:
    """The last to end of ten that begin at once; each must have ended well or been refused."""
    runs = [start() for _ in range(MANY)]
    for run in runs:
        assert run.code in codes, f"{run.code}: {run.said}"
        assert "Traceback" not in run.said, run.said
    return next((run for run in runs if run.code in DONE), runs[-1])


def _multiply(scene: Scene) -> None:
    """Store a thousand more campaigns with the definition of the one that is there."""
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i <= {CAMPAIGNS})"
    campaign = [name for name in _columns(scene, "campaigns") if name not in ("id", "name")]
    candidate = [name for name in _columns(scene, "candidates") if name not in ("id", "campaign_id")]
    _change(
        scene,
        f"{numbers} INSERT INTO campaigns (id, name, {', '.join(campaign)}) "
        f"SELECT i, 'copy-' || i, {', '.join(campaign)} FROM n, campaigns",
        f"INSERT INTO candidates (id, campaign_id, {', '.join(candidate)}) "
        f"SELECT a.id + 1000 * c.id, c.id, {', '.join('a.' + name for name in candidate)} "
        "FROM campaigns c, candidates a WHERE c.id > 1 AND a.campaign_id = 1",
    )


def _columns(scene: Scene, table: str) -> list[str]:
    from winnow.storage.models import Base

    return [column.name for column in Base.metadata.tables[table].columns]


def _change(scene: Scene, *statements: str) -> None:
    from contextlib import closing

    from sqlalchemy import text

    from winnow.storage.engine.database import open_database

    with closing(open_database(scene.storage)) as database, database.writing() as session:
        for statement in statements:
            session.execute(text(statement))
