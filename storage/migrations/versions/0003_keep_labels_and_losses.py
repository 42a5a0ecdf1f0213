"""Keep the labels that arrive after their dataset, and the losses that a certifying algorithm was told."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

LOSSES = ("human_loss", "auto_loss", "unlabelled_loss")


def upgrade() -> None:
    op.create_table(
        "labels",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("targets", sa.JSON(), nullable=False),
        sa.Column("source", sa.String(length=255).with_variant(sa.Text(), "postgresql"), nullable=False),
        sa.Column("labelled_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["example_id"], ["examples.id"], name="fk_labels_example_id"),
        sa.PrimaryKeyConstraint("id", name="pk_labels"),
        sa.UniqueConstraint("example_id", name="uq_labels_example_id"),
    )
    for name in LOSSES:
        op.add_column("comparisons", sa.Column(name, sa.Float(), nullable=True))


def downgrade() -> None:
    for name in LOSSES:
        op.drop_column("comparisons", name)
    op.drop_table("labels")
