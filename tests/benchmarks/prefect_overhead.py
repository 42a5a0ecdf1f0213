"""What Prefect adds to a round of the demo: the same rounds with its tasks and with the plain functions."""

import statistics
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tests.benchmarks.campaigns import Stopwatch, run
from tests.benchmarks.measurements import Measurement
from winnow.storage.engine.database import open_database
from winnow.tasks.campaign.session import running
from winnow.tasks.objectives.runner import Runner
from winnow.tasks.setup.open_campaign import reopen_campaign

ROUNDS = 40


def measure(demo: Path) -> Iterator[Measurement]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spec = demo / "campaign.yaml"
        overrides = [
            f"stopping.budget={64 * ROUNDS}",
            f"execution.log_folder={folder}/logs",
            "stopping.delta=null",
        ]
        watch = run(spec, [f"storage=sqlite:///{folder}/a.db", *overrides], folder / "prefect.log")
        plain = _without_prefect(spec, [f"storage=sqlite:///{folder}/b.db", *overrides])
        with_prefect = _typical_round(watch)
        without = _typical_round(plain)
        yield Measurement(
            f"Prefect's share of a demo round of 64 (median of {ROUNDS} rounds)",
            f"{1 - without / with_prefect:.1%} "
            f"({1000 * with_prefect:.0f} ms with, {1000 * without:.0f} ms without)",
            "under 5%",
        )


def _typical_round(watch: Stopwatch) -> float:
    times = [watch.started, *watch.rounds]
    return statistics.median(after - before for before, after in pairwise(times))


def _without_prefect(spec: Path, overrides: list[str]) -> Stopwatch:
    from winnow.flows.run.launch import launching
    from winnow.tasks.setup.load import check_campaign_file

    checked = check_campaign_file(str(spec), overrides)
    with launching() as launch:
        launch.store(checked)
    database = open_database(checked.spec.storage)
    record, checked = reopen_campaign(database, checked.spec.name, checked.spec.storage)
    watch = Stopwatch()
    with running(database, record, checked) as campaign, Runner(campaign, watch) as runner:
        watch.begun(campaign)
        runner.run()
    return watch
