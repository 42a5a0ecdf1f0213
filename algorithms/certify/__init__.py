"""Certify: which arms have a risk (expected loss) of at most alpha.

The probability that all certificates are right is at least 1 - delta. Losses lie in [0, 1]: few are judged by
annotators, many by an autoevaluator. `r_autoeval_plus` has the methods; `config`, `label_record`, `e_values`
and `procedure` hold what they share.
"""
