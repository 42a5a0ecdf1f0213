"""The SQL of the views as revision 0001 creates them; `view_columns` says what their columns mean."""

LAST = """(SELECT d.{column} FROM decisions d JOIN rounds r ON r.id = d.round_id
    WHERE r.campaign_id = c.id ORDER BY r.number DESC LIMIT 1)"""

CAMPAIGNS = f"""
WITH stood AS (
    SELECT c.id, c.name, c.objective, c.dataset_id, c.seed, c.created_at,
        {LAST.format(column="id")} AS decision_id
    FROM campaigns c
), found AS (
    SELECT s.id AS campaign_id, s.name AS campaign, s.objective, ds.name AS dataset, s.dataset_id, s.seed,
        (SELECT count(*) FROM candidates k WHERE k.campaign_id = s.id) AS candidates,
        t.rounds, t.comparisons, t.scored, b.name AS best, d.best_estimate AS estimate,
        d.best_lower AS lower, d.best_upper AS upper, d.stop AS stopped, d.reason, {{claim}} AS claim,
        s.created_at, d.decided_at
    FROM stood s
    JOIN datasets ds ON ds.id = s.dataset_id
    LEFT JOIN decisions d ON d.id = s.decision_id
    LEFT JOIN candidates b ON b.id = d.best_candidate_id
    LEFT JOIN campaign_stats t ON t.campaign_id = s.id
)
SELECT campaign_id, campaign, objective, dataset, seed, candidates, coalesce(rounds, 0) AS rounds,
    coalesce(comparisons, 0) AS comparisons, coalesce(scored, 0) AS scored, best, estimate, lower, upper,
    stopped, reason, claim, created_at, decided_at,
    lag(best) OVER (PARTITION BY dataset_id, objective ORDER BY created_at, campaign_id) AS previous_best
FROM found
"""

LEADERBOARD = f"""
WITH latest AS (
    SELECT c.id AS campaign_id, c.name AS campaign, {LAST.format(column="id")} AS decision_id
    FROM campaigns c
), counted AS (
    SELECT candidate_id, sum(CASE WHEN reason = '' THEN comparisons ELSE 0 END) AS scored,
        sum(CASE WHEN reason = '' THEN 0 ELSE comparisons END) AS unscored,
        sum(CASE WHEN reason = '' THEN outcome_sum ELSE 0 END) AS outcome_sum,
        sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens, sum(seconds) AS seconds
    FROM candidate_stats GROUP BY candidate_id
), board AS (
    SELECT l.campaign, k.position, k.name AS candidate,
        s.estimate, s.lower, s.upper,
        coalesce(n.scored, 0) AS scored, coalesce(n.unscored, 0) AS unscored,
        CASE WHEN n.scored > 0 THEN n.outcome_sum / n.scored END AS mean,
        coalesce(n.input_tokens, 0) AS input_tokens, coalesce(n.output_tokens, 0) AS output_tokens,
        coalesce(n.seconds, 0) AS seconds, coalesce(d.best_candidate_id = k.id, {{false}}) AS best,
        coalesce(s.status, 'active') AS status
    FROM latest l
    JOIN candidates k ON k.campaign_id = l.campaign_id
    LEFT JOIN decisions d ON d.id = l.decision_id
    LEFT JOIN {{standing}}
    LEFT JOIN counted n ON n.candidate_id = k.id
)
SELECT campaign, position, candidate, estimate, lower, upper, mean, scored, unscored, input_tokens,
    output_tokens, seconds, best, status
FROM board
"""

STANDINGS = """
SELECT c.name AS campaign, r.number AS round, k.name AS candidate, s.estimate, s.lower, s.upper, s.status
FROM standings s
JOIN candidates k ON k.id = s.candidate_id
JOIN rounds r ON r.id = s.round_id
JOIN campaigns c ON c.id = k.campaign_id
"""

ROUNDS = """
SELECT c.name AS campaign, r.number AS round, d.comparisons, d.answered, d.scored, d.candidates,
    k.name AS best, d.stop, d.reason, r.planned_after, r.planned_at, d.decided_at, d.generations,
    d.input_tokens, d.output_tokens, d.seconds
FROM rounds r
JOIN campaigns c ON c.id = r.campaign_id
LEFT JOIN decisions d ON d.round_id = r.id
LEFT JOIN candidates k ON k.id = d.best_candidate_id
"""

CURVE = """
SELECT c.name AS campaign, r.number AS round,
    sum(d.answered) OVER (PARTITION BY r.campaign_id ORDER BY r.number) AS comparisons,
    k.name AS best, d.best_estimate AS estimate, d.best_lower AS lower, d.best_upper AS upper
FROM rounds r
JOIN campaigns c ON c.id = r.campaign_id
JOIN decisions d ON d.round_id = r.id
LEFT JOIN candidates k ON k.id = d.best_candidate_id
"""

COMPARISONS = """
SELECT c.name AS campaign, r.number AS round, x.position, x.id AS comparison_id, a.name AS candidate,
    b.name AS candidate_b, e.key AS example, x.outcome, x.reason, x.detail, x.answer, x.no_answer,
    g.finish_reason = 'length' AS truncated, x.judge, x.human_loss, x.auto_loss, x.unlabelled_loss,
    x.unlabelled_missing, p.text AS prompt, g.text, g.reasoning, q.text AS prompt_b, h.text AS text_b,
    h.reasoning AS reasoning_b, g.finish_reason, g.input_tokens, g.output_tokens, g.seconds, g.latency,
    g.engine, g.served_as
FROM comparisons x
JOIN rounds r ON r.id = x.round_id
JOIN campaigns c ON c.id = r.campaign_id
JOIN candidates a ON a.id = x.candidate_a_id
JOIN examples e ON e.id = x.example_id
LEFT JOIN candidates b ON b.id = x.candidate_b_id
LEFT JOIN generations g ON g.id = x.generation_a_id
LEFT JOIN prompts p ON p.id = g.prompt_id
LEFT JOIN generations h ON h.id = x.generation_b_id
LEFT JOIN prompts q ON q.id = h.prompt_id
"""

