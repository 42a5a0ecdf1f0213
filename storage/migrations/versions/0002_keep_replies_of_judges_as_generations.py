"""Keep replies of judges as generations, so that a resumed round makes none of them again.

No release before this one wrote games, so the table is made anew.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

COMMON = (
    ("number", sa.Integer()),
    ("placement", sa.String(length=16)),
    ("judge", sa.String(length=64)),
)


def upgrade() -> None:
    op.add_column("generations", sa.Column("choice_logprobs", sa.JSON(), nullable=True))
    op.drop_table("games")
    _create_games(
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("generation_id", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["generation_id"], ["generations.id"], name="fk_games_generation_id"),
    )


def downgrade() -> None:
    op.drop_table("games")
    _create_games(sa.Column("reply", sa.Text(), nullable=False))
    with op.batch_alter_table("generations") as table:
        table.drop_column("choice_logprobs")


def _create_games(*own: sa.schema.SchemaItem) -> None:
    op.create_table(
        "games",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("comparison_id", sa.Integer(), nullable=False),
        *(sa.Column(name, type_, nullable=False) for name, type_ in COMMON),
        sa.Column("verdict", sa.Float(), nullable=True),
        sa.Column("reason", sa.String(length=64), nullable=True),
        *own,
        sa.CheckConstraint("placement IN ('original', 'swapped')", name=op.f("ck_games_placement_known")),
        sa.CheckConstraint(
            "(verdict IS NULL) = (reason IS NOT NULL)", name=op.f("ck_games_verdict_or_reason")
        ),
        sa.ForeignKeyConstraint(["comparison_id"], ["comparisons.id"], name="fk_games_comparison_id"),
        sa.PrimaryKeyConstraint("id", name="pk_games"),
        sa.UniqueConstraint("comparison_id", "number", name="uq_games_comparison_id_number"),
    )
