"""Keep prompts as vectors, prompts and candidates that arrive while a campaign routes."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "embeddings",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("embedder", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_embeddings"),
        sa.UniqueConstraint("embedder", "digest", name="uq_embeddings_embedder_digest"),
    )
    op.create_table(
        "arrivals",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("campaign_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("dataset_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"], name="fk_arrivals_campaign_id"),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name="fk_arrivals_dataset_id"),
        sa.PrimaryKeyConstraint("id", name="pk_arrivals"),
        sa.UniqueConstraint("campaign_id", "number", name="uq_arrivals_campaign_id_number"),
        sa.UniqueConstraint("dataset_id", name="uq_arrivals_dataset_id"),
    )
    op.add_column(
        "candidates", sa.Column("first_round", sa.Integer(), server_default=sa.text("0"), nullable=False)
    )


def downgrade() -> None:
    op.drop_column("candidates", "first_round")
    op.drop_table("arrivals")
    op.drop_table("embeddings")
