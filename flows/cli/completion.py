"""What a shell offers when Tab is pressed."""

import os

import typer


def campaign_names(context: typer.Context, incomplete: str) -> list[str]:
    """The campaigns whose names begin so, of the database that the command would read.

    None where it cannot be read: what is wrong is said once the command is run.
    """
    from winnow.flows.reports.last_database import DEFAULT_STORAGE, last_used
    from winnow.flows.reports.open_readonly import reading
    from winnow.storage.errors import StorageError
    from winnow.storage.records import campaigns as campaign_records
    from winnow.tasks.errors import WinnowError

    named = context.params.get("storage") or os.environ.get("WINNOW_STORAGE") or DEFAULT_STORAGE
    try:
        with reading(last_used(named)) as session:
            names = [each.name for each in campaign_records.campaigns(session)]
    except (StorageError, WinnowError):
        return []
    return [name for name in names if name.startswith(incomplete)]
