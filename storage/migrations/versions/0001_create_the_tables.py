"""Create the tables, and the views for other tools."""

import sqlalchemy as sa
from alembic import op

from winnow.storage.migrations.views_0001 import VIEWS

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# PostgreSQL holds columns to their type; SQLite to neither the length of a text nor the size of an integer.
NAME = sa.String(length=255).with_variant(sa.Text(), "postgresql")
LARGE = sa.Integer().with_variant(sa.BigInteger(), "postgresql")

TABLES = (
    "datasets",
    "file_digests",
    "embeddings",
    "prompts",
    "campaigns",
    "pruned_campaigns",
    "examples",
    "stream_batches",
    "candidates",
    "labels",
    "leases",
    "model_loads",
    "rounds",
    "decisions",
    "standings",
    "rankings",
    "differences",
    "bets",
    "canaries",
    "generations",
    "candidate_stats",
    "campaign_stats",
    "duel_stats",
    "metric_stats",
    "cost_stats",
    "reuse_stats",
    "reused_texts",
    "pins",
    "comparisons",
    "outputs",
    "metrics",
    "judgments",
    "annotation_tasks",
    "annotations",
)


INTERVAL = (("estimate", sa.Float()), ("lower", sa.Float()), ("upper", sa.Float()))
OF_CANDIDATES = (
    ("standings", (*INTERVAL, ("status", sa.String(length=64)))),
    ("rankings", (("score", sa.Float()),)),
    ("differences", INTERVAL),
    (
        "bets",
        (
            ("wealth", sa.Float()),
            ("level", sa.Float()),
            ("out_in_round", sa.Integer()),
            ("out_at", LARGE),
        ),
    ),
)
"""Tables of what is known of candidates, and their columns beside the key: all but `status` may be null."""


