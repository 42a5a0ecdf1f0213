"""The betting formula of `confidence_sequences` written out draw by draw, and ways to get it wrong."""

import numpy as np

FLAWS = ("with replacement", "bet on the current score", "no cap")


def literal_capital(scores, m, n_examples, level, flaw=None, is_draw=None):
    """Capital against the mean m after every draw.

    Args:
        scores: Shape (P, T), the scores of P paths in the order they were told.
        m: The mean in question, a number or shape (P,).
        n_examples: N.
        level: Probability of ever reaching 1 / level if m is the mean.
        flaw: None, or one of `FLAWS`.
        is_draw: Shape (P, T), which scores are bet on; None for all.

    Returns:
        Shape (P, T).
    """
    horizons = [16.0]
    while 4.0 * horizons[-1] <= n_examples:
        horizons.append(4.0 * horizons[-1])
    n_paths, n_draws = scores.shape
    means = np.array([(0.5 + scores[:, :k].sum(axis=1)) / (k + 1) for k in range(1, n_draws + 1)]).T  # (P, T)
    squares = (scores - means) ** 2
    wealths = np.ones((len(horizons), n_paths))
    capital = np.empty((n_paths, n_draws))
    for t in range(1, n_draws + 1):
        seen = t if flaw == "bet on the current score" else t - 1
        variance = (0.25 + squares[:, :seen].sum(axis=1)) / (seen + 1)
        left = (n_examples * m - scores[:, : t - 1].sum(axis=1)) / (n_examples - t + 1)
        if flaw == "with replacement":
            left = m
        cap = np.inf if flaw == "no cap" else 0.75 / np.maximum(left, 1e-12)
        for j, horizon in enumerate(horizons):
            bet = np.minimum(np.sqrt(2.0 * np.log(1.0 / level) / (horizon * variance)), cap)
            if is_draw is not None:
                bet = bet * is_draw[:, t - 1]
            wealths[j] *= 1.0 + bet * (scores[:, t - 1] - left)
        capital[:, t - 1] = wealths.mean(axis=0)
    return capital
