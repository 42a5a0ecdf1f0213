"""Store each prompt once, keep what rounds and candidates add up to, and name the views for other tools."""

import hashlib

import sqlalchemy as sa
from alembic import op

from storage.migrations.views_0005 import VIEWS

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

LARGE = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
NAME = sa.String(length=255).with_variant(sa.Text(), "postgresql")
LOSSES = ("human_loss", "auto_loss", "unlabelled_loss")
COUNTS = (
    ("comparisons", sa.Integer()),
    ("scored", sa.Integer()),
    ("candidates", sa.Integer()),
    ("generations", sa.Integer()),
    ("input_tokens", LARGE),
    ("output_tokens", LARGE),
    ("seconds", sa.Float()),
)
BOUNDS = ("estimate", "lower", "upper")

SIDES = """
    SELECT round_id, candidate_a_id AS candidate_id, generation_a_id AS generation_id, outcome AS points,
        reason, detail FROM comparisons
    UNION ALL
    SELECT round_id, candidate_b_id, generation_b_id, 1 - outcome, reason, detail FROM comparisons
    WHERE candidate_b_id IS NOT NULL
"""
FILL_TALLIES = f"""
    INSERT INTO tallies
        (candidate_id, reason, comparisons, points, input_tokens, output_tokens, seconds, detail)
    SELECT s.candidate_id, coalesce(s.reason, ''), count(*), coalesce(sum(s.points), 0),
        coalesce(sum(g.input_tokens), 0), coalesce(sum(g.output_tokens), 0), coalesce(sum(g.seconds), 0),
        min(s.detail)
    FROM ({SIDES}) s LEFT JOIN generations g ON g.id = s.generation_id
    GROUP BY s.candidate_id, coalesce(s.reason, '')
"""
COUNTED = {
    "comparisons": "SELECT count(*) FROM comparisons c WHERE c.round_id = decisions.round_id",
    "scored": "SELECT count(c.outcome) FROM comparisons c WHERE c.round_id = decisions.round_id",
    "candidates": f"SELECT count(DISTINCT s.candidate_id) FROM ({SIDES}) s "
    "WHERE s.round_id = decisions.round_id",
    "generations": "SELECT count(*) FROM generations g WHERE g.round_id = decisions.round_id",
    **{
        name: f"SELECT coalesce(sum({name}), 0) FROM generations g WHERE g.round_id = decisions.round_id"
        for name in ("input_tokens", "output_tokens", "seconds")
    },
}


def upgrade() -> None:
    _store_prompts_once()
    with op.batch_alter_table("comparisons") as table:
        table.drop_index("ix_comparisons_candidate_b_id")
        table.drop_index("ix_comparisons_example_id")
    with op.batch_alter_table("comparisons", copy_from=_comparisons()) as table:
        for name in LOSSES:
            table.create_check_constraint(op.f(f"ck_comparisons_{name}_range"), f"{name} BETWEEN 0 AND 1")
    _keep_counts()
    op.create_table(
        "tallies",
        sa.Column("candidate_id", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(length=64), nullable=False),
        sa.Column("comparisons", sa.Integer(), nullable=False),
        sa.Column("points", sa.Float(), nullable=False),
        sa.Column("input_tokens", LARGE, nullable=False),
        sa.Column("output_tokens", LARGE, nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["candidate_id"], ["candidates.id"], name="fk_tallies_candidate_id"),
        sa.PrimaryKeyConstraint("candidate_id", "reason", name="pk_tallies"),
    )
    op.execute(FILL_TALLIES)
    for name, query in VIEWS[_dialect()].items():
        op.execute(f"CREATE VIEW {name} AS {query}")


def downgrade() -> None:
    for name in reversed(VIEWS[_dialect()]):
        op.execute(f"DROP VIEW {name}")
    op.drop_table("tallies")
    with op.batch_alter_table("decisions") as table:
        for name in (*(f"best_{bound}" for bound in BOUNDS), *(name for name, _ in COUNTS)):
            table.drop_column(name)
    with op.batch_alter_table("comparisons", copy_from=_comparisons(*LOSSES)) as table:
        for name in LOSSES:
            table.drop_constraint(op.f(f"ck_comparisons_{name}_range"), type_="check")
        table.create_index("ix_comparisons_candidate_b_id", ["candidate_b_id"])
        table.create_index("ix_comparisons_example_id", ["example_id"])
    _store_prompts_with_each_text()


def _store_prompts_once() -> None:
    op.create_table(
        "prompts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_prompts"),
        sa.UniqueConstraint("digest", name="uq_prompts_digest"),
    )
    op.add_column("generations", sa.Column("prompt_id", sa.Integer(), nullable=True))
    digest = _digest_function()
    op.execute(
        f"INSERT INTO prompts (digest, text) SELECT {digest}, prompt FROM "
        "(SELECT DISTINCT prompt FROM generations) AS p"
    )
    op.execute(f"UPDATE generations SET prompt_id = (SELECT id FROM prompts WHERE digest = {digest})")
    with op.batch_alter_table("generations", copy_from=_generations("prompt", "prompt_id")) as table:
        table.alter_column("prompt_id", existing_type=sa.Integer(), nullable=False)
        table.create_foreign_key("fk_generations_prompt_id", "prompts", ["prompt_id"], ["id"])
        table.drop_column("prompt")


