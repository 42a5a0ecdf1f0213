"""The demo: real checkpoints trained on the spot, their data, and a campaign over them."""
