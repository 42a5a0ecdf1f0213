"""The best of many by any Python function as the scorer: no model, no server, no database.

With storage="sqlite:///winnow.db" and a name, select keeps every score, and goes on where it was stopped.

Run it with: python examples/any_function.py
"""

import winnow

PROMPTS = ["{} =", "What is {}?", "Add the two numbers: {}"]
QUESTIONS = [(a, b) for a in range(20) for b in range(20)]


def score(prompt: str, question: tuple[int, int]) -> float:
    """Return how good the answer to a prompt is, in [0, 1]; put your own program in its place."""
    a, b = question
    carries = a % 10 + b % 10 > 9
    return 0.0 if carries and len(prompt) < 10 else 1.0 - 0.1 * (len(prompt) > 20)


found = winnow.select(score, PROMPTS, QUESTIONS, delta=0.05)
print(f"{found.best!r} is best, {found.claim.kind} after {found.share:.0%} of all scores")
print(found.leaderboard().to_string(index=False))