def _store_prompts_with_each_text() -> None:
    op.add_column("generations", sa.Column("prompt", sa.Text(), nullable=True))
    op.execute("UPDATE generations SET prompt = (SELECT text FROM prompts WHERE id = prompt_id)")
    with op.batch_alter_table("generations", copy_from=_generations("prompt_id", "prompt")) as table:
        table.alter_column("prompt", existing_type=sa.Text(), nullable=False)
        table.drop_constraint("fk_generations_prompt_id", type_="foreignkey")
        table.drop_column("prompt_id")
    op.drop_table("prompts")


def _keep_counts() -> None:
    for bound in BOUNDS:
        op.add_column("decisions", sa.Column(f"best_{bound}", sa.Float(), nullable=True))
    for name, type_ in COUNTS:
        op.add_column("decisions", sa.Column(name, type_, nullable=True))
    lists = dict(zip(BOUNDS, ("estimates", "lower", "upper"), strict=True))
    position = "(SELECT position FROM candidates WHERE candidates.id = decisions.best_candidate_id)"
    values = {
        **{f"best_{bound}": _element(column, position) for bound, column in lists.items()},
        **{name: f"({query})" for name, query in COUNTED.items()},
    }
    op.execute("UPDATE decisions SET " + ", ".join(f"{name} = {value}" for name, value in values.items()))
    with op.batch_alter_table("decisions") as table:
        for name, type_ in COUNTS:
            table.alter_column(name, existing_type=type_, nullable=False)


def _element(column: str, position: str) -> str:
    if _dialect() == "postgresql":
        return f"CAST({column} ->> {position} AS FLOAT)"
    return f"json_extract({column}, '$[' || {position} || ']')"


def _digest_function() -> str:
    if _dialect() == "postgresql":
        return "encode(sha256(convert_to(prompt, 'UTF8')), 'hex')"
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.create_function(
        "sha256_hex", 1, lambda text: hashlib.sha256(text.encode()).hexdigest(), deterministic=True
    )
    return "sha256_hex(prompt)"


def _dialect() -> str:
    return op.get_bind().dialect.name


def _generations(*prompt_columns: str) -> sa.Table:
    """The table with both columns for prompts, the second of which is still empty to the database."""
    table = sa.Table(
        "generations",
        sa.MetaData(),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("model", NAME, nullable=False),
        sa.Column("prompt", sa.Text(), nullable=prompt_columns[1] == "prompt"),
        sa.Column("prompt_id", sa.Integer(), nullable=prompt_columns[1] == "prompt_id"),
        sa.Column("seed", LARGE, nullable=False),
        sa.Column("replicate", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("choice_logprobs", sa.JSON(), nullable=True),
        sa.Column("finish_reason", sa.String(length=32), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("engine", NAME, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "input_tokens >= 0 AND output_tokens >= 0 AND seconds >= 0",
            name="ck_generations_counts_not_negative",
        ),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_generations_round_id"),
        sa.PrimaryKeyConstraint("id", name="pk_generations"),
        sa.UniqueConstraint("key", name="uq_generations_key"),
        sa.Index("ix_generations_round_id", "round_id"),
    )
    if prompt_columns[0] == "prompt_id":
        table.append_constraint(
            sa.ForeignKeyConstraint(["prompt_id"], ["prompts.id"], name="fk_generations_prompt_id")
        )
    return table


def _comparisons(*checked: str) -> sa.Table:
    """The table, with a check of the range of these columns."""
    keys = {
        "candidate_a_id": "candidates",
        "candidate_b_id": "candidates",
        "example_id": "examples",
        "generation_a_id": "generations",
        "generation_b_id": "generations",
        "round_id": "rounds",
    }
    return sa.Table(
        "comparisons",
        sa.MetaData(),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("candidate_a_id", sa.Integer(), nullable=False),
        sa.Column("candidate_b_id", sa.Integer(), nullable=True),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("generation_a_id", sa.Integer(), nullable=True),
        sa.Column("generation_b_id", sa.Integer(), nullable=True),
        sa.Column("judge", sa.String(length=64), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Float(), nullable=True),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.Column("detail", sa.Text(), nullable=True),
        *(sa.Column(name, sa.Float(), nullable=True) for name in LOSSES),
        sa.CheckConstraint(
            "(outcome IS NULL) = (reason IS NOT NULL)", name="ck_comparisons_outcome_or_reason"
        ),
        sa.CheckConstraint("outcome BETWEEN -1 AND 1", name="ck_comparisons_outcome_range"),
        *(
            sa.CheckConstraint(f"{name} BETWEEN 0 AND 1", name=f"ck_comparisons_{name}_range")
            for name in checked
        ),
        *(
            sa.ForeignKeyConstraint([column], [f"{parent}.id"], name=f"fk_comparisons_{column}")
            for column, parent in keys.items()
        ),
        sa.PrimaryKeyConstraint("id", name="pk_comparisons"),
        sa.UniqueConstraint("round_id", "position", name="uq_comparisons_round_id_position"),
        sa.Index(
            "uq_comparisons_candidate_example",
            "candidate_a_id",
            "example_id",
            unique=True,
            sqlite_where=sa.text("candidate_b_id IS NULL"),
            postgresql_where=sa.text("candidate_b_id IS NULL"),
        ),
    )
