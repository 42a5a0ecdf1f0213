"""Tasks of other evaluation harnesses: a satellite, whose readers `tasks.data.harnesses` names."""
