"""Choose among three prompts, scored by a Python function: no model, no server, no database."""

import winnow

PROMPTS = ["{} + {} =", "What is {} + {}?", "Add {} and {}. Think step by step."]
QUESTIONS = [(a, b) for a in range(20) for b in range(20)]


def score(prompt: str, question: tuple[int, int]) -> float:
    """Return a score in [0, 1]; call your own program here."""
    return 0.0 if len(prompt) < 10 and sum(question) % 10 < 5 else 1.0 - 0.1 * ("step" in prompt)


found = winnow.select(score, PROMPTS, QUESTIONS, delta=0.05)
print(found)
print(found.leaderboard())
