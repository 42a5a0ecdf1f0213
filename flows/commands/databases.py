"""db: bringing a results database up to date, checking it, and what is in it."""

import typer

from flows.commands.options import DEFAULT_STORAGE, Json, Storage

app = typer.Typer(help="Look after a results database.", no_args_is_help=True)


@app.command()
def upgrade(storage: Storage = DEFAULT_STORAGE) -> None:
    """Create the tables, or bring an older database to this release's schema."""
    from storage.database import open_database
    from storage.schema import upgrade as upgrade_schema

    before, after = upgrade_schema(open_database(storage))
    if before == after:
        print(f"{storage} is at revision {after}, the newest")
    else:
        print(f"{storage} was brought from {before or 'no tables'} to revision {after}")


@app.command()
def check(storage: Storage = DEFAULT_STORAGE) -> None:
    """Check that a database is sound and of this release's schema."""
    from flows.reading import reading
    from storage.maintenance import problems

    with reading(storage) as session:
        found = problems(session)
    for problem in found:
        print(problem)
    if found:
        raise typer.Exit(1)
    print(f"{storage} is sound")


@app.command()
def stats(storage: Storage = DEFAULT_STORAGE, json: Json = False) -> None:
    """Count the rows of each table, and the bytes in all."""
    from flows.output import print_json, print_rows
    from flows.reading import reading
    from storage.maintenance import size_in_bytes, table_sizes

    with reading(storage) as session:
        rows, size = table_sizes(session), size_in_bytes(session)
    if json:
        print_json({"tables": rows, "bytes": size})
        return
    print_rows(rows, "table")
    print(f"{size / 2**20:.1f} MiB in all")
