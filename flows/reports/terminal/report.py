"""A campaign's terminal report: the answer, the sections of its objective, and the coverage."""

import sys

from winnow.algorithms.state.plugin_registry import object_at
from winnow.flows.reports.output import terminal_width
from winnow.flows.reports.rows.text_table import unfolded
from winnow.flows.reports.rows.writer import print_rows
from winnow.flows.reports.summary import print_summary
from winnow.flows.reports.terminal.sections import COVERAGE
from winnow.storage.objectives import traits_of
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import campaign_status


def print_report(look: Look, storage: str) -> None:
    """Print all sections that are not empty."""
    print_summary(campaign_status(look, in_full=True), storage)
    own = object_at(traits_of(look.record.objective).terminal)(look.record)
    for title, view in (*own, COVERAGE):
        if rows := list(view(look)):
            print("", *unfolded(title, terminal_width(sys.stdout)), sep="\n")
            print_rows(rows, "table")