HEAD_TO_HEAD = """
SELECT c.name AS campaign, a.name AS candidate, b.name AS opponent, sum(s.duels) AS duels,
    sum(s.wins) AS wins, sum(s.scored - s.wins - s.losses) AS ties, sum(s.losses) AS losses,
    sum(s.duels - s.scored) AS unscored, sum(s.outcome_sum) / nullif(sum(s.scored), 0) AS win_rate
FROM (
    SELECT candidate_a_id AS candidate_id, candidate_b_id AS opponent_id, duels, scored, wins, losses,
        outcome_sum
    FROM duel_stats
    UNION ALL
    SELECT candidate_b_id, candidate_a_id, duels, scored, losses, wins, scored - outcome_sum FROM duel_stats
) s
JOIN candidates a ON a.id = s.candidate_id
JOIN candidates b ON b.id = s.opponent_id
JOIN campaigns c ON c.id = a.campaign_id
GROUP BY c.id, c.name, a.id, a.name, b.id, b.name
"""

COVERAGE = """
SELECT c.name AS campaign, k.name AS candidate, nullif(t.reason, '') AS reason, t.comparisons,
    CAST(t.comparisons AS DOUBLE PRECISION) / sum(t.comparisons) OVER (PARTITION BY k.id) AS share,
    t.no_answer, t.truncated, t.detail
FROM candidate_stats t
JOIN candidates k ON k.id = t.candidate_id
JOIN campaigns c ON c.id = k.campaign_id
"""

JUDGMENTS = """
SELECT c.name AS campaign, r.number AS round, x.position, m.number AS judgment, a.name AS candidate,
    b.name AS candidate_b, m.metric, m.judge, m.presentation_order, m.repeat, m.attempt, m.verdict, m.reason,
    p.text AS prompt, g.text AS reply, g.input_tokens, g.output_tokens, g.seconds, g.served_as
FROM judgments m
JOIN comparisons x ON x.id = m.comparison_id
JOIN rounds r ON r.id = x.round_id
JOIN campaigns c ON c.id = r.campaign_id
JOIN candidates a ON a.id = x.candidate_a_id
LEFT JOIN candidates b ON b.id = x.candidate_b_id
LEFT JOIN generations g ON g.id = m.generation_id
LEFT JOIN prompts p ON p.id = g.prompt_id
"""

OUTPUTS = """
SELECT c.name AS campaign, r.number AS round, x.position, a.name AS candidate, e.key AS example,
    o.number AS output, o.score, o.reason, o.answer, o.no_answer, o.preference, x.outcome,
    p.text AS prompt, g.text, g.reasoning, g.finish_reason, g.input_tokens, g.output_tokens,
    g.seconds, g.latency, g.engine, g.served_as
FROM outputs o
JOIN comparisons x ON x.id = o.comparison_id
JOIN rounds r ON r.id = x.round_id
JOIN campaigns c ON c.id = r.campaign_id
JOIN candidates a ON a.id = x.candidate_a_id
JOIN examples e ON e.id = x.example_id
JOIN generations g ON g.id = o.generation_id
JOIN prompts p ON p.id = g.prompt_id
"""

COSTS = """
SELECT c.name AS campaign, s.role, nullif(s.name, '') AS name, sum(s.generations) AS generations,
    sum(s.input_tokens) AS input_tokens, sum(s.output_tokens) AS output_tokens, sum(s.seconds) AS seconds,
    CASE WHEN sum(s.cacheable_tokens) > 0 THEN sum(s.cached_tokens) END AS cached_tokens,
    CAST(sum(s.cached_tokens) AS DOUBLE PRECISION) / nullif(sum(s.cacheable_tokens), 0) AS cache_hit_rate
FROM cost_stats s
JOIN campaigns c ON c.id = s.campaign_id
GROUP BY c.id, c.name, s.role, s.name
"""

REUSE = """
SELECT c.name AS campaign, o.name AS taken_from, s.role, sum(s.generations) AS generations
FROM reuse_stats s
JOIN campaigns c ON c.id = s.campaign_id
LEFT JOIN campaigns o ON o.id = s.taken_from_id
GROUP BY c.id, c.name, o.id, o.name, s.role
"""


def _views(standing: str, claim: str, false: str) -> dict[str, str]:
    return {
        "v_campaigns": CAMPAIGNS.format(claim=claim),
        "v_leaderboard": LEADERBOARD.format(standing=standing, false=false),
        "v_standings": STANDINGS,
        "v_rounds": ROUNDS,
        "v_curve": CURVE,
        "v_comparisons": COMPARISONS,
        "v_head_to_head": HEAD_TO_HEAD,
        "v_coverage": COVERAGE,
        "v_judgments": JUDGMENTS,
        "v_outputs": OUTPUTS,
        "v_costs": COSTS,
        "v_reuse": REUSE,
    }


VIEWS = {
    "sqlite": _views(
        "standings s ON s.candidate_id = k.id "
        "AND s.round_id = (SELECT max(round_id) FROM standings WHERE candidate_id = k.id)",
        "json_extract(d.claim, '$.kind')",
        "0",
    ),
    # Of SQLite's form its planner makes a join that reads the whole table.
    "postgresql": _views(
        "LATERAL (SELECT * FROM standings WHERE candidate_id = k.id ORDER BY round_id DESC LIMIT 1) s "
        "ON TRUE",
        "d.claim ->> 'kind'",
        "FALSE",
    ),
}
