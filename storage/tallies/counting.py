"""What rounds add up to, in SQL: duels by pair, texts by whose they are; whoever asks says which rounds."""

from collections.abc import Iterable

FIRST, SECOND, BESIDE, REPLIES = "first", "second", "beside", "replies"

USED = {
    FIRST: """
        SELECT x.round_id, x.generation_a_id AS generation_id, k.position, NULL AS judge
        FROM comparisons x JOIN candidates k ON k.id = x.candidate_a_id""",
    SECOND: """
        SELECT x.round_id, x.generation_b_id, k.position, NULL
        FROM comparisons x JOIN candidates k ON k.id = x.candidate_b_id""",
    BESIDE: """
        SELECT x.round_id, o.generation_id, k.position, NULL
        FROM outputs o JOIN comparisons x ON x.id = o.comparison_id
        JOIN candidates k ON k.id = x.candidate_a_id""",
    REPLIES: """
        SELECT x.round_id, m.generation_id, NULL, m.judge
        FROM judgments m JOIN comparisons x ON x.id = m.comparison_id""",
}
"""What uses a text: the first or second side of a comparison, one of its several texts, a judge's call."""

ROLE = (
    "CASE WHEN u.position IS NOT NULL THEN 'candidate' WHEN u.judge IS NOT NULL THEN 'judge' ELSE 'other' END"
)
NAME = "coalesce(k.name, u.judge, '')"
"""Of the owner `u` of a text, where `k` is the candidate at its position."""

SUMS = (
    "count(*) AS generations, sum(g.input_tokens) AS input_tokens, sum(g.output_tokens) AS output_tokens, "
    "sum(g.seconds) AS seconds"
)
"""Of texts `g`."""

CACHE_SUMS = (
    "coalesce(sum(g.cached_tokens), 0) AS cached_tokens, "
    "coalesce(sum(CASE WHEN g.cached_tokens IS NOT NULL THEN g.input_tokens END), 0) AS cacheable_tokens"
)
"""Of those texts `g` whose engines told what they had in their prefix caches."""


def owners(parts: Iterable[str], where: str = "1 = 1") -> str:
    """The owner of each text that rounds use, as `round_id, generation_id, position, judge`.

    Of a text that several use, the candidate with the least position; the judge only where none uses it.

    Args:
        parts: Of `USED`, those that the rounds have.
        where: A condition on `used`, which pushed into its parts lets their indexes answer.
    """
    used = " UNION ALL ".join(USED[part] for part in USED if part in {FIRST, *parts})
    return f"""
        SELECT round_id, generation_id, min(position) AS position,
            CASE WHEN min(position) IS NULL THEN min(judge) END AS judge
        FROM ({used}) used WHERE generation_id IS NOT NULL AND {where} GROUP BY round_id, generation_id"""


def paid(parts: Iterable[str], *, used: str = "1 = 1", where: str) -> str:
    """What rounds paid for, as `campaign_id, role, name, model` and the sums of its texts.

    Args:
        parts: As for `owners`.
        used: A condition on what uses a text.
        where: A condition on the rounds `r`.
    """
    return f"""
        SELECT r.campaign_id, {ROLE}, {NAME}, g.model, {SUMS}, {CACHE_SUMS}
        FROM rounds r
        JOIN generations g ON g.round_id = r.id
        LEFT JOIN ({owners(parts, used)}) u ON u.round_id = r.id AND u.generation_id = g.id
        LEFT JOIN candidates k ON k.campaign_id = r.campaign_id AND k.position = u.position
        WHERE {where}
        GROUP BY r.campaign_id, u.position, u.judge, k.name, g.model
    """


def taken(owned: str, where: str) -> str:
    """What rounds took from others, as `campaign_id, role, name, taken_from_id` and the sums of its texts.

    Args:
        owned: Rows as those of `owners`.
        where: A condition on these rows `u`, their rounds `r`, the texts `g` and the rounds `paid` for them.
    """
    return f"""
        SELECT r.campaign_id, {ROLE}, {NAME}, coalesce(paid.campaign_id, 0), {SUMS}
        FROM ({owned}) u
        JOIN rounds r ON r.id = u.round_id
        JOIN generations g ON g.id = u.generation_id
        LEFT JOIN rounds paid ON paid.id = g.round_id
        LEFT JOIN candidates k ON k.campaign_id = r.campaign_id AND k.position = u.position
        WHERE {where}
        GROUP BY r.campaign_id, u.position, u.judge, k.name, coalesce(paid.campaign_id, 0)
    """


TOTALS = """
    SELECT r.campaign_id, count(*), sum(d.comparisons), sum(d.answered), sum(d.scored), sum(d.generations),
        sum(d.input_tokens), sum(d.output_tokens), sum(d.seconds)
    FROM decisions d JOIN rounds r ON r.id = d.round_id WHERE {where} GROUP BY r.campaign_id
"""
"""What the decisions that fulfil a condition add up to, by their campaigns."""

METRICS = """
    SELECT x.candidate_a_id, m.name, count(m.score), count(*) - count(m.score), coalesce(sum(m.score), 0)
    FROM metrics m JOIN comparisons x ON x.id = m.comparison_id WHERE {where}
    GROUP BY x.candidate_a_id, m.name
"""
"""What further judges said of the comparisons that fulfil a condition, by candidate and metric."""

DUELS = """
    SELECT candidate_a_id, candidate_b_id, count(*), count(outcome),
        sum(CASE WHEN outcome > 0.5 THEN 1 ELSE 0 END), sum(CASE WHEN outcome < 0.5 THEN 1 ELSE 0 END),
        coalesce(sum(outcome), 0)
    FROM comparisons WHERE candidate_b_id IS NOT NULL AND {where}
    GROUP BY candidate_a_id, candidate_b_id
"""
"""How the duels that fulfil a condition ended, by their candidates."""
