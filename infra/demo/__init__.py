"""The demo: small checkpoints that are trained when it runs, their data, and campaigns that use them."""
