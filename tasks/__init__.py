"""The parts of a campaign between algorithms and storage: engines, judges, planning and recording."""

import logging

# A program that uses this library without configuring logging gets no output.
logging.getLogger("winnow").addHandler(logging.NullHandler())
