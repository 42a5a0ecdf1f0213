"""Alembic's entry: runs the migrations on the database that `storage.schema` hands over."""

from alembic import context

from storage.migrations.settings import rewriting
from storage.models import Base

database = context.config.attributes["database"]

with rewriting(database) as connection:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=True,  # SQLite alters a table by rewriting it
        # Where tables are made within transactions, all steps are one: no other process comes between two.
        transaction_per_migration=not database.is_postgresql,
        compare_type=True,
    )
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()
