"""The Python API, the command line, Prefect flows and reports: what users of Winnow call and read."""
