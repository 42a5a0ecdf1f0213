"""Allow a further comparison of a pair that has no outcome, so that it can be asked again."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

NAME = "uq_comparisons_candidate_example"
PAIR = ("candidate_a_id", "example_id")
ONCE = "(CASE WHEN outcome IS NULL THEN round_id ELSE 0 END)"
"""The same for all scores of a pair, so that it has one; ids of rounds begin at 1."""


def upgrade() -> None:
    op.drop_index(NAME, table_name="comparisons")
    _create([*PAIR, sa.text(ONCE)])


def downgrade() -> None:
    op.drop_index(NAME, table_name="comparisons")
    _create([*PAIR])


def _create(columns: list[str | sa.TextClause]) -> None:
    op.create_index(
        NAME,
        "comparisons",
        columns,
        unique=True,
        sqlite_where=sa.text("candidate_b_id IS NULL"),
        postgresql_where=sa.text("candidate_b_id IS NULL"),
        postgresql_include=["outcome", "generation_a_id"],
    )
