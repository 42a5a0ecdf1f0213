"""Entry point of Alembic, which runs the migrations.

`storage.admin.schema` passes the database.
"""

from alembic import context

from winnow.storage.migrations.settings import rewriting
from winnow.storage.models import Base

database = context.config.attributes["database"]

with rewriting(database) as connection:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=True,  # SQLite alters a table by rewriting it
        # All steps are one transaction, also in SQLite, so that no other process can write between two steps.
        transactional_ddl=True,
        compare_type=True,
        # An index of an expression, which Alembic cannot compare; a test compares the definitions.
        include_object=lambda _, name, *__: name != "uq_comparisons_candidate_example",
    )
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()
