"""The best of many arms with a guarantee: a race on common examples, then tests against a filled row.

`mode` weighs the two, `race` bets on common examples, `switch` says when to leave them, `draws`, `controls`
and `wealth` test arms against a known mean, `allocation` says what to ask next, `evidence` holds it all
together and says who is out, `selector` is the selector. docs/how-the-guarantee-works.md has the proof.
"""
