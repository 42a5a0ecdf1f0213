"""All rows of a campaign that must be the same whatever happened to it: no ids, no times, no runs."""

import json
from collections import Counter
from pathlib import Path

from campaign_processes import CHANGES, rows

QUERIES = {
    "rounds": "SELECT number, arms, examples FROM rounds",
    "generations": (
        "SELECT g.key, p.text, g.seed, g.replicate, g.text, g.finish_reason FROM generations g "
        "JOIN prompts p ON p.id = g.prompt_id"
    ),
    "comparisons": (
        "SELECT r.number, c.position, a.name, b.name, e.key, c.outcome, c.reason, c.answer, s.key, t.key, "
        "c.human_loss, c.auto_loss, c.unlabelled_loss, c.unlabelled_missing FROM comparisons c "
        "JOIN rounds r ON r.id = c.round_id JOIN examples e ON e.id = c.example_id "
        "JOIN candidates a ON a.id = c.candidate_a_id LEFT JOIN candidates b ON b.id = c.candidate_b_id "
        "LEFT JOIN generations s ON s.id = c.generation_a_id "
        "LEFT JOIN generations t ON t.id = c.generation_b_id"
    ),
    "outputs": (
        "SELECT r.number, c.position, o.number, t.key, o.score, o.reason, o.answer, o.preference "
        "FROM outputs o JOIN comparisons c ON c.id = o.comparison_id JOIN rounds r ON r.id = c.round_id "
        "JOIN generations t ON t.id = o.generation_id"
    ),
    "metrics": (
        "SELECT r.number, c.position, m.name, m.score, m.reason FROM metrics m "
        "JOIN comparisons c ON c.id = m.comparison_id JOIN rounds r ON r.id = c.round_id"
    ),
    "judgments": (
        "SELECT r.number, c.position, g.number, g.judge, g.presentation_order, g.repeat, g.attempt, "
        "g.verdict, g.reason, t.key FROM judgments g JOIN comparisons c ON c.id = g.comparison_id "
        "JOIN rounds r ON r.id = c.round_id LEFT JOIN generations t ON t.id = g.generation_id"
    ),
    # Without what was spent on it, which is less where texts of another campaign were at hand.
    "decisions": (
        "SELECT r.number, a.name, d.best_estimate, d.best_lower, d.best_upper, b.name, d.has_ranking, "
        "d.has_bets, d.claim, d.stop, d.reason, d.comparisons, d.answered, d.scored FROM decisions d "
        "JOIN rounds r ON r.id = d.round_id LEFT JOIN candidates a ON a.id = d.best_candidate_id "
        "LEFT JOIN candidates b ON b.id = d.against_candidate_id"
    ),
    **CHANGES,
    "candidates": "SELECT position, name, first_round FROM candidates",
    "candidate_stats": (
        "SELECT c.name, t.reason, t.comparisons, t.outcome_sum, t.texts, t.no_answer, t.truncated, "
        "t.input_tokens, t.output_tokens FROM candidate_stats t JOIN candidates c ON c.id = t.candidate_id"
    ),
    "labels": "SELECT e.key, l.targets FROM labels l JOIN examples e ON e.id = l.example_id",
    "embeddings": "SELECT embedder, digest, vector FROM embeddings",
}

History = dict[str, Counter[tuple]]


def history(folder: Path) -> History:
    """Every row, counted, by table."""
    return {table: Counter(rows(folder, query)) for table, query in QUERIES.items()}


def lost(found: History, reference: History) -> int:
    """Rows of the reference that are not there."""
    return sum((reference[table] - found[table]).total() for table in QUERIES)


def doubled(found: History, reference: History) -> int:
    """Rows that the reference does not have, or has fewer times."""
    return sum((found[table] - reference[table]).total() for table in QUERIES)


def difference(found: History, reference: History) -> str:
    """How many rows differ from those of the reference, and in which tables."""
    tables = [table for table in QUERIES if found[table] != reference[table]]
    return f"{lost(found, reference)} rows lost, {doubled(found, reference)} doubled, in {', '.join(tables)}"


def last_decision(found: History) -> tuple | None:
    """The decision of the last round."""
    return max(found["decisions"], key=lambda row: row[0], default=None)


def asked_again(folder: Path) -> int:
    """Texts that one process was asked for although an earlier one had committed them.

    Needs what `note_stored` left before each later process began.
    """
    stored = {tuple(each) for each in _lines(folder / "stored-before.jsonl")}
    return sum(tuple(each) in stored for each in _lines(folder / "asked.jsonl"))


def note_stored(folder: Path, looked: Path | None = None) -> None:
    """Forget what was asked, and note what is committed, in another folder's database if one is named."""
    (folder / "asked.jsonl").unlink(missing_ok=True)
    query = "SELECT g.model, p.text, g.seed FROM generations g JOIN prompts p ON p.id = g.prompt_id"
    lines = [json.dumps(row) + "\n" for row in rows(looked or folder, query)]
    (folder / "stored-before.jsonl").write_text("".join(lines))


def _lines(path: Path) -> list[list]:
    """Whole lines of a file, without the process ids that lead those of `asked.jsonl`."""
    if not path.exists():
        return []
    whole = [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [row[-3:] for row in whole]
