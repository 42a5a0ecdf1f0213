"""The parts of a campaign between algorithms and storage: engines, judges, planning and recording."""

import logging

# Whoever uses this as a library and configures no logging is told nothing.
logging.getLogger("winnow").addHandler(logging.NullHandler())
