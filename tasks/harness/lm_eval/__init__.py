"""Tasks of lm-eval, read as lm-eval 0.4.13 reads them; lm-eval itself is not imported."""
