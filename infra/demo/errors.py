"""Errors in the preparation of the demo.

* DemoError
  - TrainingFailed   a checkpoint's training process ended without a checkpoint   (read its output above)
"""


class DemoError(Exception):
    """The demo could not be prepared."""


class TrainingFailed(DemoError):
    """A training process ended without a checkpoint."""

    def __init__(self, name: str, exit_code: int) -> None:
        killed = "; the machine may be short of memory" if exit_code < 0 else ""
        super().__init__(
            f"training of the demo checkpoint '{name}' ended with exit code {exit_code}{killed}; "
            "run the demo again to train the missing checkpoints"
        )
        self.name = name
        self.exit_code = exit_code
