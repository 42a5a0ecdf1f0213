"""Best of many arms with a guarantee.

Arms race on common examples, and are then tested against a filled row. A filled row is the row of an arm that
has been observed on all examples. The modules:

* `race` bets on common examples; `switch` weights race and tests, and decides when to leave the race.
* `draw_order`, `control_variates` and `wealth` test arms against a known mean.
* `allocation` chooses the next examples.
* `elimination` combines the evidence and eliminates arms.
* `verdict` decides when to stop and what can be claimed; `selector` is the selector.
* `top_m` is for the m best arms, `cheaper_arms` for the cheapest that is good enough, `constraints` for
  further conditions on the best arm, `shown_intervals` for reports.

docs/how-the-guarantee-works.md has the proof.
"""
