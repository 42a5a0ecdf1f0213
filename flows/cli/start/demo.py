"""demo: train small models, and run a campaign that finds the best of them."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from winnow.algorithms.state.plugin_registry import object_at
from winnow.flows.cli.browser import open_in_browser
from winnow.flows.cli.options import FIRST_OBJECTIVE, ObjectiveChoice
from winnow.storage.objectives import traits_of
from winnow.tasks.errors import SpecError
from winnow.tasks.plugins.own_files import link_below

DEMO_FOLDER = Path(".winnow") / "demo"


def demo(
    folder: Annotated[Path, typer.Option(help="Folder for models, data and results.")] = DEMO_FOLDER,
    objective: Annotated[
        ObjectiveChoice,
        typer.Option(
            metavar="OBJECTIVE",
            help="Objective of the demo: scores on a benchmark (best-mean), duels before a judge "
            "(best-duel), certificates (certify) or routed prompts (route).",
        ),
    ] = FIRST_OBJECTIVE,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run a small demo without vLLM: two tiny models, one task, an HTML report.",
        ),
    ] = False,
    browser: Annotated[
        bool, typer.Option(help="With --quick: open the report in a browser, if run in a terminal.")
    ] = True,
) -> None:
    """Train small models, run a campaign on them, and print the winner; run it again to resume."""
    if quick and objective != FIRST_OBJECTIVE:
        raise SpecError(f"--quick is for best-mean only; remove --quick or --objective {objective}")
    from winnow.tasks.plugins.extras import require

    if quick:
        require("local", "winnow demo --quick")
    else:
        require("vllm", "winnow demo")
    if (link := link_below(folder)) is not None:
        raise SpecError(
            f"{link} is a link, and the demo does not follow links: remove it, or name another --folder"
        )
    spec = _prepare(objective, quick)(folder, print)

    from winnow.flows.run.launch import launching, run_stored_campaign
    from winnow.flows.run.trust_prompt import Trust, approving
    from winnow.infra.demo.artefacts import fingerprint_of, is_current
    from winnow.tasks.setup.load import check_campaign_file

    # A file that existed before may be from a third party, not from the demo.
    is_ours = is_current(spec, fingerprint_of(spec.read_text("utf-8")))
    how = f"winnow validate {spec} --trust allows it"
    approve = None if is_ours else approving(Trust(asks=True, how=how))
    checked = check_campaign_file(str(spec), approve=approve)
    name, storage = checked.spec.name, checked.spec.storage
    with launching() as launch:
        code = run_stored_campaign(launch.store(checked))
    if quick:
        _show_page(storage, name, spec.with_suffix(".html"), browser=browser and sys.stdout.isatty())
    print(_further_commands(name, storage))
    raise typer.Exit(code)


def _prepare(objective: ObjectiveChoice, quick: bool) -> Callable[[Path, Callable[[str], None]], Path]:
    from winnow.infra.demo import prepare

    if quick:
        return prepare.prepare_quick
    if (address := traits_of(objective).demo) is None:
        raise SpecError(f"there is no demo of {objective}; name another --objective")
    prepared: Callable[[Path, Callable[[str], None]], Path] = object_at(address)
    return prepared


def _show_page(storage: str, name: str, path: Path, *, browser: bool) -> None:
    from winnow.flows.api.results import Results
    from winnow.tasks.plugins.extras import missing_for

    if missing := missing_for("report", "the page with figures"):
        print(missing)
        return
    page = Results(storage)[name].report(path)
    print(f"wrote {page}")
    if browser:
        open_in_browser(str(page.absolute()))


def _further_commands(name: str, storage: str) -> str:
    from winnow.storage.engine.database import storage_option

    # The answer already lists the commands for the page and the dashboard.
    commands = {
        f"winnow report {name}": "the whole report in the terminal",
        f"winnow query {name} comparisons": "every prompt, answer and score",
    }
    lines = [f"  {command} {storage_option(storage)}  # {what}" for command, what in commands.items()]
    return "\n".join(["to see more:", *lines])
