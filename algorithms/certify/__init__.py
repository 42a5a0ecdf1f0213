"""Certify: which arms have a risk, an expected loss, of at most alpha, with probability 1 - delta or more?

Losses lie in [0, 1]: few are judged by humans, many by an autoevaluator. One method per file; `config`,
`label_record`, `losses`, `e_values`, `one_sided`, `intervals` and `procedure` hold what they share.
"""
