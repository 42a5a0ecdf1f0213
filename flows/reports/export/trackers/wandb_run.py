"""Export a campaign as a run of Weights & Biases; with WANDB_MODE=offline, to a folder.

The client's folder (WANDB_DIR) is in the user's state folder by default. A folder in the working folder could
be a link, or contain untrusted files.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from winnow.flows.reports.export.trackers.campaign_run import FINAL, TAG, CampaignRun
from winnow.tasks.errors import WinnowError
from winnow.tasks.plugins.own_files import state_folder
from winnow.tasks.text.printable import one_line

if TYPE_CHECKING:
    import wandb

DEFAULTS = {"WANDB_ERROR_REPORTING": "false", "WANDB_SILENT": "true"}
"""Default settings of the client: no error reports and no output."""


def export_to_wandb(run: CampaignRun, project: str) -> str:
    """Write a campaign's run to a project; return the run's URL, or offline its folder.

    Args:
        run: The campaign.
        project: Name of the project, or ENTITY/PROJECT.

    Raises:
        WinnowError: If W&B reports an error, or does not answer.
    """
    for name, value in {**DEFAULTS, "WANDB_DIR": str(state_folder())}.items():
        os.environ.setdefault(name, value)
    state_folder().mkdir(mode=0o700, parents=True, exist_ok=True)  # else W&B writes to /tmp
    import wandb

    entity, _, name = project.rpartition("/")
    try:
        with wandb.init(
            entity=entity or None,
            project=name,
            id=run.key,
            resume=None if os.environ.get("WANDB_MODE") == "offline" else "allow",
            name=run.name,
            group=run.group,
            notes=run.note,
            config=dict(run.params),
            # The campaign may have run elsewhere, so report nothing about this machine.
            settings=wandb.Settings(
                console="off",
                disable_git=True,
                save_code=False,
                x_disable_machine_info=True,
                x_disable_stats=True,
            ),
        ) as opened:
            _write(opened, run)
            return str(opened.url or opened.dir)
    except (wandb.Error, OSError) as error:
        raise WinnowError(
            f"--wandb {project}: {one_line(str(error))}; run wandb login to store a key, or set "
            "WANDB_MODE=offline to write to a folder"
        ) from error


def _write(opened: "wandb.Run", run: CampaignRun) -> None:
    import wandb

    begin = opened.step  # a continued run already has the earlier rounds
    for step, metrics in enumerate(run.steps):
        # A separate step for the table would take the number of the next round's step.
        last = {"leaderboard": _table(run.leaderboard)} if step == len(run.steps) - 1 else {}
        if step >= begin:
            opened.log({**metrics, **last}, step=step)
    keys: Iterable[str] = opened.summary.keys()  # type: ignore[no-untyped-call]
    outdated = dict.fromkeys(key for key in keys if key.startswith((FINAL, TAG)))
    opened.summary.update({**outdated, **run.summary, **run.tags})
    report = wandb.Artifact(f"winnow-{run.key}", type="winnow-report")
    for path in run.files:
        report.add_file(str(path))
    opened.log_artifact(report)


def _table(rows: Sequence[Mapping[str, object]]) -> "wandb.Table":
    import wandb

    names = list(rows[0]) if rows else ["candidate"]
    return wandb.Table(columns=[*names], data=[[row[name] for name in names] for row in rows])
