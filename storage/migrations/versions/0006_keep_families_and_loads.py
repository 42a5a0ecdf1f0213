"""Say which campaigns a schedule began, and how long models took to load."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

NAME = sa.String(length=255).with_variant(sa.Text(), "postgresql")


def upgrade() -> None:
    op.add_column("campaigns", sa.Column("family", NAME, nullable=True))
    op.create_index("ix_campaigns_family", "campaigns", ["family"])
    op.create_table(
        "loads",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("campaign_id", sa.Integer(), nullable=False),
        sa.Column("model", NAME, nullable=False),
        sa.Column("devices", sa.JSON(), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind IN ('load', 'wake')", name="kind_known"),
        sa.CheckConstraint("seconds >= 0", name="seconds_not_negative"),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"], name="fk_loads_campaign_id"),
        sa.PrimaryKeyConstraint("id", name="pk_loads"),
    )
    op.create_index("ix_loads_campaign_id", "loads", ["campaign_id"])


def downgrade() -> None:
    op.drop_table("loads")
    op.drop_index("ix_campaigns_family", "campaigns")
    op.drop_column("campaigns", "family")
