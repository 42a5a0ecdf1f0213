"""Campaigns over the demo's checkpoints, for measurements."""

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from winnow.algorithms.decision import Decision
from winnow.flows.prefect_support.server import prefect_server
from winnow.flows.run.callbacks import using_callback
from winnow.flows.run.launch import launching
from winnow.storage.records.record_types import RoundRecord
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.engines.protocol import Request, Sampling
from winnow.tasks.objectives.runner import JudgedRound
from winnow.tasks.setup.load import check_campaign_file

WARM_UP = Request(prompt="warm", sampling=Sampling(max_tokens=8), seed=0)


@dataclass
class Stopwatch:
    """A watcher that starts when the engines are loaded and warm, and notes the time of every round."""

    wants_to_stop: bool = False
    started: float = 0.0
    rounds: list[float] = field(default_factory=list)

    def begun(self, campaign: CampaignSession) -> None:
        campaign.load_engines()
        for model in {each.model.name: each.model for each in campaign.checked.candidates}.values():
            campaign.engines.generate(model, [WARM_UP] * 8)  # the first batch of an engine takes longer
        self.started = time.perf_counter()

    def round_judged(self, campaign: CampaignSession, judged: JudgedRound) -> Collection[int]:
        """See `Observer`."""
        return ()

    def round_done(self, campaign: CampaignSession, round_: RoundRecord, decision: Decision) -> None:
        self.rounds.append(time.perf_counter())

    def ended(self) -> None:
        """Nothing is left to note."""

    @property
    def seconds(self) -> float:
        return self.rounds[-1] - self.started


def run(spec: Path, overrides: list[str], log: Path) -> Stopwatch:
    """Run a campaign to its end in this process, under a Prefect server that was started before."""
    from winnow.flows.run.flow import run_campaign

    checked = check_campaign_file(str(spec), overrides)
    with launching() as launch:
        launch.store(checked)
    watch = Stopwatch()
    with prefect_server(log), using_callback(watch):
        run_campaign(checked.spec.storage, checked.spec.name)
    return watch
