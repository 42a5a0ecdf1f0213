"""The wealths of `algorithms.champion` written out draw by draw and arm by arm, with nothing kept up to date.

Nobody is ever out by wealth here: only arms that cannot reach the champion any more are left out.
"""

import numpy as np

RACE_BETS, TEST_BETS = (1.2, 0.5, 0.2, 0.07), (3.0, 1.0, 0.35, 0.12)


class LiteralChampion:
    """Told the rounds of a campaign, the first ones being columns of the race."""

    def __init__(self, n_arms, n_examples, weight, epsilon):
        self.K, self.N, self.weight, self.epsilon = n_arms, n_examples, weight, epsilon
        self.columns = []  # of the race: scores of all arms
        self.race_bets = []  # of each column: for each arm its opponents and the adaptive bet
        self.draws = [[] for _ in range(n_arms)]  # (example, score as 1, control, least, adaptive, residual)
        self.low = [[] for _ in range(n_arms)]
        self.raced = [0] * n_arms
        self.untested = None
        self.champion, self.T = None, None
        self.told_residuals = [[] for _ in range(n_examples)]
        self.features = {}  # of an arm, the rows of its draws
        self.row = np.zeros(n_examples)
        self.weights = np.zeros((n_arms, 2))

    def columns_told(self, examples, scores):
        """A round of the race, scores of shape (K, B)."""
        bets = [self.race_bet(arm) for arm in range(self.K)]
        for scores_of_column in scores.T:
            self.columns.append(scores_of_column)
            self.race_bets.append(bets)
        sums = [sum(d[1] for d in self.draws[arm]) for arm in range(self.K)]
        for arm in range(self.K):
            self.plain_draws(arm, examples, scores[arm], sums[arm])
            self.raced[arm] = len(self.draws[arm])

    def race_bet(self, arm):
        """Who the opponents are, best first, and the adaptive bet, from the columns so far."""
        t = len(self.columns)
        low = np.nan_to_num(np.array(self.columns).reshape(t, self.K), nan=0.0)
        high = np.nan_to_num(np.array(self.columns).reshape(t, self.K), nan=1.0)
        others = sorted((j for j in range(self.K) if j != arm), key=lambda j: (-low[:, j].sum(), j))
        sizes = [s for s in (1, 2, 3, 4, 6, 8, 12) if s <= len(others)]
        if t == 0:
            return others[: sizes[-1]], 0.3
        best = None
        for s in sizes:
            lead = (low[:, others[:s]].mean(axis=1).sum() - high[:, arm].sum()) / t
            squares = ((low[:, others[:s]].mean(axis=1) - low[:, arm]) ** 2).sum()
            moment = (squares + 0.1) / (t + 1)
            clear = max(lead, 0.0) ** 2 / moment
            if best is None or clear > best[0] + 1e-12:
                best = (clear, s, max(lead, 1.4 * np.sqrt(moment / t)) / moment)
        return others[: best[1]], best[2]

    def plain_draws(self, arm, examples, scores, sum_before):
        """Draws without a bet against a champion."""
        self.absorb(arm, examples, scores, sum_before, [(0.0, 0.0, 0.0)] * len(examples))

    def absorb(self, arm, examples, scores, sum_before, bets):
        values = [1.0 if np.isnan(x) else x for x in scores]
        mean = (sum_before + sum(values)) / (len(self.draws[arm]) + len(values))
        for e, x, value, bet in zip(examples, scores, values, bets, strict=True):
            self.draws[arm].append((e, value, *bet, value - mean))
            self.low[arm].append(0.0 if np.isnan(x) else x)
            self.told_residuals[e].append(value - mean)

    def ease(self):
        return np.array([sum(r) / (1.0 + len(r)) for r in self.told_residuals])

    def told(self, arms, examples, scores):
        """A round of draws that each arm has of its own."""
        by_arm = {arm: np.flatnonzero(arms == arm) for arm in sorted(set(arms.tolist()))}
        ease = self.ease()
        bets, features = {}, {}
        for arm, where in by_arm.items():
            bets[arm] = [(0.0, 0.0, 0.0)] * len(where)
            if self.champion is not None:
                bets[arm] = self.test_bets(arm, examples[where], ease)
            features[arm] = [[self.row[e], ease[e]] for e in examples[where]]
        sums = {arm: sum(d[1] for d in self.draws[arm]) for arm in by_arm}
        for arm, where in by_arm.items():
            self.absorb(arm, examples[where], scores[where], sums[arm], bets[arm])
        if self.champion is not None:
            for arm in by_arm:
                self.features[arm] += features[arm]
            self.weigh([*by_arm])
        self.crown()

    def test_bets(self, arm, examples, ease):
        """Control, its least value and the adaptive bet of each draw, from what was told before the round."""
        said = self.weights[arm, 0] * self.row + self.weights[arm, 1] * ease
        seen = {d[0] for d in self.draws[arm]}
        start = [e for e in range(self.N) if e not in seen]
        least = min(said[e] for e in start)
        adaptive = self.adaptive_bet(arm, ease)
        bets = []
        for e in examples:
            left = [f for f in range(self.N) if f not in seen]
            mean = sum(said[f] for f in left) / len(left)
            bets.append((said[e] - mean, max(mean - least, 0.0) + 1e-9, adaptive))
            seen.add(e)
        return bets

    def adaptive_bet(self, arm, ease):
        x = np.array([d[1] for d in self.draws[arm]])
        f = np.array(self.features[arm])
        w, n = self.weights[arm], len(x)
        residual = (x - x.mean()) - (f - f.mean(axis=0)) @ w
        variance = ((residual**2).sum() + 0.1) / (n + 1)
        estimate = x.mean() - (f.mean(axis=0) - [self.row.mean(), ease.mean()]) @ w
        return min(max(self.T - estimate, 1.4 * np.sqrt(variance / n)) / variance, 5.0)

    def weigh(self, arms):
        """Ridge regression of an arm's scores on the features, with 20 draws' worth of all arms'."""
        squares, across, count = {}, {}, 0
        for arm, rows in self.features.items():
            f = np.array(rows)
            x = np.array([d[1] for d in self.draws[arm]])
            squares[arm] = (f - f.mean(axis=0)).T @ (f - f.mean(axis=0))
            across[arm] = (f - f.mean(axis=0)).T @ (x - x.mean())
            count += len(x)
        share = 20.0 / count
        for arm in arms:
            a = squares[arm] + share * sum(squares.values()) + 0.1 * np.eye(2)
            b = across[arm] + share * sum(across.values()) + 0.1 * np.array([0.3, 0.3])
            self.weights[arm] = np.linalg.solve(a, b)

    def crown(self):
        full = [arm for arm in range(self.K) if len(self.draws[arm]) == self.N]
        if not full:
            return
        best = max(full, key=lambda arm: (sum(self.low[arm]), -arm))
        if self.champion is not None and sum(self.low[best]) <= sum(self.low[self.champion]) + 1e-9 * self.N:
            return
        self.champion, self.T = best, sum(self.low[best]) / self.N + self.epsilon
        if self.untested is None:
            self.untested = [len(draws) for draws in self.draws]
        self.row = np.zeros(self.N)
        for e, x, *_ in self.draws[best]:
            self.row[e] = x
        arms = [arm for arm in range(self.K) if arm != best and 0 < len(self.draws[arm]) < self.N]
        for arm in arms:
            rows = []
            for e, *_, residual in self.draws[arm]:
                others = list(self.told_residuals[e])
                rows.append([self.row[e], (sum(others) - residual) / (1.0 + len(others) - 1.0)])
            self.features[arm] = rows
        if arms:
            self.weigh(arms)

    def wealth(self, arm):
        """M of an arm."""
        part = self.weight * self.race_wealth(arm)
        if self.champion is None:
            return part
        return part * self.test_wealth(arm, self.raced[arm]) + (1.0 - self.weight) * self.test_wealth(arm, 0)

    def race_wealth(self, arm):
        fixed, adaptive = [1.0] * 4, 1.0
        for t, column in enumerate(self.columns):
            opponents, bet = self.race_bets[t][arm]
            past = np.array(self.columns[:t]).reshape(t, self.K)
            theirs = np.nan_to_num(past, nan=0.0)[:, opponents].mean(axis=1).sum()
            level = -(theirs - np.nan_to_num(past[:, arm], nan=1.0).sum()) / (self.N - t)
            gain = (
                np.nan_to_num(column, nan=0.0)[opponents].mean() - np.nan_to_num(column[arm], nan=1.0) - level
            )
            most = 0.8 / (1.0 + level)
            for k, each in enumerate(RACE_BETS):
                fixed[k] *= 1.0 + min(each * self.N / (self.N - t), most) * gain
            adaptive *= 1.0 + min(bet, most) * gain
        return 0.7 * np.mean(fixed) + 0.3 * adaptive

    def test_wealth(self, arm, first):
        """C of the draws from the first one counted on, at the T there is now."""
        fixed, tested = [1.0] * 4, 1.0
        entered = None
        for t, (_, x, control, least, bet, _) in enumerate(self.draws[arm]):
            if t == max(self.untested[arm], self.raced[arm]):
                entered = np.mean(fixed)
            level = (self.N * self.T - sum(d[1] for d in self.draws[arm][:t])) / (self.N - t)
            most = 0.8 / (1.0 - level + least)
            gain = level - x + control
            if t >= first:
                for k, each in enumerate(TEST_BETS):
                    fixed[k] *= 1.0 + min(each * self.N / (self.N - t), most) * gain
                tested *= 1.0 + min(bet, most) * gain
        entered = np.mean(fixed) if entered is None else entered
        return 0.5 * np.mean(fixed) + 0.5 * entered * tested
