"""Tasks of other evaluation harnesses; `tasks.data.harnesses` has the addresses of their readers."""
