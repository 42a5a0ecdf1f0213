"""`winnow.gate`: run a campaign that compares candidates with a baseline."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from winnow.flows.api.call_checks import require_text
from winnow.flows.api.results import Campaign
from winnow.flows.api.resume import allowed, interruptible, remedied, to_the_end
from winnow.flows.api.run import GivenSpec, file_of
from winnow.tasks.errors import SpecError, WinnowError
from winnow.tasks.spec.selector_traits import GATE
from winnow.tasks.text.phrases import list_of

if TYPE_CHECKING:
    from winnow.flows.run.signals import Interrupts
    from winnow.flows.run.trust_prompt import Trust
    from winnow.tasks.campaign.campaign import Campaign as StoredCampaign
    from winnow.tasks.queries.status import CampaignStatus
    from winnow.tasks.setup.load import Approve
    from winnow.tasks.setup.yaml_file import SpecFile

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GateResult:
    """The result of a gate; its `str` is the answer that `winnow gate` prints."""

    baseline: str
    no_worse: tuple[str, ...]
    """Candidates shown to be no worse than the baseline."""
    worse: tuple[str, ...]
    """Candidates shown to be worse than the baseline by more than epsilon."""
    open: tuple[str, ...]
    """All other candidates: not shown to be worse, and not shown to be no worse."""
    exit_code: int
    """Exit code of `winnow gate`: 0 if all are shown to be no worse, 4 if at least one is shown to be worse,
    else 3."""
    campaign: Campaign

    @property
    def passed(self) -> bool:
        """Whether each candidate is shown to be no worse than the baseline."""
        return self.exit_code == 0

    def __repr__(self) -> str:
        return str(self.campaign)


def gate(
    spec: GivenSpec,
    *,
    baseline: str | None = None,
    junit: str | Path | None = None,
    markdown: str | Path | None = None,
    storage: str | None = None,
    progress: bool = False,
    trust: bool = False,
) -> GateResult:
    """Run a campaign until each candidate is shown to be no worse than a baseline, or to be worse.

    A candidate counts as worse if its mean is lower by more than `stopping.epsilon`. The probability that any
    of these results is wrong is at most `stopping.delta`.

    Args:
        spec: See `winnow.run`.
        baseline: Name of the candidate that the others are compared with; required unless the spec's selector
            is gate.
        junit: Path of a test report to write, in JUnit's XML format.
        markdown: Path of a summary to write, for a pull request.
        storage: URL of the results database; None uses the spec's.
        progress: See `winnow.run`.
        trust: See `winnow.run`.

    Returns:
        The result for each candidate, and the exit code of `winnow gate`.

    Raises:
        SpecError: If the spec is invalid, or neither the spec nor `baseline` names a baseline.
        WinnowError: If the campaign cannot continue, or a file cannot be written.
        StorageError: If the database cannot be used, or another process runs the campaign.
    """
    from winnow.flows.exit_codes import exit_code

    if baseline is not None:
        require_text("baseline", baseline, "the name of a candidate")
    source = str(spec) if isinstance(spec, str | os.PathLike) else "spec"
    files = GateFiles(source=source, junit=_path("junit", junit), markdown=_path("markdown", markdown))
    files.begin()
    file = file_of(spec, storage)
    campaign, status = interruptible(
        lambda interrupts: _to_its_end(file, baseline, files, interrupts, progress, allowed(everything=trust))
    )
    answer = status.answer
    no_worse, worse = answer.named("no-worse", "better"), answer.named("worse")
    return GateResult(
        baseline=str(answer.baseline),
        no_worse=no_worse,
        worse=worse,
        open=tuple(
            each.name for each in answer.candidates if each.name not in (answer.baseline, *no_worse, *worse)
        ),
        exit_code=exit_code(status),
        campaign=Campaign(*campaign),
    )


def _to_its_end(
    file: "SpecFile",
    baseline: str | None,
    files: "GateFiles",
    interrupts: "Interrupts",
    progress: bool,
    trust: "Trust",
) -> tuple[tuple[str, str], "CampaignStatus"]:
    from winnow.flows.run.launch import require_free
    from winnow.flows.run.trust_prompt import approving

    def run(campaign: "StoredCampaign") -> tuple[str, str]:
        to_the_end(campaign, interrupts, progress, lambda: require_free(campaign))
        return campaign.storage, campaign.name

    with remedied():
        return run_gate(file, baseline, files, approving(trust), run)


def run_gate(
    file: "SpecFile",
    baseline: str | None,
    files: "GateFiles",
    approve: "Approve",
    run: "Callable[[StoredCampaign], T]",
) -> tuple[T, "CampaignStatus"]:
    """Run the campaign of a file as a gate, and write the gate's files.

    Args:
        file: The campaign's file.
        baseline: Name of the baseline; None if the file's selector names it.
        files: The files to write.
        approve: See `tasks.setup.load.check_spec_file`.
        run: Function that runs the stored campaign.

    Returns:
        The return value of `run`, and the campaign's status after the run.

    Raises:
        SpecError: If the file is invalid, or no baseline is named.
    """
    from winnow.flows.run.launch import launching
    from winnow.tasks.queries.status import campaign_status
    from winnow.tasks.setup.load import check_spec_file
    from winnow.tasks.setup.yaml_file import overriding

    if baseline is not None:
        selector = {"name": GATE, "params": {"baseline": baseline}}
        file = replace(file, values=dict(file.values), options={"selector.params.baseline": "--baseline"})
        file = overriding(file, [f"selector={json.dumps(selector)}"])
    with launching() as launch:
        checked = check_spec_file(file, approve, launch.recall)
        if checked.spec.selector.name != GATE:
            raise SpecError(
                f"the file's selector is {checked.spec.selector.name}; name a candidate by --baseline: "
                f"{list_of([each.name for each in checked.candidates])}",
                path="selector.name",
            )
        campaign = launch.store(checked)
        found = run(campaign)
        with campaign.look() as look:
            status = campaign_status(look, in_full=True)
    files.write(status)
    return found, status


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFiles:
    """The files that a gate writes for a pipeline; None for a file that is not requested."""

    source: str
    """Path of the campaign's file, or "spec"; shown in the files."""
    junit: Path | None
    markdown: Path | None

    def begin(self) -> None:
        """Write placeholders that say that the gate has no answer yet.

        Raises:
            WinnowError: If a file cannot be written.
        """
        from winnow.flows.reports.export.gate_files import begin_gate_files

        for path in filter(None, (self.junit, self.markdown)):
            if os.path.isdir(path) or not os.path.isdir(path.parent):
                why = "it is a folder" if os.path.isdir(path) else f"there is no folder {path.parent}"
                raise WinnowError(f"{path} cannot be written: {why}; name another file")
        begin_gate_files(self.source, junit=self.junit, markdown=self.markdown)

    def write(self, status: "CampaignStatus") -> None:
        """Write the results of the gate to the files."""
        from winnow.flows.reports.export.gate_files import write_gate_files

        write_gate_files(status, junit=self.junit, markdown=self.markdown)


def _path(name: str, given: str | Path | None) -> Path | None:
    if given is None:
        return None
    require_text(name, given, "the path of a file")
    return Path(given)