def upgrade() -> None:
    op.create_table(
        "datasets",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("n_examples", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_datasets"),
        sa.UniqueConstraint("fingerprint", name="uq_datasets_fingerprint"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "embeddings",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("embedder", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_embeddings"),
        sa.UniqueConstraint("embedder", "digest", name="uq_embeddings_embedder_digest"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "prompts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_prompts"),
        sa.UniqueConstraint("digest", name="uq_prompts_digest"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "campaigns",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("objective", sa.String(length=32), nullable=False),
        sa.Column("dataset_id", sa.Integer(), nullable=False),
        sa.Column("seed", LARGE, nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("execution", sa.JSON(), nullable=False),
        sa.Column("versions", sa.JSON(), nullable=False),
        sa.Column("series", NAME, nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name="fk_campaigns_dataset_id"),
        sa.PrimaryKeyConstraint("id", name="pk_campaigns"),
        sa.UniqueConstraint("name", name="uq_campaigns_name"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_campaigns_dataset_id", "campaigns", ["dataset_id"])
    op.create_index("ix_campaigns_series", "campaigns", ["series"])
    op.create_table(
        "pruned_campaigns",
        sa.Column("campaign_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("objective", sa.String(length=32), nullable=False),
        sa.Column("dataset_id", sa.Integer(), nullable=False),
        sa.Column("seed", LARGE, nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("execution", sa.JSON(), nullable=False),
        sa.Column("versions", sa.JSON(), nullable=False),
        sa.Column("series", NAME, nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen", sa.JSON(), nullable=False),
        sa.Column("is_decided", sa.Boolean(), nullable=False),
        sa.Column("has_grown", sa.Boolean(), nullable=False),
        sa.Column("met", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name="fk_pruned_campaigns_dataset_id"),
        sa.PrimaryKeyConstraint("campaign_id", name="pk_pruned_campaigns"),
    )
    op.create_table(
        "file_digests",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("place", sa.String(length=64), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("size", LARGE, nullable=False),
        sa.Column("modified_ns", LARGE, nullable=False),
        sa.Column("changed_ns", LARGE, nullable=False),
        sa.Column("inode", sa.String(length=20), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_file_digests"),
        sa.UniqueConstraint("place", name="uq_file_digests_place"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "examples",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("dataset_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("key", NAME, nullable=False),
        sa.Column("fields", sa.JSON(), nullable=False),
        sa.Column("input_digest", sa.String(length=32), nullable=False),
        sa.Column("targets", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name="fk_examples_dataset_id"),
        sa.PrimaryKeyConstraint("id", name="pk_examples"),
        sa.UniqueConstraint("dataset_id", "key", name="uq_examples_dataset_id_key"),
        sa.UniqueConstraint("dataset_id", "position", name="uq_examples_dataset_id_position"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_examples_dataset_id_input_digest", "examples", ["dataset_id", "input_digest"])
    op.create_table(
        "stream_batches",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("campaign_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("dataset_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"], name="fk_stream_batches_campaign_id"),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name="fk_stream_batches_dataset_id"),
        sa.PrimaryKeyConstraint("id", name="pk_stream_batches"),
        sa.UniqueConstraint("campaign_id", "number", name="uq_stream_batches_campaign_id_number"),
        sa.UniqueConstraint("dataset_id", name="uq_stream_batches_dataset_id"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "candidates",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("campaign_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("model", sa.JSON(), nullable=False),
        sa.Column("prompt", sa.JSON(), nullable=False),
        sa.Column("sampling", sa.JSON(), nullable=False),
        sa.Column("first_round", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"], name="fk_candidates_campaign_id"),
        sa.PrimaryKeyConstraint("id", name="pk_candidates"),
        sa.UniqueConstraint("campaign_id", "name", name="uq_candidates_campaign_id_name"),
        sa.UniqueConstraint("campaign_id", "position", name="uq_candidates_campaign_id_position"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "labels",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("targets", sa.JSON(), nullable=False),
        sa.Column("source", NAME, nullable=False),
        sa.Column("labelled_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["example_id"], ["examples.id"], name="fk_labels_example_id"),
        sa.PrimaryKeyConstraint("id", name="pk_labels"),
        sa.UniqueConstraint("example_id", name="uq_labels_example_id"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "leases",
        sa.Column("campaign_id", sa.Integer(), nullable=False),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("host", NAME, nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("boot_id", NAME, nullable=False),
        sa.Column("pid_namespace", NAME, nullable=False),
        sa.Column("started_ticks", LARGE, nullable=False),
        sa.Column("beats", sa.Integer(), nullable=False),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lifetime_s", sa.Float(), nullable=False),
        sa.Column("released_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"], name="fk_leases_campaign_id"),
        sa.PrimaryKeyConstraint("campaign_id", name="pk_leases"),
    )
    op.create_table(
        "model_loads",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("campaign_id", sa.Integer(), nullable=False),
        sa.Column("model", NAME, nullable=False),
        sa.Column("devices", sa.JSON(), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind IN ('load', 'wake')", name=op.f("ck_model_loads_kind_known")),
        sa.CheckConstraint("seconds >= 0", name=op.f("ck_model_loads_seconds_not_negative")),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"], name="fk_model_loads_campaign_id"),
        sa.PrimaryKeyConstraint("id", name="pk_model_loads"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_model_loads_campaign_id", "model_loads", ["campaign_id"])
    op.create_table(
        "rounds",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("campaign_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("planned_after", sa.Integer(), nullable=False),
        sa.Column("arms", sa.JSON(), nullable=False),
        sa.Column("examples", sa.JSON(), nullable=False),
        sa.Column("propensities", sa.JSON(), nullable=True),
        sa.Column("planned_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "planned_after BETWEEN 0 AND number", name=op.f("ck_rounds_planned_after_earlier_ones")
        ),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"], name="fk_rounds_campaign_id"),
        sa.PrimaryKeyConstraint("id", name="pk_rounds"),
        sa.UniqueConstraint("campaign_id", "number", name="uq_rounds_campaign_id_number"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "decisions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("best_candidate_id", sa.Integer(), nullable=True),
        sa.Column("against_candidate_id", sa.Integer(), nullable=True),
        sa.Column("differences_delta", sa.Float(), nullable=True),
        sa.Column("has_ranking", sa.Boolean(), nullable=False),
        sa.Column("has_bets", sa.Boolean(), nullable=False),
        sa.Column("changes", sa.Integer(), nullable=False),
        sa.Column("claim", sa.JSON(), nullable=False),
        sa.Column("stop", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.String(length=64), nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("best_estimate", sa.Float(), nullable=True),
        sa.Column("best_lower", sa.Float(), nullable=True),
        sa.Column("best_upper", sa.Float(), nullable=True),
        sa.Column("comparisons", sa.Integer(), nullable=False),
        sa.Column("answered", sa.Integer(), nullable=False),
        sa.Column("scored", sa.Integer(), nullable=False),
        sa.Column("candidates", sa.Integer(), nullable=False),
        sa.Column("generations", sa.Integer(), nullable=False),
        sa.Column("input_tokens", LARGE, nullable=False),
        sa.Column("output_tokens", LARGE, nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_decisions_round_id"),
        sa.ForeignKeyConstraint(
            ["best_candidate_id"], ["candidates.id"], name="fk_decisions_best_candidate_id"
        ),
        sa.ForeignKeyConstraint(
            ["against_candidate_id"], ["candidates.id"], name="fk_decisions_against_candidate_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_decisions"),
        sa.UniqueConstraint("round_id", name="uq_decisions_round_id"),
        sqlite_autoincrement=True,
    )
    for table, columns in OF_CANDIDATES:
        op.create_table(
            table,
            sa.Column("candidate_id", sa.Integer(), nullable=False),
            sa.Column("round_id", sa.Integer(), nullable=False),
            *(sa.Column(name, type_, nullable=name != "status") for name, type_ in columns),
            sa.ForeignKeyConstraint(["candidate_id"], ["candidates.id"], name=f"fk_{table}_candidate_id"),
            sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=f"fk_{table}_round_id"),
            sa.PrimaryKeyConstraint("candidate_id", "round_id", name=f"pk_{table}"),
            sqlite_with_rowid=False,
        )
    op.create_table(
        "canaries",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("model", sa.String(length=64), nullable=False),
        sa.Column("campaign_id", sa.Integer(), nullable=True),
        sa.Column("name", NAME, nullable=False),
        sa.Column("server", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("prompts", sa.String(length=64), nullable=False),
        sa.Column("texts", sa.JSON(), nullable=False),
        sa.Column("repeated", sa.JSON(), nullable=False),
        sa.Column("changed", sa.Integer(), nullable=False),
        sa.Column("verdict", sa.String(length=8), nullable=False),
        sa.Column("served_as", sa.Text(), nullable=True),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("verdict IN ('first', 'same', 'changed')", name=op.f("ck_canaries_verdict_known")),
        sa.CheckConstraint("changed >= 0 AND epoch >= 0", name=op.f("ck_canaries_counts_not_negative")),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"], name="fk_canaries_campaign_id"),
        sa.PrimaryKeyConstraint("id", name="pk_canaries"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_canaries_campaign_id", "canaries", ["campaign_id"])
    op.create_index("ix_canaries_model", "canaries", ["model"])
    op.create_table(
        "generations",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("request_key", sa.String(length=64), nullable=True),
        sa.Column("round_id", sa.Integer(), nullable=True),
        sa.Column("model", NAME, nullable=False),
        sa.Column("prompt_id", sa.Integer(), nullable=False),
        sa.Column("seed", LARGE, nullable=False),
        sa.Column("replicate", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("reasoning", sa.Text(), nullable=True),
        sa.Column("choice_logprobs", sa.JSON(), nullable=True),
        sa.Column("token_logprobs", sa.JSON(), nullable=True),
        sa.Column("finish_reason", sa.String(length=32), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("cached_tokens", sa.Integer(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("latency", sa.Float(), nullable=True),
        sa.Column("engine", NAME, nullable=False),
        sa.Column("served_as", sa.Text(), nullable=True),
        sa.Column("canary_id", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "input_tokens >= 0 AND output_tokens >= 0 AND seconds >= 0 AND latency >= 0",
            name=op.f("ck_generations_counts_not_negative"),
        ),
        sa.CheckConstraint(
            "cached_tokens BETWEEN 0 AND input_tokens", name=op.f("ck_generations_cached_tokens_of_input")
        ),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_generations_round_id"),
        sa.ForeignKeyConstraint(["prompt_id"], ["prompts.id"], name="fk_generations_prompt_id"),
        sa.ForeignKeyConstraint(["canary_id"], ["canaries.id"], name="fk_generations_canary_id"),
        sa.PrimaryKeyConstraint("id", name="pk_generations"),
        sa.UniqueConstraint("key", name="uq_generations_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_generations_round_id", "generations", ["round_id"])
    op.create_index(
        "ix_generations_model_served_as",
        "generations",
        ["model", "served_as"],
        sqlite_where=sa.text("served_as IS NOT NULL"),
        postgresql_where=sa.text("served_as IS NOT NULL"),
    )
    op.create_table(
        "pins",
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("generation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_pins_round_id"),
        sa.ForeignKeyConstraint(["generation_id"], ["generations.id"], name="fk_pins_generation_id"),
        sa.PrimaryKeyConstraint("round_id", "generation_id", name="pk_pins"),
    )
    op.create_table(
        "candidate_stats",
        sa.Column("candidate_id", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(length=64), nullable=False),
        sa.Column("comparisons", sa.Integer(), nullable=False),
        sa.Column("outcome_sum", sa.Float(), nullable=False),
        sa.Column("lowest", sa.Float(), nullable=True),
        sa.Column("highest", sa.Float(), nullable=True),
        sa.Column("texts", sa.Integer(), nullable=False),
        sa.Column("no_answer", sa.Integer(), nullable=False),
        sa.Column("truncated", sa.Integer(), nullable=False),
        sa.Column("input_tokens", LARGE, nullable=False),
        sa.Column("output_tokens", LARGE, nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("input_squares", sa.Float(), nullable=False),
        sa.Column("output_squares", sa.Float(), nullable=False),
        sa.Column("second_squares", sa.Float(), nullable=False),
        sa.Column("input_by_output", sa.Float(), nullable=False),
        sa.Column("input_by_seconds", sa.Float(), nullable=False),
        sa.Column("output_by_seconds", sa.Float(), nullable=False),
        sa.Column("latency", sa.Float(), nullable=False),
        sa.Column("latency_squares", sa.Float(), nullable=False),
        sa.Column("timed", sa.Integer(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["candidate_id"], ["candidates.id"], name="fk_candidate_stats_candidate_id"),
        sa.PrimaryKeyConstraint("candidate_id", "reason", name="pk_candidate_stats"),
    )
    op.create_table(
        "campaign_stats",
        sa.Column("campaign_id", sa.Integer(), nullable=False),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("comparisons", LARGE, nullable=False),
        sa.Column("answered", LARGE, nullable=False),
        sa.Column("scored", LARGE, nullable=False),
        sa.Column("generations", LARGE, nullable=False),
        sa.Column("input_tokens", LARGE, nullable=False),
        sa.Column("output_tokens", LARGE, nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"], name="fk_campaign_stats_campaign_id"),
        sa.PrimaryKeyConstraint("campaign_id", name="pk_campaign_stats"),
    )
    op.create_table(
        "duel_stats",
        sa.Column("candidate_a_id", sa.Integer(), nullable=False),
        sa.Column("candidate_b_id", sa.Integer(), nullable=False),
        sa.Column("duels", sa.Integer(), nullable=False),
        sa.Column("scored", sa.Integer(), nullable=False),
        sa.Column("wins", sa.Integer(), nullable=False),
        sa.Column("losses", sa.Integer(), nullable=False),
        sa.Column("outcome_sum", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["candidate_a_id"], ["candidates.id"], name="fk_duel_stats_candidate_a_id"),
        sa.ForeignKeyConstraint(["candidate_b_id"], ["candidates.id"], name="fk_duel_stats_candidate_b_id"),
        sa.PrimaryKeyConstraint("candidate_a_id", "candidate_b_id", name="pk_duel_stats"),
    )
    op.create_table(
        "metric_stats",
        sa.Column("candidate_id", sa.Integer(), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("scored", sa.Integer(), nullable=False),
        sa.Column("unscored", sa.Integer(), nullable=False),
        sa.Column("score_sum", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["candidate_id"], ["candidates.id"], name="fk_metric_stats_candidate_id"),
        sa.PrimaryKeyConstraint("candidate_id", "name", name="pk_metric_stats"),
    )
    op.create_table(
        "cost_stats",
        sa.Column("campaign_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("model", NAME, nullable=False),
        sa.Column("generations", sa.Integer(), nullable=False),
        sa.Column("input_tokens", LARGE, nullable=False),
        sa.Column("output_tokens", LARGE, nullable=False),
        sa.Column("cached_tokens", LARGE, nullable=False),
        sa.Column("cacheable_tokens", LARGE, nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"], name="fk_cost_stats_campaign_id"),
        sa.PrimaryKeyConstraint("campaign_id", "role", "name", "model", name="pk_cost_stats"),
    )
    op.create_table(
        "reuse_stats",
        sa.Column("campaign_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("taken_from_id", sa.Integer(), nullable=False),
        sa.Column("generations", sa.Integer(), nullable=False),
        sa.Column("input_tokens", LARGE, nullable=False),
        sa.Column("output_tokens", LARGE, nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"], name="fk_reuse_stats_campaign_id"),
        sa.PrimaryKeyConstraint("campaign_id", "role", "name", "taken_from_id", name="pk_reuse_stats"),
    )
    op.create_table(
        "reused_texts",
        sa.Column("campaign_id", sa.Integer(), nullable=False),
        sa.Column("generation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"], name="fk_reused_texts_campaign_id"),
        sa.ForeignKeyConstraint(["generation_id"], ["generations.id"], name="fk_reused_texts_generation_id"),
        sa.PrimaryKeyConstraint("campaign_id", "generation_id", name="pk_reused_texts"),
    )
    op.create_table(
        "comparisons",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("candidate_a_id", sa.Integer(), nullable=False),
        sa.Column("candidate_b_id", sa.Integer(), nullable=True),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("generation_a_id", sa.Integer(), nullable=True),
        sa.Column("generation_b_id", sa.Integer(), nullable=True),
        sa.Column("judge", NAME, nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Float(), nullable=True),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.Column("no_answer", sa.Boolean(), nullable=False),
        sa.Column("human_loss", sa.Float(), nullable=True),
        sa.Column("auto_loss", sa.Float(), nullable=True),
        sa.Column("unlabelled_loss", sa.Float(), nullable=True),
        sa.Column("unlabelled_missing", sa.Float(), nullable=True),
        sa.CheckConstraint("auto_loss BETWEEN 0 AND 1", name=op.f("ck_comparisons_auto_loss_range")),
        sa.CheckConstraint("human_loss BETWEEN 0 AND 1", name=op.f("ck_comparisons_human_loss_range")),
        sa.CheckConstraint(
            "(outcome IS NULL) = (reason IS NOT NULL)", name=op.f("ck_comparisons_outcome_or_reason")
        ),
        sa.CheckConstraint("outcome BETWEEN -1 AND 1", name=op.f("ck_comparisons_outcome_range")),
        sa.CheckConstraint(
            "unlabelled_loss BETWEEN 0 AND 1", name=op.f("ck_comparisons_unlabelled_loss_range")
        ),
        sa.CheckConstraint(
            "unlabelled_missing BETWEEN 0 AND 1", name=op.f("ck_comparisons_unlabelled_missing_range")
        ),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_comparisons_round_id"),
        sa.ForeignKeyConstraint(["candidate_a_id"], ["candidates.id"], name="fk_comparisons_candidate_a_id"),
        sa.ForeignKeyConstraint(["candidate_b_id"], ["candidates.id"], name="fk_comparisons_candidate_b_id"),
        sa.ForeignKeyConstraint(["example_id"], ["examples.id"], name="fk_comparisons_example_id"),
        sa.ForeignKeyConstraint(
            ["generation_a_id"], ["generations.id"], name="fk_comparisons_generation_a_id"
        ),
        sa.ForeignKeyConstraint(
            ["generation_b_id"], ["generations.id"], name="fk_comparisons_generation_b_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_comparisons"),
        sa.UniqueConstraint("round_id", "position", name="uq_comparisons_round_id_position"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_comparisons_candidate_example",
        "comparisons",
        ["candidate_a_id", "example_id"],
        unique=True,
        sqlite_where=sa.text("candidate_b_id IS NULL"),
        postgresql_where=sa.text("candidate_b_id IS NULL"),
        # A candidate's scores, and which texts have them, are then read from the index alone, which has them
        # together; in the table each stands in a block of its own.
        postgresql_include=["outcome", "generation_a_id"],
    )
    op.create_table(
        "outputs",
        sa.Column("comparison_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("generation_id", sa.Integer(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.Column("no_answer", sa.Boolean(), nullable=False),
        sa.Column("preference", sa.Float(), nullable=True),
        sa.CheckConstraint("score BETWEEN 0 AND 1", name=op.f("ck_outputs_score_range")),
        sa.CheckConstraint("(score IS NULL) = (reason IS NOT NULL)", name=op.f("ck_outputs_score_or_reason")),
        sa.ForeignKeyConstraint(["comparison_id"], ["comparisons.id"], name="fk_outputs_comparison_id"),
        sa.ForeignKeyConstraint(["generation_id"], ["generations.id"], name="fk_outputs_generation_id"),
        sa.PrimaryKeyConstraint("comparison_id", "number", name="pk_outputs"),
    )
    op.create_table(
        "metrics",
        sa.Column("comparison_id", sa.Integer(), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.CheckConstraint("score BETWEEN 0 AND 1", name=op.f("ck_metrics_score_range")),
        sa.CheckConstraint("(score IS NULL) = (reason IS NOT NULL)", name=op.f("ck_metrics_score_or_reason")),
        sa.ForeignKeyConstraint(["comparison_id"], ["comparisons.id"], name="fk_metrics_comparison_id"),
        sa.PrimaryKeyConstraint("comparison_id", "name", name="pk_metrics"),
    )
    op.create_table(
        "judgments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("comparison_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("metric", NAME, nullable=True),
        sa.Column("presentation_order", sa.String(length=16), nullable=False),
        sa.Column("judge", NAME, nullable=False),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("generation_id", sa.Integer(), nullable=True),
        sa.Column("verdict", sa.Float(), nullable=True),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.CheckConstraint(
            "presentation_order IN ('original', 'swapped')",
            name=op.f("ck_judgments_presentation_order_known"),
        ),
        sa.CheckConstraint(
            "(verdict IS NULL) = (reason IS NOT NULL)", name=op.f("ck_judgments_verdict_or_reason")
        ),
        sa.ForeignKeyConstraint(["comparison_id"], ["comparisons.id"], name="fk_judgments_comparison_id"),
        sa.ForeignKeyConstraint(["generation_id"], ["generations.id"], name="fk_judgments_generation_id"),
        sa.PrimaryKeyConstraint("id", name="pk_judgments"),
        sa.UniqueConstraint("comparison_id", "number", name="uq_judgments_comparison_id_number"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "annotation_tasks",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("generation_a_id", sa.Integer(), nullable=False),
        sa.Column("generation_b_id", sa.Integer(), nullable=True),
        sa.Column("presentation_order", sa.String(length=16), nullable=False),
        sa.Column("held_by", NAME, nullable=True),
        sa.Column("held_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "presentation_order IN ('original', 'swapped')",
            name=op.f("ck_annotation_tasks_presentation_order_known"),
        ),
        sa.CheckConstraint(
            "(held_by IS NULL) = (held_at IS NULL)", name=op.f("ck_annotation_tasks_held_by_somebody")
        ),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_annotation_tasks_round_id"),
        sa.ForeignKeyConstraint(["example_id"], ["examples.id"], name="fk_annotation_tasks_example_id"),
        sa.ForeignKeyConstraint(
            ["generation_a_id"], ["generations.id"], name="fk_annotation_tasks_generation_a_id"
        ),
        sa.ForeignKeyConstraint(
            ["generation_b_id"], ["generations.id"], name="fk_annotation_tasks_generation_b_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_annotation_tasks"),
        sa.UniqueConstraint("key", name="uq_annotation_tasks_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_annotation_tasks_round_id", "annotation_tasks", ["round_id"])
    op.create_table(
        "annotations",
        sa.Column("task_id", sa.Integer(), nullable=False),
        sa.Column("verdict", sa.Float(), nullable=True),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.Column("annotator", NAME, nullable=False),
        sa.Column("source", NAME, nullable=False),
        sa.Column("annotated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("verdict BETWEEN 0 AND 1", name=op.f("ck_annotations_verdict_range")),
        sa.CheckConstraint(
            "(verdict IS NULL) = (reason IS NOT NULL)", name=op.f("ck_annotations_verdict_or_reason")
        ),
        sa.ForeignKeyConstraint(["task_id"], ["annotation_tasks.id"], name="fk_annotations_task_id"),
        sa.PrimaryKeyConstraint("task_id", name="pk_annotations"),
        sqlite_autoincrement=True,
    )
    for name, query in VIEWS[op.get_bind().dialect.name].items():
        op.execute(f"CREATE VIEW {name} AS {query}")


def downgrade() -> None:
    for name in reversed(VIEWS[op.get_bind().dialect.name]):
        op.execute(f"DROP VIEW {name}")
    for name in reversed(TABLES):
        op.drop_table(name)
