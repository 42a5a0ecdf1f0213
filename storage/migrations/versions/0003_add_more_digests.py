"""Add digests of the rows of further tables, so that `winnow db check` covers them; older rows have none."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

WITH_DIGESTS = (
    "file_digests",
    "pruned_campaigns",
    "stream_batches",
    "model_loads",
    "rounds",
    "annotation_tasks",
)


def upgrade() -> None:
    for table in WITH_DIGESTS:
        op.add_column(table, sa.Column("row_digest", sa.String(length=32)))


def downgrade() -> None:
    for table in reversed(WITH_DIGESTS):
        op.drop_column(table, "row_digest")
