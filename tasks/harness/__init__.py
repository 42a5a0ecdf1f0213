"""Tasks of other evaluation harnesses; `tasks.data.harnesses` names the readers of this satellite."""
