"""Go on with a stored campaign on a larger budget, and read it with pandas; typed_campaign.py stores it."""

import winnow

db = winnow.open("sqlite:///winnow.db")
print(db.campaigns()[["campaign", "best", "estimate", "comparisons"]])
campaign = db["sums"].resume({"stopping.budget": 800})
scores = campaign.comparisons()
print(campaign.answer.best, campaign.answer.claim.kind)
print(scores.groupby("candidate")["outcome"].agg(["count", "mean"]))
print(scores.pivot_table(index="example", columns="candidate", values="outcome").head())
