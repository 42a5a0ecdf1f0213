"""Tasks of lm-eval, read as by lm-eval 0.4.13; lm-eval itself is not imported."""
