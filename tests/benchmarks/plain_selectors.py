"""The algorithms written down as they are stated, without any care for speed: what ours are timed beside."""

from itertools import count

import numpy as np
import torch

WEIGHT_DECAY, FIRST_RATE, FIRST_EPOCHS, RATE, EPOCHS = 0.01, 0.01, 50, 0.1, 10
"""Of the paper's fits of the models' factors by AdamW (Tolochinsky et al., Appendix C.1)."""


def plain_ucb_e(scores, *, budget, batch_size, seed):
    """UCB-E with a list per arm; returns the recommended arm."""
    rng = np.random.default_rng(seed)
    n_arms, n_examples = scores.shape
    left = [list(rng.permutation(n_examples)) for _ in range(n_arms)]
    seen = [[] for _ in range(n_arms)]
    sums = [0.0] * n_arms
    for _ in range(budget // batch_size):
        bounds = [
            sums[arm] / len(seen[arm]) + (1.0 / len(seen[arm])) ** 0.5 if seen[arm] else float("inf")
            for arm in range(n_arms)
            if left[arm]
        ]
        arms = [arm for arm in range(n_arms) if left[arm]]
        arm = arms[max(range(len(arms)), key=bounds.__getitem__)]
        for _ in range(batch_size):
            if left[arm]:
                score = float(scores[arm, left[arm].pop()])
                seen[arm].append(score)
                sums[arm] += score
    return max(range(n_arms), key=lambda arm: sums[arm] / max(1, len(seen[arm])))


def plain_pulse(scores, v, *, batch_size, tau, seed):
    """PULSE with given factors of the examples, AdamW, and sums over all n in each round.

    Yields the best arm when every arm had a batch and the first fit is done, and after every round.
    """
    rng = np.random.default_rng(seed)
    n_arms, n_examples = scores.shape
    untold = np.ones(scores.shape, dtype=bool)
    thetas, z_values = [[] for _ in range(n_arms)], [[] for _ in range(n_arms)]
    for arm in range(n_arms):
        batch = rng.choice(n_examples, batch_size, replace=False)
        untold[arm, batch] = False
        thetas[arm].append(scores[arm, batch].mean())
    u = torch.zeros((n_arms, v.shape[1]))
    u, predicted = _adamw(u, v, scores, ~untold, FIRST_RATE, FIRST_EPOCHS)
    for round_ in count(1):
        yield int(np.argmax([np.mean(values) for values in thetas]))
        if round_ % tau == 0:
            u, predicted = _adamw(u, v, scores, ~untold, RATE, EPOCHS)
        pulls = np.array([len(values) for values in thetas]) * batch_size
        estimates = np.array([np.mean(values) for values in thetas])
        bounds = np.where(pulls < n_examples, estimates + np.sqrt(1.0 / pulls), -np.inf)
        arm = int(bounds.argmax())
        open_ = np.flatnonzero(untold[arm])
        s, n_left = predicted[arm, open_], len(open_)
        weight, f = 1.0, s.sum()
        if z_values[arm]:
            squares = (s**2).sum() - f**2 / n_left
            spread = n_left**2 * (1.0 / batch_size - 1.0 / n_left) * squares / (n_left - 1) + f**2
            weight = float(np.clip(1.0 - f * np.mean(z_values[arm]) / spread, 0.0, 1.0))
        batch = rng.choice(open_, min(batch_size, n_left), replace=False)
        z = (scores[arm, batch] - weight * predicted[arm, batch]).sum() * n_left / len(batch)
        thetas[arm].append((scores[arm, ~untold[arm]].sum() + weight * f + z) / n_examples)
        z_values[arm].append(z)
        untold[arm, batch] = False


def _adamw(u, v, scores, observed, rate, epochs):
    """The paper's fit: full-batch gradient steps on the mean loss over the observed entries."""
    u = u.clone().requires_grad_()
    v, truth, mask = torch.from_numpy(v), torch.from_numpy(scores), torch.from_numpy(observed).float()
    optimizer = torch.optim.AdamW([u], lr=rate, weight_decay=WEIGHT_DECAY)
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            u @ v.T, truth, weight=mask, reduction="sum"
        )
        (loss / mask.sum()).backward()
        optimizer.step()
    with torch.no_grad():
        return u.detach(), torch.sigmoid(u @ v.T).numpy()


def plain_ensemble(scores, observed, *, members, sweeps, ridge, drop, rng):
    """One round's ensemble of rank-1 fits, one member after the other; mean and deviation of each pair."""
    completions = []
    for _ in range(members):
        mask = observed & (rng.random(scores.shape) >= drop)
        known = np.where(mask, scores, 0.0)
        u, v = rng.standard_normal(scores.shape[0]), rng.standard_normal(scores.shape[1])
        for _ in range(sweeps):
            u = known @ v / (mask @ v**2 + ridge)
            v = known.T @ u / (mask.T @ u**2 + ridge)
        completions.append(np.outer(u, v))
    return np.mean(completions, axis=0), np.std(completions, axis=0)
