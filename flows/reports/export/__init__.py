"""A campaign as files for other tools: tables of its views, LMArena battles, Inspect logs."""
