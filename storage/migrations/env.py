"""Alembic's entry: runs the migrations on the database that `storage.schema` hands over."""

from alembic import context

from storage.models import Base

database = context.config.attributes["database"]

with database.engine.execution_options(winnow_writes=True).connect() as connection:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=True,  # SQLite alters a table by rewriting it
        transaction_per_migration=True,
        compare_type=True,
    )
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()
