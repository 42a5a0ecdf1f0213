"""The wealths of `algorithms.champion` written out draw by draw and arm by arm, with nothing kept up to date.

Nobody is ever out by wealth here: only arms that cannot reach the champion any more are left out.
"""

import numpy as np

RACE_BETS, TEST_BETS = (1.2, 0.5, 0.2, 0.07), (3.0, 1.0, 0.35, 0.12)


class LiteralChampion:
    """Told the rounds of a campaign, the first ones being columns of the race."""

    def __init__(self, n_arms, n_examples, weight, epsilon, past=None):
        self.K, self.N, self.weight, self.epsilon = n_arms, n_examples, weight, epsilon
        self.columns = []  # of the race: scores of all arms
        self.out = set()  # arms that cannot reach the champion
        self.race_bets = []  # of each column: for each arm its opponents and the adaptive bet
        self.draws = [[] for _ in range(n_arms)]  # (example, score as 1, control, least, adaptive, residual)
        self.low = [[] for _ in range(n_arms)]
        self.raced = [0] * n_arms
        self.untested = None
        self.champion, self.T, self.has_left_race = None, None, False
        self.told_residuals = [[] for _ in range(n_examples)]
        self.features = [[] for _ in range(n_arms)]  # the rows of its draws
        self.row = np.zeros(n_examples)
        self.past = past
        self.weights = np.zeros((n_arms, 2 if past is None else 3))

    def columns_told(self, examples, scores):
        """A round of the race, scores of shape (K, B)."""
        bets = [self.race_bet(arm) for arm in range(self.K)]
        for scores_of_column in scores.T:
            self.columns.append(scores_of_column.copy())
            self.race_bets.append(bets)
        features = self.rows_of(examples)
        for arm in range(self.K):
            self.absorb(arm, examples, scores[arm], features, [(0.0, 0.0, 0.0)] * len(examples))
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

    def rows_of(self, examples):
        """The features of examples, as they are now."""
        parts = [self.row, self.ease(), *([] if self.past is None else [self.past])]
        return [[part[e] for part in parts] for e in examples]

    def absorb(self, arm, examples, scores, features, bets):
        values = [1.0 if np.isnan(x) else x for x in scores]
        mean = np.mean([d[1] for d in self.draws[arm]] + values)
        self.features[arm] += features
        past = np.array(self.features[arm])[:, 2:]
        by_past = ((past - past.mean(axis=0)) @ self.weights[arm, 2:])[-len(examples) :]
        for e, x, value, bet, expected in zip(examples, scores, values, bets, by_past, strict=True):
            self.draws[arm].append((e, value, *bet, value - mean - expected))
            self.low[arm].append(0.0 if np.isnan(x) else x)
            self.told_residuals[e].append(value - mean - expected)

    def ease(self):
        return np.array([sum(r) / (1.0 + len(r)) for r in self.told_residuals])

    def told(self, arms, examples, scores):
        """A round of draws that each arm has of its own."""
        if not self.has_left_race:
            self.has_left_race = True
            self.weigh([arm for arm in range(self.K) if self.draws[arm]])
        by_arm = {arm: np.flatnonzero(arms == arm) for arm in sorted(set(arms.tolist()))}
        bets = {arm: self.test_bets(arm, examples[where]) for arm, where in by_arm.items()}
        features = {arm: self.rows_of(examples[where]) for arm, where in by_arm.items()}
        for arm, where in by_arm.items():
            self.absorb(arm, examples[where], scores[where], features[arm], bets[arm])
        self.weigh([*by_arm])
        self.leave_out(by_arm)
        self.crown()

    def leave_out(self, arms):
        """Arms of these, not yet full, that are certainly worse than the champion."""
        if self.champion is None:
            return
        for arm in arms:
            left = self.N - len(self.draws[arm])
            if left and sum(d[1] for d in self.draws[arm]) + left < (self.T - 1e-9) * self.N:
                self.out.add(arm)

    def test_bets(self, arm, examples):
        """Control, its least value and the adaptive bet of each draw, from what was told before the round."""
        said = np.array(self.rows_of(range(self.N))) @ self.weights[arm]
        seen = {d[0] for d in self.draws[arm]}
        start = [e for e in range(self.N) if e not in seen]
        least = min(said[e] for e in start)
        adaptive = 0.0 if self.champion is None else self.adaptive_bet(arm)
        bets = []
        for e in examples:
            left = [f for f in range(self.N) if f not in seen]
            mean = sum(said[f] for f in left) / len(left)
            is_weighed = bool(self.weights[arm].any())
            bets.append((said[e] - mean, max(mean - least, 0.0) + 1e-9 * is_weighed, adaptive))
            seen.add(e)
        return bets

    def adaptive_bet(self, arm):
        x = np.array([d[1] for d in self.draws[arm]])
        f = np.array(self.features[arm])
        w, n = self.weights[arm], len(x)
        residual = (x - x.mean()) - (f - f.mean(axis=0)) @ w
        variance = ((residual**2).sum() + 0.1) / (n + 1)
        estimate = x.mean() - (f.mean(axis=0) - np.mean(self.rows_of(range(self.N)), axis=0)) @ w
        return min(max(self.T - estimate, 1.4 * np.sqrt(variance / n)) / variance, 5.0)

    def weigh(self, arms):
        """Ridge regression of an arm's scores on the features, with up to 20 draws' worth of all arms'."""
        squares, across, count, size = {}, {}, 0, self.weights.shape[1]
        for arm, rows in enumerate(self.features):
            if not rows:
                continue
            f = np.array(rows)
            x = np.array([d[1] for d in self.draws[arm]])
            squares[arm] = (f - f.mean(axis=0)).T @ (f - f.mean(axis=0))
            across[arm] = (f - f.mean(axis=0)).T @ (x - x.mean())
            count += len(x)
        share = min(20.0, sum(bool(r) for r in self.told_residuals)) / max(count, 1)
        for arm in arms:
            a = squares[arm] + share * sum(squares.values()) + 0.1 * np.eye(size)
            b = across[arm] + share * sum(across.values()) + 0.1 * np.array([0.3, 0.3, 0.0])[:size]
            self.weights[arm] = np.linalg.solve(a, b)

    def revised(self, arms, examples, scores):
        """Scores that came later than their draws."""
        for arm, e, x in zip(arms.tolist(), examples.tolist(), scores, strict=True):
            place = [d[0] for d in self.draws[arm]].index(e)
            _, as_one, *bets, residual = self.draws[arm][place]
            assert as_one == 1.0
            self.draws[arm][place] = (e, x, *bets, residual + x - 1.0)
            self.low[arm][place] = x
            self.told_residuals[e].remove(residual)
            self.told_residuals[e].append(residual + x - 1.0)
            if place < self.raced[arm]:
                self.columns[place][arm] = x
        self.recompute_features(sorted(set(arms.tolist())))
        self.crown(again=True)

    def recompute_features(self, arms):
        for arm in arms:
            rows = []
            for e, *_, residual in self.draws[arm]:
                others = list(self.told_residuals[e])
                ease = (sum(others) - residual) / (1.0 + len(others) - 1.0)
                rows.append([self.row[e], ease, *([] if self.past is None else [self.past[e]])])
            self.features[arm] = rows
        if arms:
            self.weigh(arms)

    def crown(self, again=False):
        full = [arm for arm in range(self.K) if len(self.draws[arm]) == self.N]
        if not full:
            return
        best = max(full, key=lambda arm: (sum(self.low[arm]), -arm))
        if self.champion is not None and sum(self.low[best]) <= sum(self.low[self.champion]) + 1e-9 * self.N:
            if not again:
                return
            best = self.champion
        self.champion, self.T = best, sum(self.low[best]) / self.N + self.epsilon
        if self.untested is None:
            self.untested = [len(draws) for draws in self.draws]
        self.row = np.zeros(self.N)
        for e, x, *_ in self.draws[best]:
            self.row[e] = x
        self.out.discard(best)
        arms = [arm for arm in range(self.K) if arm not in self.out and 0 < len(self.draws[arm]) < self.N]
        self.recompute_features(arms)
        self.leave_out(arms)

    def wealth(self, arm):
        """M of an arm."""
        part = self.weight * self.race_wealth(arm)
        if self.champion is None:
            return part
        return part * self.test_wealth(arm, self.raced[arm]) + (1.0 - self.weight) * self.test_wealth(arm, 0)

    def wealth_at(self, arm, higher):
        """M of an arm at a threshold that is higher than T by some amount."""
        self.T += higher
        found = self.wealth(arm)
        self.T -= higher
        return found

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
            most = 0.8 / max(1.0 + level, 1e-9)
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
            most = 0.8 / max(1.0 - level + least, 1e-9)
            gain = level - x + control
            if t >= first:
                for k, each in enumerate(TEST_BETS):
                    fixed[k] *= 1.0 + min(each * self.N / (self.N - t), most) * gain
                tested *= 1.0 + min(bet, most) * gain
        entered = np.mean(fixed) if entered is None else entered
        return 0.5 * np.mean(fixed) + 0.5 * entered * tested


def literal_past(history):
    """How much better than they do on average the 100 best rows of a history did on each example."""
    usual = []
    for column in history.T:
        told = [x for x in column if not np.isnan(x)]
        usual.append((sum(told) + np.nanmean(history)) / (len(told) + 1))
    lead = []
    for row in history:
        there = [(x, y) for x, y in zip(row, usual, strict=True) if not np.isnan(x)]
        lead.append(sum(x - y for x, y in there) / (len(there) + 1))
    best = sorted(range(len(history)), key=lambda row: -lead[row])[:100]
    found = []
    for column in history.T:
        surplus = [column[row] - np.nanmean(history[row]) for row in best if not np.isnan(column[row])]
        found.append(sum(surplus) / (len(surplus) + 1))
    return np.array(found)
