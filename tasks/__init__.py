"""Where algorithms and storage meet: engines, judges, planning and recording."""
