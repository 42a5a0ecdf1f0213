"""Add digests of rows and rounds, by which `winnow db check` detects changes.

Older rows have no digest.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

WITH_DIGESTS = (
    "datasets",
    "examples",
    "labels",
    "embeddings",
    "campaigns",
    "candidates",
    "canaries",
    "generations",
    "annotations",
)


def upgrade() -> None:
    for table in WITH_DIGESTS:
        op.add_column(table, sa.Column("row_digest", sa.String(length=32)))
    op.add_column("decisions", sa.Column("digest", sa.String(length=32)))


def downgrade() -> None:
    op.drop_column("decisions", "digest")
    for table in reversed(WITH_DIGESTS):
        op.drop_column(table, "row_digest")
