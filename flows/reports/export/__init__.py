"""A campaign as files for other tools: tables of its views, battles as LMArena has them, logs of Inspect."""
