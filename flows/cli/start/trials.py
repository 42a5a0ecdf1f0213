"""try: show a few scored outputs of every candidate, before a campaign begins."""

import sys
from typing import Annotated

import typer

from winnow.flows.cli.options import (
    AllowMissing,
    Overrides,
    SpecPath,
    SpecStorage,
    TrustOption,
    overrides_of,
)

Examples = Annotated[int, typer.Option("--n", min=1, help="Number of examples, answered by every candidate.")]


def try_file(
    spec: SpecPath,
    n: Examples = 4,
    set_: Overrides = None,
    allow_missing: AllowMissing = False,
    storage: SpecStorage = None,
    trust: TrustOption = False,
) -> None:
    """Show input, target, output and score of every candidate on a few examples; start no campaign.

    The outputs are stored, and a campaign of the file reuses them. That campaign's line on new examples
    mentions that you saw outputs of these examples.
    """
    from winnow.flows.reports.output import terminal_width
    from winnow.flows.run.launch import launching
    from winnow.flows.run.trial import trial_lines
    from winnow.flows.run.trust_prompt import Trust, approving
    from winnow.tasks.setup.load import check_campaign_file

    overrides = overrides_of(set_, storage=storage, allow_missing=allow_missing)
    with launching() as launch:
        checked = check_campaign_file(spec, overrides, approving(Trust(everything=trust, asks=True)))
        trial = launch.try_out(checked, n)
    print("\n".join(trial_lines(trial, terminal_width(sys.stdout))))
