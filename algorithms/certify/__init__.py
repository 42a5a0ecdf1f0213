"""Certify: which arms have a risk, an expected loss, of at most alpha, with probability 1 - delta or more?

Losses lie in [0, 1]: few are judged by humans, many by an autoevaluator. `r_autoeval_plus` has the
methods; `config`, `label_record`, `e_values`, `e_process`, `mean_rule`, `intervals` and `procedure` hold what
they share.
"""
