"""The commands of `winnow`. Torch, vLLM and Prefect are imported inside the commands that need them."""

from inspect import cleandoc
from typing import Annotated

import typer

from winnow.flows.cli import campaigns, databases, gating, labels, plan, rescore, routes, schedules, simulate
from winnow.flows.cli.results import dashboards, exports, metrics, queries
from winnow.flows.cli.results import status as reading
from winnow.flows.cli.start import demo, specs


def _tell_version(wanted: bool) -> None:
    if wanted:
        import winnow

        typer.echo(f"winnow {winnow.__version__}")
        raise typer.Exit


app = typer.Typer(
    name="winnow",
    help="Find the best of many language-model candidates with as few generations as possible.",
    epilog="Exit codes: 0 decided, 1 error, 2 usage or bad spec, 3 undecided or waiting for people, "
    "4 (gate) worse than the baseline, "
    "130 interrupted, 143 and 129 ended by SIGTERM and SIGHUP.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def main(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Find the best of many language-model candidates with as few generations as possible."""


app.command()(specs.init)
app.command()(campaigns.validate)
app.command()(specs.schema)
app.command()(plan.plan)
app.command()(campaigns.run)
app.command()(campaigns.resume)
app.command()(rescore.rescore)
app.command()(gating.gate)
app.command()(schedules.schedule)
app.command()(labels.label)
app.command()(routes.route)
app.command()(reading.status)
app.command(name="list")(reading.list_campaigns)
app.command()(reading.show)
app.command()(reading.report)
app.command()(dashboards.view)
app.command()(metrics.metrics)
app.command()(queries.query)
app.command()(exports.export)
app.command()(simulate.simulate)
app.command()(specs.selectors)
app.command()(specs.judges)
app.add_typer(databases.app, name="db")
app.command()(demo.demo)

for each in (*app.registered_commands, *databases.app.registered_commands):
    # A terminal breaks the lines of a paragraph, which otherwise would end where those of the source do.
    paragraphs = cleandoc((each.callback and each.callback.__doc__) or "").split("\n\n")
    each.help = each.help or "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
