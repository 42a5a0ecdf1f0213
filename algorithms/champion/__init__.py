"""The best of many arms with a guarantee: a race on common examples, then tests against a filled row.

`race` bets on common examples, `switch` weighs the two and says when to leave them, `draws`,
`control_variates` and `wealth` test arms against a known mean, `allocation` says what to ask next,
`elimination` holds it all together and says who is out, `verdict` when to stop and what may be claimed,
`selector` is the selector.
`top_m` is for the m best arms, `thrift` for the cheapest that is good enough, `constraints` for what the
best has to meet beside, `shown_intervals` and `differences` are for showing.
docs/how-the-guarantee-works.md has the proof.
"""
